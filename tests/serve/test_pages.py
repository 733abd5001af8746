# SPDX-License-Identifier: Apache-2.0
"""/health and /metrics."""

import asyncio
import os
import re

import pytest

from sqsqlite.access.access import Access
from sqsqlite.access.keys import add_key
from sqsqlite.actions.opening import open_store
from sqsqlite.api.client import Client
from sqsqlite.errors import SQSError
from sqsqlite.serve.metrics import Metrics, shared_counts
from sqsqlite.serve.pages import MonitoringPages
from sqsqlite.serve.protocol import Served
from tests.serve.exchanges import exchange
from tests.serve.raw import HOST, ask, json_of
from tests.serve.serving import new_client, serving


@pytest.fixture
def url(store):
    with serving(store) as found:
        yield found


def page(url, name, method=b"GET"):
    return ask(url, method + b" /" + name + b" HTTP/1.1\r\n" + HOST + b"\r\n", has_body=method != b"HEAD")


def pages(store, *, metrics_for_all=False):
    return MonitoringPages(store, Metrics(), metrics_for_all=metrics_for_all)


def find_metrics(pages, client, host="localhost"):
    """The answer to a client at this address."""
    return asyncio.run(pages.find(exchange("GET", "/metrics", client=client, headers={"Host": host})))


def samples(url):
    """The metrics: name and labels, with the number."""
    lines = page(url, b"metrics").body.decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_health_is_ok_while_the_file_can_be_read(url):
    assert (page(url, b"health").status, page(url, b"health").body) == (200, b"ok\n")
    head = page(url, b"health", b"HEAD")
    assert (head.status, head.headers["content-length"]) == (200, "3")


