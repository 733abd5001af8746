# SPDX-License-Identifier: Apache-2.0
"""The same promises through `sqsqlite.connect()`: Queue and Message. Other modules test what all doors share."""

import copy
import inspect
import json
import pickle
import subprocess
import sys
from decimal import Decimal

import pytest

import sqsqlite
from sqsqlite import ManualClock, errors
from sqsqlite.actions.dispatch import call
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract import requests


@pytest.fixture
def clock():
    return ManualClock(patience=600.0)


@pytest.fixture
def open_file(tmp_path, clock, background):
    with sqsqlite.connect(tmp_path / "queues.db", clock=clock, synchronous="NORMAL") as sqs:
        yield sqs


@pytest.fixture
def queue(open_file):
    return open_file.create_queue("orders")


def bodies(queue, **arguments):
    return [message.body for message in queue.receive(10, **arguments)]


def test_send_receive_delete(queue):
    sent = queue.send("paint the fence")
    [message] = queue.receive()
    assert (message.body, message.message_id, message.receive_count) == (
        "paint the fence",
        sent.message_id,
        1,
    )
    assert message.md5_of_body == sent.md5_of_body
    message.delete()
    assert len(queue) == 0


def test_a_received_message_is_hidden_until_its_visibility_timeout(queue, clock):
    """A second receive is empty for 30 s, then brings the same message under a new handle."""
    sent = queue.send("paint the fence")
    [first] = queue.receive(visibility_timeout=30)
    assert queue.receive() == []
    clock.advance(seconds=30)
    [again] = queue.receive()
    assert (again.message_id, again.receive_count) == (sent.message_id, 2)
    assert again.receipt_handle != first.receipt_handle


def test_an_empty_queue_returns_an_empty_list_and_is_truthy(queue):
    assert queue.receive() == []
    assert len(queue) == 0
    assert queue


def test_create_queue_takes_each_attribute_as_an_argument(open_file):
    queue = open_file.create_queue(
        "all",
        delay_seconds=1,
        maximum_message_size=2048,
        message_retention_period=60,
        receive_message_wait_time_seconds=3,
        visibility_timeout=0,
        policy={"Statement": []},
        redrive_allow_policy={"redrivePermission": "denyAll"},
        kms_master_key_id="alias/aws/sqs",
        kms_data_key_reuse_period_seconds=60,
        tags={"team": "blue"},
    )
    expected = {
        "DelaySeconds": "1",
        "MaximumMessageSize": "2048",
        "MessageRetentionPeriod": "60",
        "ReceiveMessageWaitTimeSeconds": "3",
        "VisibilityTimeout": "0",
        "Policy": '{"Statement": []}',
        "RedriveAllowPolicy": '{"redrivePermission":"denyAll"}',
        "KmsMasterKeyId": "alias/aws/sqs",
        "KmsDataKeyReusePeriodSeconds": "60",
        "SqsManagedSseEnabled": "false",
    }
    assert expected.items() <= queue.attributes.items()
    assert queue.tags == {"team": "blue"}


def test_create_queue_finds_the_equal_one_and_refuses_another(open_file, queue):
    assert open_file.create_queue("orders", visibility_timeout=30).url == queue.url
    with pytest.raises(errors.QueueNameExists, match="attribute VisibilityTimeout"):
        open_file.create_queue("orders", visibility_timeout=31)


def test_a_queue_is_found_by_name_url_and_arn(open_file, queue):
    queue.send("there")
    for address in (queue.name, queue.url, queue.arn):
        assert len(open_file.queue(address)) == 1
    with pytest.raises(errors.QueueDoesNotExist):
        open_file.queue("nobody")
    with pytest.raises(errors.QueueDoesNotExist):
        open_file.queue(queue.arn.replace("000000000000", "111111111111"))


