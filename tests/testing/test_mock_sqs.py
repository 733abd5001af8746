# SPDX-License-Identifier: Apache-2.0
"""`mock_sqs` as moto's users write it: decorator, fixture, class, a global client; nesting, threads, the end."""

import asyncio
import os
import threading
import unittest

import boto3
import botocore.config
import botocore.exceptions
import pytest
from botocore.stub import Stubber

import sqsqlite
from sqsqlite.testing import ACCOUNT_ID, MovableClock, mock_sqs

# Made before any mock, as an application's module does it.
GLOBAL = boto3.client(
    "sqs", region_name="eu-central-1", aws_access_key_id="none", aws_secret_access_key="none"
)


def send_and_receive(client, name="orders"):
    url = client.create_queue(QueueName=name)["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="hello")
    return [message["Body"] for message in client.receive_message(QueueUrl=url)["Messages"]]


def client(region="us-east-1"):
    return boto3.client("sqs", region_name=region)


@mock_sqs
def test_a_decorated_function():
    assert send_and_receive(client()) == ["hello"]


@mock_sqs(compat="docs")
def test_a_decorated_function_with_options(tmp_path):
    """pytest still finds the fixtures of the function's signature."""
    assert tmp_path.exists()
    assert send_and_receive(client()) == ["hello"]


@mock_sqs()
def test_each_call_begins_without_queues():
    assert "QueueUrls" not in client().list_queues()


@pytest.fixture
def orders():
    with mock_sqs():
        yield boto3.resource("sqs", region_name="us-east-1").create_queue(QueueName="orders")


def test_a_fixture_and_a_resource(orders):
    orders.send_message(MessageBody="hello")
    (message,) = orders.receive_messages()
    assert message.body == "hello"
    message.delete()
    assert not orders.receive_messages(VisibilityTimeout=0)


@pytest.fixture
@mock_sqs
def decorated_fixture():
    yield client()  # noqa: PT022 # the mock ends after this


def test_a_decorated_fixture(decorated_fixture):
    assert send_and_receive(decorated_fixture) == ["hello"]


def test_a_client_from_before_the_mock():
    with mock_sqs():
        assert send_and_receive(GLOBAL) == ["hello"]
        assert GLOBAL.get_queue_url(QueueName="orders")["QueueUrl"] == (
            f"https://sqs.eu-central-1.amazonaws.com/{ACCOUNT_ID}/orders"
        )
    with mock_sqs(), pytest.raises(GLOBAL.exceptions.QueueDoesNotExist):
        GLOBAL.get_queue_url(QueueName="orders")


@mock_sqs
class TestPlainClass:
    def setup_method(self):
        self.url = client().create_queue(QueueName="orders")["QueueUrl"]

    def test_set_up_belongs_to_the_mock(self):
        assert client().list_queues()["QueueUrls"] == [self.url]

    @pytest.mark.parametrize("body", ["a", "b"])
    def test_each_test_has_queues_of_its_own(self, body):
        client().send_message(QueueUrl=self.url, MessageBody=body)
        (message,) = client().receive_message(QueueUrl=self.url, MaxNumberOfMessages=10)["Messages"]
        assert message["Body"] == body


@mock_sqs
class TestWithoutSetUp:
    def test_it_is_within_a_mock(self):
        assert send_and_receive(client()) == ["hello"]


def test_a_class_whose_set_up_fails_leaves_no_mock():
    @mock_sqs
    class Fails:
        def setup_method(self, method):
            raise RuntimeError(method)

    with pytest.raises(RuntimeError, match="the test"):
        Fails().setup_method("the test")
    with mock_sqs(account_id="111111111111"):  # another mock would refuse these options
        pass


@mock_sqs
class TestUnittest(unittest.TestCase):
    def setUp(self):
        self.url = client().create_queue(QueueName="orders")["QueueUrl"]

    def tearDown(self):
        client().delete_queue(QueueUrl=self.url)

    def test_set_up_and_tear_down_belong_to_the_mock(self):
        assert client().list_queues()["QueueUrls"] == [self.url]

    def test_each_test_has_queues_of_its_own(self):
        self.test_set_up_and_tear_down_belong_to_the_mock()


class TestStartAndStop(unittest.TestCase):
    def setUp(self):
        self.mock = mock_sqs().start()
        self.addCleanup(self.mock.stop)

    def test_start(self):
        assert send_and_receive(client()) == ["hello"]


def test_a_coroutine():
    @mock_sqs
    async def work():
        return await asyncio.to_thread(send_and_receive, client())

    assert asyncio.run(work()) == ["hello"]


def test_an_async_generator():
    @mock_sqs
    async def fixture():
        yield client()

    async def work():
        return [send_and_receive(made) async for made in fixture()]

    assert asyncio.run(work()) == [["hello"]]


def test_regions_have_queues_of_their_own():
    with mock_sqs():
        client("us-east-1").create_queue(QueueName="orders")
        with pytest.raises(botocore.exceptions.ClientError):
            client("eu-west-1").get_queue_url(QueueName="orders")
        url = client("eu-west-1").create_queue(QueueName="orders")["QueueUrl"]
        arn = client("eu-west-1").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        assert arn["Attributes"]["QueueArn"] == f"arn:aws:sqs:eu-west-1:{ACCOUNT_ID}:orders"


def test_a_region_and_credentials_are_not_needed(monkeypatch):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    with mock_sqs():
        assert send_and_receive(boto3.Session().client("sqs")) == ["hello"]
        assert boto3.Session().region_name == "us-east-1"
    assert not [name for name in os.environ if name.startswith("AWS_")]


def test_a_region_in_the_environment_stays(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "sa-east-1")
    with mock_sqs():
        assert "sa-east-1" in boto3.Session().client("sqs").create_queue(QueueName="q")["QueueUrl"]
    assert os.environ["AWS_DEFAULT_REGION"] == "sa-east-1"


def test_the_clock_ends_a_visibility_timeout():
    with mock_sqs() as mock:
        url = client().create_queue(QueueName="orders")["QueueUrl"]
        client().send_message(QueueUrl=url, MessageBody="hello")
        assert client().receive_message(QueueUrl=url)["Messages"]
        assert "Messages" not in client().receive_message(QueueUrl=url)
        mock.clock.advance(30)
        assert client().receive_message(QueueUrl=url)["Messages"]


def test_a_clock_that_does_not_wait_ends_a_long_poll_at_once():
    """Whatever other threads the process has."""
    with mock_sqs(clock=MovableClock(waits=False)) as mock:
        url = client().create_queue(QueueName="orders")["QueueUrl"]
        before = mock.clock.now_ms()
        for _ in range(36):
            assert "Messages" not in client().receive_message(QueueUrl=url, WaitTimeSeconds=20)
        assert mock.clock.now_ms() - before >= 36 * 20_000
        client().send_message(QueueUrl=url, MessageBody="delayed", DelaySeconds=15)
        assert client().receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]