def test_health_is_503_when_the_file_cannot_be_read(url, path):
    ask(url, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
    with path.open("r+b") as file:
        file.write(b"no database at all" * 1_000)
    os.truncate(path.with_name(f"{path.name}-wal"), 0)
    answer = page(url, b"health")
    assert (answer.status, answer.body) == (503, b"The file can't be read.\n")
    assert page(url, b"metrics").status == 503


@pytest.mark.parametrize("change", ["moved away", "replaced", "its folder moved away"])
def test_health_is_503_while_the_path_is_not_the_file_that_is_open(tmp_path, change):
    """The open file can still be read, but no other program can find it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "queues.db"
    store = open_store(path)
    with serving(store) as url:
        moved, back = (folder, tmp_path / "old") if "folder" in change else (path, folder / "old.db")
        moved.rename(back)
        if change == "replaced":
            path.write_bytes(back.read_bytes())
        assert page(url, b"health").status == 503
        back.rename(moved)
        assert page(url, b"health").status == 200
    store.close()


def test_pages_are_read_without_a_key(store):
    """Even if all other requests must be signed."""
    store.write(add_key, "111111111111", "")
    with serving(store) as url:
        assert ask(url, json_of(b"ListQueues", b"{}")).status == 403
        assert page(url, b"health").status == 200
        assert page(url, b"metrics").status == 200


def test_pages_run_no_action(url):
    assert ask(url, json_of(b"ListQueues", b"{}").replace(b"POST / ", b"POST /health ")).body == b"{}"


def test_metrics_have_cloudwatchs_names_for_queues_of_every_account(store):
    with serving(store, Access(store, look_seconds=0)) as url:
        use(store, url)
        found = samples(url)
    for account in ("111111111111", "222222222222"):
        labels = f'{{AccountId="{account}",QueueName="orders"}}'
        assert found[f"ApproximateNumberOfMessagesVisible{labels}"] == "2"
        assert found[f"ApproximateNumberOfMessagesNotVisible{labels}"] == "1"
        assert found[f"NumberOfMessagesSent{labels}"] == "3"
        assert found[f"SentMessageSize{labels}"] == "15"


def use(store, url):
    """Three messages sent and one received, in a queue of each of two accounts."""
    for account in ("111111111111", "222222222222"):
        client = new_client(store, url, account)
        queue = client.create_queue(QueueName="orders")["QueueUrl"]
        for _ in range(3):
            client.send_message(QueueUrl=queue, MessageBody="hello")
        client.receive_message(QueueUrl=queue)
        client.close()


def test_metrics_count_requests_by_action_and_code(url):
    for body in (b'{"QueueName":"q"}', b'{"QueueName":"q"}', b'{"QueueName":"<b>"}'):
        ask(url, json_of(b"CreateQueue", body))
    ask(url, json_of(b"Nonsense", b"{}"))
    ask(url, b"NO HTTP\r\n\r\n")
    found = samples(url)
    assert found['sqsqlite_requests_total{action="CreateQueue",code=""}'] == "2"
    assert found['sqsqlite_requests_total{action="CreateQueue",code="InvalidParameterValue"}'] == "1"
    assert found['sqsqlite_refused_total{status="400"}'] == "2"
    assert found['sqsqlite_request_seconds_count{action="CreateQueue"}'] == "3"
    assert found['sqsqlite_request_seconds_bucket{action="CreateQueue",le="+Inf"}'] == "3"
    assert found["sqsqlite_commit_operations_count"] == "2"
    assert found["sqsqlite_commit_operations_sum"] == "2.0"
    assert found["sqsqlite_waiting_polls"] == "0"
    assert int(found["sqsqlite_wal_bytes"]) > 0


def test_metrics_are_in_prometheus_format(url):
    """Each metric has a help and a type line, its samples are together, and its buckets only grow."""
    for _ in range(5):
        ask(url, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
    answer = page(url, b"metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = re.split(r"(?m)^# HELP ", answer.body.decode())[1:]
    names = [family.split(" ", 1)[0] for family in families]
    assert len(set(names)) == len(names)
    sample = re.compile(r'(\w+)(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.e+-]+')
    for name, family in zip(names, families, strict=True):
        _, kind, *lines = family.rstrip("\n").split("\n")
        assert re.fullmatch(rf"# TYPE {name} (counter|gauge|histogram)", kind)
        for line in lines:
            ends = ("_bucket", "_sum", "_count") if kind.endswith("histogram") else ("",)
            assert sample.fullmatch(line)[1] in {f"{name}{end}" for end in ends}
        buckets = [int(line.rsplit(" ", 1)[1]) for line in lines if "_bucket" in line]
        assert buckets == sorted(buckets)


@pytest.mark.parametrize(
    ("address", "status"), [("127.0.0.1", 200), ("::1", 200), ("192.0.2.7", 403), ("odd", 403)]
)
def test_metrics_are_for_programs_of_this_machine(store, address, status):
    answer = find_metrics(pages(store), client=address)
    assert answer.status == status


def test_metrics_may_be_opened_to_all_addresses(store):
    answer = find_metrics(pages(store, metrics_for_all=True), client="192.0.2.7")
    assert answer.status == 200


def test_metrics_refuse_a_foreign_name_that_resolves_to_this_server(store):
    answer = find_metrics(pages(store), "127.0.0.1", "attacker.example:9324")
    assert answer.status == 403
    assert b"--allowed-host" in answer.body
    assert find_metrics(pages(store, metrics_for_all=True), "127.0.0.1", "prometheus.example").status == 200


def test_metrics_need_an_allowed_host_name_and_health_needs_none(store):
    with serving(store, allowed_hosts=("queues",)) as url:
        for host, status in (("queues:9324", 200), ("attacker.example", 403)):
            asked = b"GET /metrics HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode()
            assert ask(url, asked).status == status
            assert ask(url, asked.replace(b"metrics", b"health")).status == 200
            assert ask(url, asked.replace(b"metrics", b"?Action=ListQueues")).status == status


def test_each_error_answer_of_an_endpoint_is_counted():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    metrics = Metrics()
    ours = {kind for kind in below(SQSError) if kind.__module__.startswith("sqsqlite.")}
    for kind in ours:
        metrics.served(Served("", "SendMessage", "", "", None, 400, kind.query_code, 0.0, 0, 0))
    lines = list(metrics.lines())
    for kind in ours:
        assert any(
            line.startswith(f'sqsqlite_requests_total{{action="SendMessage",code="{kind.query_code}"}} ')
            for line in lines
        )


def test_processes_that_share_counts_report_their_sums():
    """A replacement goes on with the counters of the dead process, but not with its waiting polls."""
    counts = shared_counts(3)
    first, second, _ = (Metrics(counts, place) for place in range(3))
    for metrics, seconds in ((first, 0.25), (second, 0.5), (second, 40.0)):
        metrics.served(Served("", "SendMessage", "", "", None, 200, "", seconds, 0, 0))
        metrics.served(Served("", "", "", "", None, 404, "", 0.0, 0, 0))
        metrics.commits.observe(3)
        metrics.waits(1)
    expected = [
        'sqsqlite_requests_total{action="SendMessage",code=""} 3',
        'sqsqlite_refused_total{status="404"} 3',
        'sqsqlite_request_seconds_bucket{action="SendMessage",le="0.25"} 1',
        'sqsqlite_request_seconds_bucket{action="SendMessage",le="0.5"} 2',
        'sqsqlite_request_seconds_bucket{action="SendMessage",le="+Inf"} 3',
        'sqsqlite_request_seconds_sum{action="SendMessage"} 40.75',
        'sqsqlite_commit_operations_bucket{le="4"} 3',
        "sqsqlite_commit_operations_sum 9.0",
        "sqsqlite_waiting_polls 3",
    ]
    assert set(expected) <= set(first.lines())
    assert list(first.lines()) == list(second.lines())
    taken_over = Metrics(counts, 1)
    assert {*expected[:-1], "sqsqlite_waiting_polls 1"} <= set(taken_over.lines())


def sent(answer):
    """NumberOfMessagesSent of the only queue."""
    return int(re.search(rb"NumberOfMessagesSent\{.*\} (\d+)", answer.body)[1])


def test_metrics_of_queues_are_kept_for_a_second_and_ten_times_as_long_as_they_took(store):
    client = Client(store)
    url = client.create_queue(QueueName="q")["QueueUrl"]
    looks = iter([100.0, 100.0, 100.9, 101.0, 104.0, 133.9, 134.0, 134.0])
    asked = MonitoringPages(store, Metrics(), metrics_for_all=True, elapsed=lambda: next(looks))
    found = []
    # Measured at 100 in no time, at 101 in three seconds, and at 134.
    for _ in range(5):
        client.send_message(QueueUrl=url, MessageBody="hello")
        found.append(sent(find_metrics(asked, "127.0.0.1")))
    assert found == [1, 1, 3, 3, 5]
    assert list(looks) == []


def test_simultaneous_scrapes_share_a_measurement(store):
    Client(store).create_queue(QueueName="q")
    looks = []
    asked = MonitoringPages(
        store, Metrics(), metrics_for_all=True, elapsed=lambda: (looks.append(None), 100.0)[1]
    )

    async def scrapes():
        request = exchange("GET", "/metrics")
        return await asyncio.gather(*(asked.find(request) for _ in range(10)))

    assert {sent(answer) for answer in asyncio.run(scrapes())} == {0}
    assert len(looks) == 11  # one before each, and one at the end of a measurement