def test_the_queue_of_another_account_is_not_taken_for_ones_own(open_file, queue):
    """A key of the endpoint made it. Its URL found the queue of the same name in account 000000000000."""
    call(open_file._store, requests.CreateQueue, {"QueueName": "orders"}, Caller("111111111111"))
    for address in (queue.url, queue.arn):
        with pytest.raises(
            errors.QueueDoesNotExist, match="is a queue of account 111111111111: use `client`"
        ):
            open_file.queue(address.replace("000000000000", "111111111111"))


def test_an_observer_that_fails_fails_no_operation(open_file, queue, caplog):
    def fail(event):
        raise RuntimeError(event.action)

    open_file._store.observers += [fail]
    queue.send("kept")
    assert [message.body for message in queue.receive()] == ["kept"]
    assert [record.getMessage() for record in caplog.records] == [
        "an observer of SendMessage failed",
        "an observer of ReceiveMessage failed",
    ]


def test_a_missing_queue_is_named_in_a_note(open_file, queue, tmp_path):
    """SQS's sentence is unchanged."""
    queue.delete()
    calls = [
        lambda: open_file.queue("orders"),
        lambda: queue.send("x"),
        lambda: queue.send_many(["x"]),
        queue.receive,
        queue.peek,
        lambda: queue.attributes,
    ]
    for action in calls:
        with pytest.raises(errors.QueueDoesNotExist) as refused:
            action()
        assert str(refused.value) == "The specified queue does not exist."
        assert refused.value.__notes__ == [f"No queue 'orders' in {tmp_path / 'queues.db'}"]
    with pytest.raises(errors.QueueDoesNotExist) as refused:
        open_file.queue("no name for a queue")
    assert "'no name for a queue'" in refused.value.__notes__[0]


def test_the_client_adds_no_note_to_sqss_words(open_file):
    with pytest.raises(errors.QueueDoesNotExist) as refused:
        open_file.client.get_queue_url(QueueName="nobody")
    assert not hasattr(refused.value, "__notes__")


def test_queues_are_listed_by_prefix(open_file, queue):
    open_file.create_queue("invoices")
    assert [one.name for one in open_file.queues()] == ["invoices", "orders"]
    assert [one.name for one in open_file.queues("ord")] == ["orders"]


def test_a_short_form_of_the_redrive_policy(open_file, clock):
    dead = open_file.create_queue("dead")
    queue = open_file.create_queue("jobs", dead_letter_queue=dead, max_receive_count=1)
    queue.send("poison")
    queue.receive()
    clock.advance(30)
    assert queue.receive() == []
    [message] = dead.receive()
    assert (message.body, message.receive_count) == ("poison", 2)
    assert message.dead_letter_source_arn == queue.arn


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"max_receive_count": 5}, "dead_letter_queue=None, max_receive_count=5: both are needed"),
        ({"dead_letter_queue": "dead"}, "dead_letter_queue='dead', max_receive_count=None: both are needed"),
        ({"dead_letter_queue": "dead", "max_receive_count": 5}, "redrive_policy stands alone"),
        ({"max_receive_count": 5}, "redrive_policy stands alone"),
    ],
    ids=["no queue", "no count", "both beside the policy", "count beside the policy"],
)
def test_half_a_redrive_policy_or_two_of_them_are_refused(open_file, arguments, told):
    dead = open_file.create_queue("dead")
    if "alone" in told:
        arguments = {**arguments, "redrive_policy": {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 3}}
    with pytest.raises(ValueError, match=told):
        open_file.create_queue("jobs", **arguments)
    assert [queue.name for queue in open_file.queues()] == ["dead"]


def test_a_fifo_queues_name_without_fifo_is_refused_in_sqss_words(open_file):
    with pytest.raises(errors.InvalidParameterValue, match="Can only include alphanumeric characters"):
        open_file.create_queue("orders.fifo")


def test_change_visibility_counts_from_now_and_0_gives_back(queue, clock):
    queue.send("job")
    [message] = queue.receive()
    clock.advance(20)
    message.change_visibility(60)
    clock.advance(59)
    assert queue.receive() == []
    message.change_visibility(0)
    assert bodies(queue) == ["job"]