def test_no_pause_after_a_deletion_and_a_purge():
    with mock_sqs():
        for _ in range(2):
            url = client().create_queue(QueueName="orders")["QueueUrl"]
            client().purge_queue(QueueUrl=url)
            client().purge_queue(QueueUrl=url)
            client().delete_queue(QueueUrl=url)
    with mock_sqs(cooldowns=True):
        url = client().create_queue(QueueName="orders")["QueueUrl"]
        client().delete_queue(QueueUrl=url)
        with pytest.raises(client().exceptions.QueueDeletedRecently):
            client().create_queue(QueueName="orders")


def test_an_inner_mock_joins_the_outer_one():
    with mock_sqs() as outer:
        url = client().create_queue(QueueName="orders")["QueueUrl"]
        with mock_sqs() as inner:
            assert inner.clock is outer.clock
            assert client().list_queues()["QueueUrls"] == [url]
        assert client().list_queues()["QueueUrls"] == [url]
        with pytest.raises(ValueError, match=r"joins the outer one"), mock_sqs(compat="docs"):
            pass
        assert client().list_queues()["QueueUrls"] == [url]


def test_reset_removes_all_queues():
    with mock_sqs() as mock:
        client().create_queue(QueueName="a")
        client("eu-west-1").create_queue(QueueName="a")
        mock.reset()
        assert "QueueUrls" not in client().list_queues()
        assert "QueueUrls" not in client("eu-west-1").list_queues()


