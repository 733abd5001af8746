# SPDX-License-Identifier: Apache-2.0
"""An endpoint in test mode, asked by boto3 and by plain HTTP."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

import sqsqlite
from sqsqlite.errors import CannotOpen
from sqsqlite.testing.regions import MOST_REGIONS
from tests.serve.serving import serving
from tests.testing.serving import Server, served


@pytest.fixture
def server():
    with served() as started:
        yield started


@pytest.fixture
def client(server):
    return server.client()


@pytest.fixture
def url(client):
    return client.create_queue(QueueName="orders")["QueueUrl"]


def bodies(client, url, **options):
    return [one["Body"] for one in client.receive_message(QueueUrl=url, **options).get("Messages", [])]


def names(client):
    return [url.rpartition("/")[2] for url in client.list_queues().get("QueueUrls", [])]


def test_the_same_name_in_two_regions_is_two_queues(server, client, url):
    other = server.client("eu-central-1")
    assert names(other) == []
    other_url = other.create_queue(QueueName="orders")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="in Virginia")
    other.send_message(QueueUrl=other_url, MessageBody="in Frankfurt")
    assert bodies(other, other_url) == ["in Frankfurt"]
    assert bodies(client, url) == ["in Virginia"]
    arns = [
        one.get_queue_attributes(QueueUrl=one_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        for one, one_url in ((client, url), (other, other_url))
    ]
    assert arns == [
        "arn:aws:sqs:us-east-1:000000000000:orders",
        "arn:aws:sqs:eu-central-1:000000000000:orders",
    ]


def test_an_unsigned_request_means_the_region_of_the_option():
    with served(region="eu-west-1") as server:
        server.client("eu-west-1").create_queue(QueueName="dublin")
        server.client("us-east-1").create_queue(QueueName="virginia")
        told = server.ask("/?Action=ListQueues").text
        assert ("dublin" in told, "virginia" in told) == (True, False)


def test_a_presigned_url_means_the_region_in_it(server):
    server.client("ap-south-1").create_queue(QueueName="mumbai")
    request = AWSRequest("GET", f"{server.url}/", params={"Action": "ListQueues"})
    SigV4QueryAuth(Credentials("any", "thing"), "sqs", "ap-south-1").add_auth(request)
    assert "mumbai" in server.ask(request.prepare().url.removeprefix(server.url)).text


@pytest.mark.parametrize("region", ["EU", "..", "a_b", "a" * 300])
def test_a_region_that_no_file_can_have_is_refused(server, region):
    credential = f"AWS4-HMAC-SHA256 Credential=any/20260101/{region}/sqs/aws4_request, Signature=00"
    answer = server.ask("/?Action=ListQueues", Authorization=credential)
    assert answer.status in (400, 500)
    assert region in answer.text


@pytest.mark.slow
def test_a_hundred_regions_are_allowed(server):
    def ask(number):
        credential = f"AWS4-HMAC-SHA256 Credential=any/20260101/region-{number}/sqs/aws4_request"
        return server.ask("/?Action=ListQueues", Authorization=credential)

    # That of unsigned requests is one of them.
    assert {ask(number).status for number in range(MOST_REGIONS - 1)} == {200}
    refused = ask(MOST_REGIONS)
    assert refused.status == 400
    assert "there are 100 regions already" in refused.text
    server.reset()
    assert ask(MOST_REGIONS).status == 200


def test_any_credentials_are_accepted_and_12_digits_name_an_account(server, client, url):
    assert url.endswith("/000000000000/orders")
    other = server.client(key_id="111122223333")
    assert names(other) == []
    assert other.create_queue(QueueName="orders")["QueueUrl"].endswith("/111122223333/orders")
    assert server.client(key_id="A wrong/key").list_queues()["QueueUrls"] == [url]


def test_nothing_pauses_for_60_seconds(client, url):
    for _ in range(2):
        client.purge_queue(QueueUrl=url)
    client.delete_queue(QueueUrl=url)
    assert client.create_queue(QueueName="orders")["QueueUrl"] == url


def test_the_clock_ends_visibility_timeouts_and_delays(server, client, url):
    client.send_message(QueueUrl=url, MessageBody="a lamp")
    client.send_message(QueueUrl=url, MessageBody="a table", DelaySeconds=900)
    assert bodies(client, url, VisibilityTimeout=43_200) == ["a lamp"]
    assert bodies(client, url) == []
    server.advance(900)
    assert bodies(client, url) == ["a table"]
    before_ms = server.now_ms()
    assert server.advance(42_300.5) - before_ms >= 42_300_500
    assert sorted(bodies(client, url, MaxNumberOfMessages=10)) == ["a lamp", "a table"]


def test_the_clock_is_that_of_all_regions(server):
    other = server.client("eu-central-1")
    url = other.create_queue(QueueName="orders")["QueueUrl"]
    other.send_message(QueueUrl=url, MessageBody="a lamp", DelaySeconds=900)
    server.advance(900)
    assert bodies(other, url) == ["a lamp"]


@pytest.mark.parametrize(("seconds", "expected"), [(15, ["a lamp"]), (20, [])])
def test_the_clock_ends_a_long_poll(server, client, url, seconds, expected):
    """When a message becomes visible, or when its 20 seconds are over."""
    if expected:
        client.send_message(QueueUrl=url, MessageBody="a lamp", DelaySeconds=seconds)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bodies, client, url, WaitTimeSeconds=20)
        server.until_a_poll_waits()
        server.advance(seconds)
        assert waiting.result() == expected


def test_reset_removes_the_queues_of_all_regions_and_sets_the_clock_back(server, client, url):
    other = server.client("eu-central-1")
    other.create_queue(QueueName="orders")
    server.advance(86_400)
    assert server.reset() - time.time() * 1000 < 60_000
    assert (names(client), names(other)) == ([], [])
    with pytest.raises(client.exceptions.QueueDoesNotExist):
        client.send_message(QueueUrl=url, MessageBody="a lamp")
    assert client.create_queue(QueueName="orders")["QueueUrl"] == url
    assert bodies(client, url) == []


def test_reset_answers_a_long_poll(server, client, url):
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bodies, client, url, WaitTimeSeconds=20)
        server.until_a_poll_waits()
        server.reset()
        assert waiting.result() == []


@pytest.mark.slow
def test_many_resets_under_traffic_leave_an_empty_server_that_works(server):
    def work(number):
        client = server.client("us-east-1" if number % 2 else "eu-central-1")
        ends = set()
        for _ in range(20):
            try:
                url = client.create_queue(QueueName="orders")["QueueUrl"]
                client.send_message(QueueUrl=url, MessageBody="a lamp")
                bodies(client, url, WaitTimeSeconds=1)
            except ClientError as error:
                ends.add(error.response["Error"]["Code"])
        return ends

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(work, number) for number in range(4)]
        while not all(one.done() for one in working):
            server.reset()
    allowed = {"AWS.SimpleQueueService.NonExistentQueue", "ServiceUnavailable"}
    assert set().union(*(one.result() for one in working)) <= allowed
    server.reset()
    assert names(server.client()) == []


def test_queues_of_the_start_are_there_again_after_a_reset():
    with served(fill=lambda sqs: sqs.create_queue("orders")) as server:
        client = server.client()
        client.create_queue(QueueName="more")
        assert names(client) == ["more", "orders"]
        server.reset()
        assert names(client) == ["orders"]
        assert names(server.client("eu-central-1")) == []


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[", b"\xff", b"[" * 9_000, b"[]", b"{}", b'{"advance": 1, "by": 2}', b" " * 20_000 + b"{}"),
        *(b'{"advance": "1"}', b'{"advance": true}', b'{"advance": null}', b'{"advance": NaN}'),
        *(b'{"advance": -1}', b'{"advance": 1e400}', b'{"advance": 3162240001}'),
        b'{"advance": ' + b"9" * 400 + b"}",
    ],
)
def test_a_bad_body_is_refused_and_moves_nothing(server, body):
    before_ms = server.now_ms()
    answer = server.ask("/_test/clock", body, X_Sqsqlite_Test="1")
    assert answer.status == 400
    assert answer.text.endswith('{"advance": seconds} with 0 to 3,162,240,000 seconds is allowed\n')
    assert server.now_ms() - before_ms < 60_000


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/_test/reset", 405, "/_test/reset takes POST"),
        ("HEAD", "/_test/clock", 405, ""),
        ("PUT", "/_test/clock", 405, "Only GET, POST, HEAD are allowed."),
        ("POST", "/_test/clocks", 404, "the pages of test mode are /_test/clock and /_test/reset"),
        ("POST", "/_test/", 404, "the pages of test mode are /_test/clock and /_test/reset"),
    ],
)
def test_another_page_or_method_is_refused(server, method, path, status, reason):
    answer = server.ask(path, b"" if method == "POST" else None, method, X_Sqsqlite_Test="1")
    assert (answer.status, answer.text.strip()) == (status, reason)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "the header X-Sqsqlite-Test is missing"),
        ({"Host": "attacker.example"}, "the host attacker.example is not one of this server's"),
        ({"Host": "10.0.0.7.attacker.example"}, "is not one of this server's"),
        ({"Host": "localhost.localstack.cloud.attacker.example"}, "is not one of this server's"),
        ({"Origin": "http://attacker.example"}, "the origin http://attacker.example is another site's"),
        ({"Origin": "null"}, "the origin null is another site's"),
        ({"Sec_Fetch_Site": "cross-site"}, "a page of another site"),
        ({"Sec_Fetch_Site": "same-site"}, "a page of another site"),
    ],
)
def test_a_page_of_another_site_can_neither_reset_nor_list_queues(server, client, url, headers, reason):
    marked = {"X_Sqsqlite_Test": "1", **headers} if headers else {}
    answer = server.ask("/_test/reset", b"", **marked)
    assert answer.status == 403
    assert reason in answer.text
    if headers:
        assert server.ask("/?Action=ListQueues", **headers).status == 403
    assert names(client) == ["orders"]


@pytest.mark.parametrize(
    "host",
    [
        *("sqs:9324", "sqs_test", "localhost", "orders.localhost:9324", "10.0.0.7:9324", "[fd00::7]:9324"),
        *("host.docker.internal:9324", "sqs.eu-central-1.localhost.localstack.cloud:4566", "queues.example"),
    ],
)
def test_names_of_this_machine_and_of_its_containers_are_served(host):
    with served(allowed_hosts=("queues.example",)) as server:
        assert server.ask("/_test/clock", Host=host, X_Sqsqlite_Test="1").status == 200
        assert server.ask("/?Action=ListQueues", Host=host).status == 200
        credential = "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/sqs/aws4_request"
        made = server.ask("/?Action=CreateQueue&QueueName=q", b"", Host=host, Authorization=credential)
        assert f"http://{host}/000000000000/q" in made.text


def test_every_address_may_be_listened_on():
    with served(host="0.0.0.0") as server:
        assert server.ask("/health").status == 200


def test_without_test_mode_the_pages_do_not_exist(tmp_path):
    with sqsqlite.connect(tmp_path / "queues.db", synchronous="OFF") as sqs:
        sqs.create_queue("orders")
        with serving(sqs._store) as url:
            plain = Server(url)
            for path, body in (
                ("/_test/clock", b'{"advance": 1}'),
                ("/_test/clock", None),
                ("/_test/reset", b""),
            ):
                assert plain.ask(path, body, X_Sqsqlite_Test="1").status in (400, 404)
        assert [queue.name for queue in sqs.queues()] == ["orders"]


def test_nothing_else_opens_the_files_and_they_go_away(tmp_path):
    path = tmp_path / "queues.db"
    with served(path=path) as server:
        server.client("eu-central-1").create_queue(QueueName="orders")
        for marked in (path, tmp_path / "queues.db.eu-central-1"):
            with pytest.raises(CannotOpen, match="the file of a test run"):
                sqsqlite.connect(marked)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"a letter", b"SQLite format 3\0" + bytes(5_000)])
def test_a_file_that_is_there_is_refused_and_stays(tmp_path, content):
    """As the server's file, or where a region's file would be."""
    first, regional = tmp_path / "letter.db", tmp_path / "queues.db.eu-central-1"
    first.write_bytes(content)
    regional.write_bytes(content)
    with pytest.raises(ValueError, match="this file exists"), served(path=first):
        pass
    with served(path=tmp_path / "queues.db") as server:
        with pytest.raises(ClientError, match="500"):
            server.client("eu-central-1").list_queues()
        server.reset()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == {first: content, regional: content}