def test_a_late_consumer_can_settle_nothing(queue, clock):
    queue.send("job")
    [late] = queue.receive()
    clock.advance(30)
    [current] = queue.receive()
    with pytest.raises(errors.InvalidParameterValue, match="The receipt handle has expired"):
        late.delete()
    with pytest.raises(errors.MessageNotInflight):
        late.change_visibility(60)
    current.delete()
    late.delete()


def test_the_queues_wait_applies_unless_the_receive_has_its_own(open_file, clock, background):
    queue = open_file.create_queue("patient", receive_message_wait_time_seconds=20)
    assert queue.receive(wait=0) == []
    waiting = background(queue.receive)
    clock.until_waiting()
    queue.send("at last")
    assert [message.body for message in waiting.result(20)] == ["at last"]


def test_a_delay_is_the_sends_or_the_queues(open_file, clock):
    queue = open_file.create_queue("slow", delay_seconds=5)
    queue.send("now", delay=0)
    queue.send("later")
    assert bodies(queue) == ["now"]
    clock.advance(5)
    assert bodies(queue) == ["later"]


def test_attributes_are_python_values(queue):
    attributes = {
        "text": "ü",
        "whole": 7,
        "precise": Decimal("0.10"),
        "blob": b"\x00\xff",
    }
    queue.send("x", attributes={**attributes, "typed": {"DataType": "Number.int", "StringValue": "8"}})
    [message] = queue.receive()
    assert message.attributes == {**attributes, "typed": 8}
    assert isinstance(message.attributes["precise"], Decimal)


def test_an_attribute_of_another_type_is_an_error_of_the_caller(queue):
    with pytest.raises(TypeError, match="attribute 'when' is None"):
        queue.send("x", attributes={"when": None})
    with pytest.raises(TypeError, match=r"attributes=\[\('a', 'b'\)\]: a mapping"):
        queue.send("x", attributes=[("a", "b")])
    with pytest.raises(TypeError, match="attribute 'on' is True"):
        queue.send("x", attributes={"on": True})


def test_a_message_has_all_its_facts(queue, clock):
    sent_at = clock.now_ms()
    queue.send("x", group_id="tenant", trace_header="Root=1")
    clock.advance(2)
    [message] = queue.receive()
    assert (message.sent_at, message.first_received_at) == (sent_at, sent_at + 2000)
    assert (message.group_id, message.trace_header, message.sender_id) == ("tenant", "Root=1", "000000000000")
    assert (message.deduplication_id, message.sequence_number, message.dead_letter_source_arn) == (None,) * 3


def test_send_many_sends_all_in_one_transaction(queue):
    """More than SQS's ten, in order."""
    sent = queue.send_many(f"job {number}" for number in range(25))
    assert len({one.message_id for one in sent}) == 25
    received = bodies(queue) + bodies(queue) + bodies(queue)
    assert received == [f"job {number}" for number in range(25)]


def test_send_many_sends_all_or_none(queue):
    with pytest.raises(errors.InvalidParameterValue, match=r"DelaySeconds must be >= 0 and <= 900"):
        queue.send_many(["fine", {"body": "never", "delay": 901}])
    assert len(queue) == 0
    assert queue.send_many([]) == []


def test_send_many_takes_sends_arguments(queue, clock):
    queue.send_many([{"body": "later", "delay": 5, "attributes": {"n": 1}, "group_id": "g"}, "now"])
    assert bodies(queue) == ["now"]
    clock.advance(5)
    [message] = queue.receive()
    assert (message.body, message.attributes, message.group_id) == ("later", {"n": 1}, "g")
    with pytest.raises(ValueError, match="always body"):
        queue.send_many([{"text": "x"}])