def test_threads_share_the_mock():
    with mock_sqs():
        url = client().create_queue(QueueName="orders")["QueueUrl"]
        shared = client()
        threads = [
            threading.Thread(target=shared.send_message, kwargs={"QueueUrl": url, "MessageBody": str(n)})
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        attributes = client().get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert attributes["ApproximateNumberOfMessages"] == "8"


def test_a_stubber_answers_first():
    with mock_sqs():
        stubbed = client()
        with Stubber(stubbed) as stubber:
            stubber.add_response("list_queues", {"QueueUrls": ["stubbed"]})
            assert stubbed.list_queues()["QueueUrls"] == ["stubbed"]
        assert "QueueUrls" not in stubbed.list_queues()


def test_a_client_on_a_file_keeps_its_file(tmp_path):
    on_file = sqsqlite.boto.client(tmp_path / "own.db")
    on_file.create_queue(QueueName="own")
    with mock_sqs():
        assert on_file.list_queues()["QueueUrls"] == ["http://localhost:9324/000000000000/own"]
        assert "QueueUrls" not in client().list_queues()
    on_file.close()


def test_after_the_end_a_client_goes_to_the_network_again():
    """An address where nothing listens: the error is the network's."""
    made = boto3.client(
        "sqs",
        region_name="us-east-1",
        endpoint_url="http://127.0.0.1:9",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=botocore.config.Config(retries={"max_attempts": 0}),
    )
    with mock_sqs():
        assert send_and_receive(made) == ["hello"]
    with pytest.raises(botocore.exceptions.EndpointConnectionError):
        made.list_queues()


def test_other_services_are_left_alone():
    other = boto3.client(
        "s3",
        region_name="us-east-1",
        endpoint_url="http://127.0.0.1:9",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=botocore.config.Config(retries={"max_attempts": 0}),
    )
    with mock_sqs(), pytest.raises(botocore.exceptions.EndpointConnectionError):
        other.list_buckets()


def test_a_failed_test_leaves_no_mock():
    @mock_sqs
    def fails():
        raise RuntimeError("as tests do")

    with pytest.raises(RuntimeError, match="as tests do"):
        fails()
    with pytest.raises(RuntimeError, match="was not started"):
        mock_sqs().reset()


def test_a_mock_that_was_not_started_says_so():
    for use in (lambda mock: mock.clock, lambda mock: mock.reset(), lambda mock: mock.stop()):
        with pytest.raises(RuntimeError, match="was not started"):
            use(mock_sqs())


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"acount_id": "1"}, TypeError, "acount_id"),
        ({"account_id": "12"}, ValueError, "12 digits"),
        ({"compat": "moto"}, ValueError, "docs, aws"),
        ({"limits": "none"}, ValueError, "sqs, native"),
    ],
)
def test_bad_options(options, error, says):
    with pytest.raises(error, match=says), mock_sqs(**options):
        client().list_queues()
    assert send_with_a_fresh_mock() == ["hello"]


def send_with_a_fresh_mock():
    with mock_sqs():
        return send_and_receive(client())


def test_what_cannot_be_decorated():
    with pytest.raises(TypeError, match="a function or a class"):
        mock_sqs(3)


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with mock_sqs():
        client().create_queue(QueueName="q")
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
