# SPDX-License-Identifier: Apache-2.0
"""`forward` and `fetch` between two files, one of them behind a real endpoint, and targets that refuse."""

import threading

import pytest

import sqsqlite
from sqsqlite.testing import MovableClock
from sqsqlite.testing.endpoint import served
from sqsqlite.testing.files import lay
from sqsqlite.transfer import End, Transfer, TransferError, client_for, fetch, forward

ATTRIBUTES = {
    "City": {"DataType": "String", "StringValue": "Zürich"},
    "Count": {"DataType": "Number.int", "StringValue": "00042"},
    "Raw": {"DataType": "Binary.png", "BinaryValue": bytes(range(256))},
}


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
def here(tmp_path, clock):
    with sqsqlite.connect(lay(tmp_path / "here.db"), synchronous="OFF", clock=clock) as sqs:
        yield sqs


@pytest.fixture
def there(tmp_path, clock):
    with sqsqlite.connect(lay(tmp_path / "there.db"), synchronous="OFF", clock=clock) as sqs:
        yield sqs


@pytest.fixture
def distant(there, monkeypatch):
    """The endpoint of `there`, and the URL of its queue `orders`."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with served(there) as url:
        yield f"{url}/000000000000/orders"


class Wrapped:
    """A client whose SendMessageBatch a test changes."""

    def __init__(self, client, send_message_batch):
        self._client = client
        self._send = send_message_batch

    def __getattr__(self, name):
        return getattr(self._client, name)

    def send_message_batch(self, **request):
        return self._send(self._client, **request)


class Throttled(Exception):
    response = {  # noqa: RUF012
        "Error": {"Code": "RequestThrottled", "Message": "slower"},
        "ResponseMetadata": {"HTTPStatusCode": 403},
    }


def bodies(queue):
    """What the queue holds, in order."""
    return [peeked.body for peeked in queue.peek(1_000)]


def test_every_part_of_a_message_is_kept(here, there, distant):
    here.create_queue("orders")
    there.create_queue("orders")
    here.client.send_message(
        QueueUrl="orders",
        MessageBody="𝄞 & <b>\n",
        MessageAttributes=ATTRIBUTES,
        MessageSystemAttributes={
            "AWSTraceHeader": {
                "DataType": "String",
                "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793",
            }
        },
        MessageGroupId="tenant",
    )
    result = forward(here, "orders", client_for(distant), distant)
    assert (result.moved, result.refused, result.visible) == (1, [], 0)
    (message,) = there.client.receive_message(
        QueueUrl="orders", MessageAttributeNames=["All"], AttributeNames=["All"]
    )["Messages"]
    assert message["Body"] == "𝄞 & <b>\n"
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["Attributes"]["AWSTraceHeader"] == "Root=1-5759e988-bd862e3fe1be46a994272793"
    assert message["Attributes"]["MessageGroupId"] == "tenant"


def test_a_fetch_is_the_mirror(here, there, distant):
    here.create_queue("orders")
    queue = there.create_queue("orders")
    for number in range(25):
        queue.send(str(number), attributes={"n": number})
    result = fetch(here, "orders", client_for(distant), distant)
    assert result.moved == 25
    assert sorted(bodies(here.queue("orders")), key=int) == [str(number) for number in range(25)]
    assert bodies(queue) == []


def fifo(sqs, **settings):
    return sqs.create_queue("orders.fifo", fifo=True, **settings)


def test_a_fifo_queue_keeps_order_groups_and_deduplication_ids(here, there, distant):
    source, target = fifo(here), fifo(there)
    for number in range(12):
        for group in "abc":
            source.send(f"{group}{number}", group_id=group, deduplication_id=f"id-{group}-{number}")
    result = forward(here, "orders.fifo", client_for(distant), f"{distant}.fifo")
    assert (result.moved, result.renamed) == (36, 0)
    found = target.peek(100)
    for group in "abc":
        assert [one.body for one in found if one.group_id == group] == [f"{group}{n}" for n in range(12)]
    assert {one.deduplication_id for one in found} == {f"id-{g}-{n}" for g in "abc" for n in range(12)}


def test_a_message_whose_deduplication_id_was_used_again_is_not_lost(here, there, clock, distant):
    """The source takes the same id again after five minutes; the target gets both within a second."""
    source, target = fifo(here), fifo(there)
    for _ in range(3):
        source.send("tick", group_id="g", deduplication_id="tick")
        clock.advance(301)
    result = forward(here, "orders.fifo", client_for(distant), f"{distant}.fifo")
    assert (result.moved, result.renamed) == (3, 2)
    assert bodies(target) == ["tick"] * 3
    assert target.peek(10)[0].deduplication_id == "tick"


def test_ids_of_two_groups_are_apart_where_the_target_has_them_so(here, there, distant):
    scope = {"deduplication_scope": "messageGroup", "fifo_throughput_limit": "perMessageGroupId"}
    source, target = fifo(here, **scope), fifo(there, **scope)
    for group in "ab":
        source.send(group, group_id=group, deduplication_id="same")
    assert forward(here, "orders.fifo", client_for(distant), f"{distant}.fifo").renamed == 0
    assert sorted(bodies(target)) == ["a", "b"]


def test_messages_that_the_target_refuses_stay_and_are_named(here, there, distant):
    here.create_queue("orders", visibility_timeout=30)
    there.create_queue("orders", maximum_message_size=1_024)
    for number in range(40):
        here.queue("orders").send("x" * (2_000 if number % 2 else 10))
    told = []
    result = forward(
        here, "orders", client_for(distant), distant, progress=lambda count, one: one and told.append(one)
    )
    assert (result.moved, len(result.refused), result.visible) == (20, 20, 20)
    assert told == result.refused
    assert "InvalidParameterValue" in told[0].reason or "MessageTooLong" in told[0].reason
    assert {len(body) for body in bodies(here.queue("orders"))} == {2_000}


def test_a_refused_message_stops_its_group_and_no_other(here, there, distant):
    source = fifo(here)
    target = fifo(there, maximum_message_size=1_024)
    for group in "ab":
        for number in range(5):
            long = (group, number) == ("a", 2)
            source.send(
                f"{group}{number}" + "x" * 2_000 * long, group_id=group, deduplication_id=f"{group}{number}"
            )
    result = forward(here, "orders.fifo", client_for(distant), f"{distant}.fifo")
    assert (result.moved, len(result.refused)) == (7, 1)
    assert sorted(bodies(target)) == ["a0", "a1", "b0", "b1", "b2", "b3", "b4"]
    assert [body[:2] for body in bodies(source)] == ["a2", "a3", "a4"]
    assert result.visible == 3


def test_half_of_every_batch_fails_for_the_moment(here, there, distant):
    here.create_queue("orders")
    there.create_queue("orders")
    for number in range(30):
        here.queue("orders").send(str(number))

    def half(client, QueueUrl, Entries):  # noqa: N803 # boto3's names
        answer = client.send_message_batch(QueueUrl=QueueUrl, Entries=Entries[: (len(Entries) + 1) // 2])
        failed = [
            {"Id": entry["Id"], "SenderFault": False, "Code": "InternalError", "Message": "again"}
            for entry in Entries[(len(Entries) + 1) // 2 :]
        ]
        return {**answer, "Failed": failed}

    result = forward(here, "orders", Wrapped(client_for(distant), half), distant)
    assert (result.moved, result.in_doubt, result.visible) == (30, 0, 0)
    assert result.retried > 0
    assert sorted(bodies(there.queue("orders")), key=int) == [str(number) for number in range(30)]


def test_half_of_every_batch_fails_and_no_message_overtakes_another_of_its_group(here, there, distant):
    source, target = fifo(here), fifo(there)
    for number in range(12):
        source.send(str(number), group_id="ab"[number % 2], deduplication_id=str(number))
    turn = iter(range(10_000))

    def second_only(client, QueueUrl, Entries):  # noqa: N803
        """The first entry fails at each other attempt, a later one is taken."""
        taken = Entries[1:] if next(turn) % 2 == 0 else Entries
        answer = client.send_message_batch(QueueUrl=QueueUrl, Entries=taken) if taken else {}
        failed = [
            {"Id": entry["Id"], "SenderFault": False, "Code": "InternalError", "Message": "again"}
            for entry in Entries
            if entry not in taken
        ]
        return {**answer, "Failed": failed}

    forward(here, "orders.fifo", Wrapped(client_for(distant), second_only), f"{distant}.fifo")
    found = target.peek(100)
    assert [one.body for one in found if one.group_id == "a"] == ["0", "2", "4", "6", "8", "10"]
    assert [one.body for one in found if one.group_id == "b"] == ["1", "3", "5", "7", "9", "11"]


def test_a_throttling_target_is_asked_again(here, there, distant):
    here.create_queue("orders").send("once")
    there.create_queue("orders")
    refusals = iter([True, True, False])

    def throttle(client, **request):
        if next(refusals):
            raise Throttled
        return client.send_message_batch(**request)

    result = forward(here, "orders", Wrapped(client_for(distant), throttle), distant)
    assert (result.moved, result.throttled, result.in_doubt) == (1, 2, 0)


def test_a_target_that_throttles_for_too_long_is_given_up_and_nothing_is_lost(here, there, distant):
    here.create_queue("orders").send("kept")
    there.create_queue("orders")

    def throttle(client, **request):
        raise Throttled

    with pytest.raises(TransferError, match="gave up: RequestThrottled: slower"):
        forward(here, "orders", Wrapped(client_for(distant), throttle), distant, give_up_after=0)
    assert [message.body for message in here.queue("orders").receive()] == ["kept"]


def test_an_answer_that_is_lost_gives_a_counted_duplicate(here, there, distant):
    from botocore.exceptions import ReadTimeoutError

    here.create_queue("orders").send("twice")
    there.create_queue("orders")
    losses = iter([True, False])

    def lose(client, **request):
        answer = client.send_message_batch(**request)
        if next(losses):
            raise ReadTimeoutError(endpoint_url=distant)
        return answer

    result = forward(here, "orders", Wrapped(client_for(distant), lose), distant)
    assert (result.moved, result.in_doubt) == (1, 1)
    assert bodies(there.queue("orders")) == ["twice", "twice"]


def test_a_lost_answer_gives_no_duplicate_on_a_fifo_queue(here, there, distant):
    from botocore.exceptions import ReadTimeoutError

    fifo(here).send("once", group_id="g", deduplication_id="d")
    target = fifo(there)
    losses = iter([True, False])

    def lose(client, **request):
        answer = client.send_message_batch(**request)
        if next(losses):
            raise ReadTimeoutError(endpoint_url=distant)
        return answer

    forward(here, "orders.fifo", Wrapped(client_for(distant), lose), f"{distant}.fifo")
    assert bodies(target) == ["once"]


def test_what_is_hidden_or_delayed_stays_and_is_counted(here, there, distant):
    queue = here.create_queue("orders")
    there.create_queue("orders")
    queue.send("in flight")
    assert queue.receive(visibility_timeout=3_600)
    queue.send("later", delay=60)
    queue.send("now")
    result = forward(here, "orders", client_for(distant), distant)
    assert (result.moved, result.visible, result.in_flight, result.delayed) == (1, 0, 1, 1)


def test_a_limit(here, there, distant):
    for number in range(25):
        (here.queue("orders") if number else here.create_queue("orders")).send(str(number))
    there.create_queue("orders")
    result = forward(here, "orders", client_for(distant), distant, limit=12)
    assert (result.moved, result.visible) == (12, 13)


def test_large_messages_go_in_several_requests(here, there, distant):
    here.create_queue("orders")
    there.create_queue("orders")
    for _ in range(4):
        here.queue("orders").send("x" * 600_000)
    assert forward(here, "orders", client_for(distant), distant).moved == 4


def test_following_goes_on_until_it_is_stopped(here, there, distant):
    here.create_queue("orders").send("first")
    there.create_queue("orders")
    moved = threading.Semaphore(0)
    transfer = Transfer(
        End(here.client, "orders", "the queue"),
        End(client_for(distant), distant, "the target"),
        follow=True,
        is_local=True,
        progress=lambda count, _: count and moved.release(),
    )
    thread = threading.Thread(target=transfer.run)
    thread.start()
    moved.acquire()
    here.queue("orders").send("second")
    moved.acquire()
    transfer.stop()
    here.queue("orders").send("after the end")  # wakes the long poll
    thread.join()
    assert bodies(there.queue("orders"))[:2] == ["first", "second"]
    assert len(bodies(there.queue("orders"))) + len(bodies(here.queue("orders"))) == 3


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ("orders", "orders.fifo", "both must be of one kind"),
        ("orders.fifo", "orders", "both must be of one kind"),
        ("orders", "missing", "NonExistentQueue"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_received(
    here, there, distant, source, target, says
):
    for sqs in (here, there):
        sqs.create_queue("orders")
        fifo(sqs)
    here.queue("orders").send("kept")
    url = distant.replace("orders", target)
    with pytest.raises(TransferError, match=says):
        forward(here, source, client_for(url), url)
    assert [message.receive_count for message in here.queue("orders").receive()] == [1]


def test_a_queue_that_is_forwarded_to_itself_is_noticed(there, distant):
    there.create_queue("orders").send("round and round")
    with pytest.raises(TransferError, match="are one queue"):
        forward(there, "orders", client_for(distant), distant)
    assert len(bodies(there.queue("orders"))) == 1


@pytest.mark.parametrize(
    "url", ["orders", "ftp://a/000000000000/orders", "https://", "http://host/orders", ""]
)
def test_bad_urls(url):
    with pytest.raises(TransferError, match="no URL of a queue"):
        client_for(url)


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://sqs.eu-central-1.amazonaws.com/123456789012/q", "eu-central-1"),
        ("https://sqs-fips.us-gov-west-1.amazonaws.com/123456789012/q", "us-gov-west-1"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/123456789012/q", "cn-north-1"),
        ("https://eu-west-1.queue.amazonaws.com/123456789012/q", "eu-west-1"),
    ],
)
def test_the_region_is_the_urls(url, region):
    assert client_for(url).meta.region_name == region
    assert client_for(url, region="sa-east-1").meta.region_name == "sa-east-1"


def test_bad_options(here, there, distant):
    here.create_queue("orders")
    with pytest.raises(ValueError, match="limit=0"):
        forward(here, "orders", client_for(distant), distant, limit=0)
    with pytest.raises(ValueError, match="give_up_after=-1"):
        forward(here, "orders", client_for(distant), distant, give_up_after=-1)
    with pytest.raises(TransferError, match="profile"):
        client_for(distant, profile="there-is-none")