@pytest.mark.parametrize("one", ["abc", b"abc", bytearray(b"abc"), {"body": "abc"}], ids=repr)
def test_send_many_refuses_a_single_message(queue, one):
    """A text is iterable too, as is a mapping: its characters or keys would have been sent."""
    with pytest.raises(TypeError, match=r"a list or another iterable of messages, not one \w+: send\(...\)"):
        queue.send_many(one)
    assert len(queue) == 0


@pytest.mark.parametrize("message", [b"abc", 3, None], ids=repr)
def test_send_many_names_the_index_of_an_invalid_message(queue, message):
    with pytest.raises(TypeError, match=r"message 1 is .*: a str or a mapping with body is allowed"):
        queue.send_many(["fine", message])
    assert len(queue) == 0


def test_peek_looks_at_one_message_to_ten_thousand(queue):
    """SQLite would treat a number below 0 as no limit."""
    for number in (0, -1, 10_001, 10**20):
        with pytest.raises(ValueError, match=f"max_messages={number}: 1 to 10,000 are allowed"):
            queue.peek(number)


def test_peek_looks_without_receiving(queue, clock):
    """No lease, no count: the later receive is the first."""
    queue.send("visible")
    queue.send("delayed", delay=5)
    [seen] = queue.peek()
    assert (seen.body, seen.state, seen.receive_count) == ("visible", "visible", 0)
    [hidden] = queue.peek(hidden=True)
    assert (hidden.body, hidden.state, hidden.visible_at) == ("delayed", "delayed", clock.now_ms() + 5000)
    assert [message.receive_count for message in queue.receive(10)] == [1]


def test_statistics_count_exactly(open_file, queue):
    for _ in range(3):
        queue.send("x")
    queue.send("y", delay=5)
    queue.receive()
    [found] = open_file.stats("orders")
    assert (found.visible, found.in_flight, found.delayed) == (2, 1, 1)
    assert len(queue) == 4


def test_purge_and_delete(open_file, queue, clock):
    queue.send("gone")
    queue.purge()
    assert len(queue) == 0
    with pytest.raises(errors.PurgeQueueInProgress):
        queue.purge()
    queue.delete()
    with pytest.raises(errors.QueueDeletedRecently):
        open_file.create_queue("orders")
    clock.advance(60)
    assert len(open_file.create_queue("orders")) == 0


def test_attributes_and_tags_are_read_and_written(queue):
    queue.set_attributes({"VisibilityTimeout": 60, "SqsManagedSseEnabled": False})
    assert (queue.attributes["VisibilityTimeout"], queue.attributes["SqsManagedSseEnabled"]) == (
        "60",
        "false",
    )
    queue.tag({"team": "blue", "cost": "7"})
    queue.untag("cost", "nobody")
    assert queue.tags == {"team": "blue"}


def test_permissions_are_added_and_removed(queue):
    queue.add_permission("jane", ["111122223333"], ("SendMessage", "ReceiveMessage"))
    [statement] = json.loads(queue.attributes["Policy"])["Statement"]
    assert (statement["Sid"], statement["Action"]) == ("jane", ["SQS:SendMessage", "SQS:ReceiveMessage"])
    with pytest.raises(errors.InvalidParameterValue, match="Already exists"):
        queue.add_permission("jane", ["111122223333"], ["*"])
    queue.remove_permission("jane")
    assert "Policy" not in queue.attributes
    with pytest.raises(errors.InvalidParameterValue, match="can't find label"):
        queue.remove_permission("jane")


def test_a_text_instead_of_a_list_of_accounts_or_actions_is_refused(queue):
    for accounts, actions in (("111122223333", ["*"]), (["111122223333"], "*")):
        with pytest.raises(errors.ParamValidationError, match="valid types: <class 'list'>"):
            queue.add_permission("jane", accounts, actions)


def test_setting_an_attribute_to_none_is_refused(queue):
    """None would count as left out, as if it had been set."""
    before = queue.attributes
    with pytest.raises(ValueError, match="VisibilityTimeout=None: an attribute has a value"):
        queue.set_attributes({"DelaySeconds": 5, "VisibilityTimeout": None})
    with pytest.raises(TypeError, match="a mapping of names to values"):
        queue.set_attributes([("DelaySeconds", 5)])
    assert queue.attributes == before


@pytest.mark.parametrize("name", [None, 7, b"orders", ["orders"]], ids=repr)
def test_a_name_that_is_not_a_text_is_refused(open_file, name):
    for method in (open_file.queue, open_file.create_queue):
        with pytest.raises(errors.ParamValidationError, match="parameter QueueName, value: "):
            method(name)


def test_attributes_are_set_by_the_keywords_of_create_queue_too(open_file, queue):
    dead = open_file.create_queue("dead")
    queue.set_attributes(visibility_timeout=3, sqs_managed_sse_enabled=False, policy="")
    queue.set_attributes(dead_letter_queue=dead, max_receive_count=5)
    queue.set_attributes({"DelaySeconds": 7}, message_retention_period=90)
    found = queue.attributes
    names = ("VisibilityTimeout", "SqsManagedSseEnabled", "DelaySeconds", "MessageRetentionPeriod")
    assert [found[name] for name in names] == ["3", "false", "7", "90"]
    assert json.loads(found["RedrivePolicy"]) == {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 5}
    queue.set_attributes(redrive_policy="")
    assert "RedrivePolicy" not in queue.attributes


@pytest.mark.parametrize(
    ("given", "settings", "error", "text"),
    [
        ({}, {"visibility_timeuot": 3}, TypeError, "visibility_timeuot: no attribute"),
        ({}, {"fifo": True}, TypeError, "fifo: no attribute"),
        ({}, {"visibility_timeout": None}, ValueError, "visibility_timeout=None"),
        ({"VisibilityTimeout": 3}, {"visibility_timeout": 4}, TypeError, "VisibilityTimeout: given twice"),
        ({}, {"max_receive_count": 4}, ValueError, "both are needed"),
        ({}, {"max_receive_count": 4, "redrive_policy": ""}, ValueError, "redrive_policy stands alone"),
        ({}, {"delay_seconds": 7, "visibility_timeout": 43_201}, errors.InvalidAttributeValue, "Visib"),
    ],
)
def test_invalid_settings_are_refused_and_no_attribute_changes(queue, given, settings, error, text):
    before = queue.attributes
    with pytest.raises(error, match=text):
        queue.set_attributes(given, **settings)
    assert queue.attributes == before


def test_the_files_client_sees_the_same_queues(open_file, queue):
    open_file.client.send_message(QueueUrl=queue.url, MessageBody="from the client")
    assert bodies(queue) == ["from the client"]


def test_errors_are_sqss_own(queue):
    """The class has SQS's name, its codes and its status."""
    with pytest.raises(errors.SQSError) as refused:
        queue.receive(11)
    assert isinstance(refused.value, errors.InvalidParameterValue)
    assert (refused.value.code, refused.value.query_code, refused.value.http_status) == (
        "InvalidParameterValueException",
        "InvalidParameterValue",
        400,
    )


def test_leniency_with_handles_is_an_option(tmp_path, clock):
    with sqsqlite.connect(tmp_path / "lenient.db", clock=clock, compat="aws") as sqs:
        queue = sqs.create_queue("orders")
        queue.send("job")
        [late] = queue.receive()
        clock.advance(30)
        late.delete()
        assert len(queue) == 0


def test_native_limits_lift_amazons_limits(tmp_path, clock):
    """Delays over 15 minutes, more than ten messages a receive, bodies over 1 MiB."""
    with sqsqlite.connect(tmp_path / "native.db", clock=clock, limits="native") as sqs:
        queue = sqs.create_queue("orders", maximum_message_size=2**21)
        queue.send("x" * 2**21)
        queue.send_many(["x"] * 19)
        assert len(queue.receive(20)) == 20
        queue.send("tomorrow", delay=86_400)
        clock.advance(86_399)
        assert "tomorrow" not in [message.body for message in queue.receive(1000)]
        clock.advance(1)
        assert "tomorrow" in [message.body for message in queue.receive(1000)]


def test_use_of_a_closed_file_is_a_clear_error(tmp_path):
    sqs = sqsqlite.connect(tmp_path / "queues.db")
    queue = sqs.create_queue("orders")
    sqs.close()
    for action in (lambda: queue.send("x"), queue.receive, lambda: queue.attributes):
        with pytest.raises(errors.StoreClosed):
            action()


def test_objects_that_hold_the_file_open_cannot_be_pickled(open_file, queue):
    """The error names the alternative."""
    queue.send("x")
    [message] = queue.receive()
    told = {
        open_file: r"with sqsqlite.connect\('.*queues.db'\)",
        queue: r"and take sqs.queue\('orders'\) there",
        open_file.client: r"with sqsqlite.client\('.*queues.db'\)",
        message: "pass its body and its receipt_handle",
    }
    for thing, advice in told.items():
        for refused in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"can't be pickled or copied: .*{advice}"):
                refused(thing)


def test_errors_are_pickled(open_file):
    """A worker process returns them unchanged."""
    with pytest.raises(errors.SQSError) as refused:
        open_file.client.get_queue_url(QueueName="nobody")
    again = pickle.loads(pickle.dumps(refused.value))
    assert (type(again), str(again)) == (errors.QueueDoesNotExist, str(refused.value))


def test_the_client_takes_the_options_of_connect():
    client = inspect.signature(sqsqlite.client)
    assert client.parameters == inspect.signature(sqsqlite.connect).parameters
    with pytest.raises(TypeError, match=r"^client\(\) got an unexpected keyword argument 'region_name'"):
        sqsqlite.client("queues.db", region_name="eu-west-1")


def test_the_clients_options_count(tmp_path, clock):
    options = {
        "synchronous": "OFF",
        "compat": "aws",
        "limits": "native",
        "busy_timeout": 1.5,
        "clock": clock,
        "region": "eu-west-1",
    }
    with sqsqlite.connect(tmp_path / "python.db", **options) as sqs:
        with sqsqlite.client(tmp_path / "client.db", **options) as client:
            for store in (sqs._store, client._store):
                assert (store.file.synchronous, store.file.busy_timeout, store.clock) == ("OFF", 1.5, clock)
                assert (store.settings.compat, store.settings.region) == ("aws", "eu-west-1")
                assert store.settings.limits == sqs._store.settings.limits
        assert client.meta.region_name == "eu-west-1"


@pytest.mark.parametrize("level", ["FULL", "NORMAL", "OFF", "EXTRA"])
def test_each_level_of_synchronous_sets_sqlites_level(tmp_path, level):
    number = {"OFF": 0, "NORMAL": 1, "FULL": 2, "EXTRA": 3}[level]
    with (
        sqsqlite.connect(tmp_path / "queues.db", synchronous=level) as sqs,
        sqs.transaction() as connection,
    ):
        assert connection.execute("PRAGMA synchronous").fetchone() == (number,)
    with pytest.raises(ValueError, match="synchronous='full': one of OFF, NORMAL, FULL, EXTRA is allowed"):
        sqsqlite.connect(tmp_path / "queues.db", synchronous="full")


def test_completion_shows_every_public_name_before_it_is_loaded():
    program = "import sqsqlite; print(*dir(sqsqlite))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600
    )
    shown = [name for name in run.stdout.split() if not name.startswith("_")]
    assert shown == sorted({*sqsqlite.__all__, "boto"} - {"__version__"})
    assert [name for name in shown if getattr(sqsqlite, name, None) is None] == []


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'sqsqlite' has no attribute 'conect'"):
        sqsqlite.conect  # noqa: B018


@pytest.mark.parametrize("ask", ["queues", "stats", "metrics"])
def test_a_prefix_that_is_not_a_text_is_not_reported_as_damage(open_file, ask):
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        getattr(open_file, ask)("\ud800")
