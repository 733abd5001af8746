# SPDX-License-Identifier: Apache-2.0
"""boto3's own clients and resources, answered from a file. tests/behaviour tests the behaviour that all doors share."""

import contextlib
import socket
import subprocess
import sys
import threading

import boto3
import botocore.exceptions
import pytest
from botocore.stub import Stubber

import sqsqlite
from sqsqlite import ManualClock, boto
from sqsqlite.operators.installed import install_command

REFUSED = (
    r"^{}\(\) got an unexpected keyword argument 'endpoint_url': the options of a file are .*, cooldowns$"
)


@pytest.fixture(autouse=True)
def no_socket(monkeypatch):
    """A test fails if it connects a socket. (Waking other processes binds datagram sockets.)"""

    def refuse(self, address):
        raise AssertionError(f"a socket to {address} was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **_: refuse(None, arguments))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "queues.db"


@pytest.fixture
def clock():
    return ManualClock(patience=600.0)


@pytest.fixture
def client(path, clock):
    with contextlib.closing(boto.client(path, clock=clock, synchronous="NORMAL")) as client:
        yield client


def existing_client(region="eu-central-1"):
    return boto3.Session().client(
        "sqs", region_name=region, aws_access_key_id="of the user", aws_secret_access_key="of the user"
    )


def test_the_client_is_boto3s_own(client):
    assert type(client).__module__ == "botocore.client"
    assert client.meta.service_model.service_name == "sqs"


def test_every_operation_of_the_model_is_answered_without_the_network(client):
    """The answer is a result or an SQS error: no request leaves the process."""
    given = {
        "QueueName": "q",
        "QueueUrl": "q",
        "Entries": [],
        "SourceArn": "arn:aws:sqs:us-east-1:000000000000:q",
    }
    client.create_queue(QueueName="q")
    for operation, method in client.meta.method_to_api_mapping.items():
        shape = client.meta.service_model.operation_model(method).input_shape
        fillers = {"string": "x", "integer": 1, "list": ["x"], "map": {"x": "y"}}
        params = {
            name: given.get(name, fillers[shape.members[name].type_name]) for name in shape.required_members
        }
        if method == "DeleteQueue":
            params["QueueUrl"] = "other"
        with contextlib.suppress(client.exceptions.ClientError):
            answer = getattr(client, operation)(**params)
            assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_modelled_errors_are_caught_by_their_classes(client):
    with pytest.raises(client.exceptions.QueueDoesNotExist) as refused:
        client.get_queue_url(QueueName="nobody")
    assert refused.value.response["Error"] == {
        "Message": "The specified queue does not exist.",
        "Code": "AWS.SimpleQueueService.NonExistentQueue",
        "QueryErrorCode": "QueueDoesNotExist",
        "Type": "Sender",
    }
    metadata = refused.value.response["ResponseMetadata"]
    assert (metadata["HTTPStatusCode"], metadata["RetryAttempts"]) == (400, 0)
    assert metadata["HTTPHeaders"]["x-amzn-query-error"] == "AWS.SimpleQueueService.NonExistentQueue;Sender"
    assert str(refused.value) == (
        "An error occurred (AWS.SimpleQueueService.NonExistentQueue) when calling the GetQueueUrl operation: "
        "The specified queue does not exist."
    )


def test_an_unmodelled_error_is_a_plain_client_error(client):
    url = client.create_queue(QueueName="q")["QueueUrl"]
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        client.receive_message(QueueUrl=url, MaxNumberOfMessages=11)
    assert type(refused.value) is botocore.exceptions.ClientError
    assert refused.value.response["Error"]["Code"] == "InvalidParameterValue"


def test_boto3_itself_reports_invalid_parameters(client):
    with pytest.raises(
        botocore.exceptions.ParamValidationError, match='Missing required parameter in input: "MessageBody"'
    ):
        client.send_message(QueueUrl="q")


def test_binary_attributes_are_bytes_both_ways(client):
    url = client.create_queue(QueueName="q")["QueueUrl"]
    blob = {"DataType": "Binary", "BinaryValue": b"\x00\xff"}
    client.send_message(QueueUrl=url, MessageBody="x", MessageAttributes={"blob": blob})
    [message] = client.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    assert message["MessageAttributes"]["blob"] == blob


def test_each_answer_has_a_request_id_of_its_own(client):
    first, second = (client.list_queues()["ResponseMetadata"] for _ in range(2))
    assert first["RequestId"] != second["RequestId"]
    assert first["HTTPHeaders"]["x-amzn-requestid"] == first["RequestId"]


def test_the_users_own_handlers_run_before_and_after(client):
    """They see the parameters before, and may change the result after."""
    seen = []
    client.meta.events.register(
        "before-parameter-build.sqs.CreateQueue",
        lambda params, **_: params.update(QueueName=f"dev-{params['QueueName']}"),
    )
    client.meta.events.register(
        "after-call.sqs.CreateQueue", lambda parsed, **_: seen.append(parsed["QueueUrl"])
    )
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    assert url.endswith("/dev-orders")
    assert seen == [url]


def test_a_stubber_answers_before_the_file(client):
    with Stubber(client) as stubber:
        stubber.add_response("list_queues", {"QueueUrls": ["stubbed"]})
        assert client.list_queues()["QueueUrls"] == ["stubbed"]
    assert "QueueUrls" not in client.list_queues()


def test_profiles_credentials_and_endpoints_of_the_machine_do_not_count(tmp_path, monkeypatch):
    broken = tmp_path / "config"
    broken.write_text("this is no configuration")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(broken))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(broken))
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    boto._session.cache_clear()  # another test's session has already looked around
    with contextlib.closing(boto.client(tmp_path / "queues.db")) as client:
        assert client.meta.region_name == "us-east-1"
        assert client.create_queue(QueueName="q")["QueueUrl"].endswith("/q")


def test_options_of_connect_take_effect(path, clock):
    with contextlib.closing(boto.client(path, region="eu-west-1", clock=clock)) as client:
        client.create_queue(QueueName="q")
        arn = client.get_queue_attributes(QueueUrl="q", AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        assert (client.meta.region_name, arn) == ("eu-west-1", "arn:aws:sqs:eu-west-1:000000000000:q")
    with pytest.raises(ValueError, match="compat='soft'"):
        boto.client(path, compat="soft")


@pytest.mark.parametrize("make", [boto.client, boto.resource])
def test_the_region_is_given_as_in_boto3(make, path):
    made = make(path, region_name="eu-west-1")
    client = getattr(made.meta, "client", made)
    with contextlib.closing(client):
        client.create_queue(QueueName="q")
        arn = client.get_queue_attributes(QueueUrl="q", AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        assert (client.meta.region_name, arn) == ("eu-west-1", "arn:aws:sqs:eu-west-1:000000000000:q")


@pytest.mark.parametrize("door", [sqsqlite.connect, sqsqlite.client, boto.client, boto.resource])
def test_options_that_mean_nothing_to_a_file_are_refused_by_name(door, path):
    """Those of boto3's too: an endpoint or a key that is passed over would mislead."""
    with pytest.raises(TypeError, match=REFUSED.format(door.__name__)):
        door(path, endpoint_url="elsewhere")
    assert not path.exists()


def test_an_attachment_takes_the_same_options(path):
    with pytest.raises(TypeError, match=REFUSED.format("attach")):
        boto.attach(existing_client(), path, endpoint_url="elsewhere")
    assert not path.exists()


@pytest.mark.parametrize("make", [boto.client, boto.resource])
def test_the_region_has_one_name_in_a_call(make, path):
    with pytest.raises(TypeError, match="region and region_name are the same option"):
        make(path, region="eu-west-1", region_name="eu-west-1")
    assert not path.exists()


def test_an_error_of_the_file_comes_out_as_it_is(tmp_path):
    stranger = tmp_path / "letter.txt"
    stranger.write_text("no database at all, but long enough to be looked at " * 20)
    with pytest.raises(sqsqlite.errors.NotADatabase):
        boto.client(stranger)


def test_closing_the_client_closes_the_file(path):
    client = boto.client(path)
    client.create_queue(QueueName="q")
    client.close()
    client.close()
    with sqsqlite.connect(path) as sqs:
        assert [queue.name for queue in sqs.queues()] == ["q"]


def test_a_closed_client_raises_an_error_and_does_not_use_the_network(path):
    """Also a call that would only read: nothing contacts the made-up endpoint."""
    client = boto.client(path)
    client.close()
    with pytest.raises(sqsqlite.errors.StoreClosed):
        client.list_queues()
    with pytest.raises(sqsqlite.errors.StoreClosed):
        client.create_queue(QueueName="q")


def test_a_resource_has_boto3s_queues_and_messages(path, clock):
    resource = boto.resource(path, clock=clock, synchronous="NORMAL")
    with contextlib.closing(resource.meta.client):
        queue = resource.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "40"})
        assert queue.attributes["VisibilityTimeout"] == "40"
        assert [found.url for found in resource.queues.all()] == [queue.url]
        assert resource.get_queue_by_name(QueueName="orders").url == queue.url
        queue.send_messages(Entries=[{"Id": str(n), "MessageBody": f"body {n}"} for n in range(3)])
        messages = queue.receive_messages(MaxNumberOfMessages=3, MessageSystemAttributeNames=["All"])
        assert [message.body for message in messages] == ["body 0", "body 1", "body 2"]
        messages[0].delete()
        messages[1].change_visibility(VisibilityTimeout=0)
        assert [message.body for message in queue.receive_messages(MaxNumberOfMessages=10)] == ["body 1"]
        queue.purge()
        queue.reload()
        assert queue.attributes["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_dead_letter_sources_of_a_resources_queue(path):
    resource = boto.resource(path)
    with contextlib.closing(resource.meta.client):
        dead = resource.create_queue(QueueName="dead")
        policy = f'{{"deadLetterTargetArn": "{dead.attributes["QueueArn"]}", "maxReceiveCount": 3}}'
        source = resource.create_queue(QueueName="source", Attributes={"RedrivePolicy": policy})
        assert [found.url for found in dead.dead_letter_source_queues.all()] == [source.url]


def test_an_attached_client_keeps_its_class_and_is_answered_from_the_file(path, clock):
    client = existing_client()
    with boto.attach(client, path, clock=clock):
        url = client.create_queue(QueueName="q")["QueueUrl"]
        client.send_message(QueueUrl=url, MessageBody="from the user's own client")
        [message] = client.receive_message(QueueUrl=url)["Messages"]
        assert message["Body"] == "from the user's own client"


def test_a_detached_client_talks_to_the_network_again(path):
    client = existing_client()
    attachment = boto.attach(client, path)
    client.list_queues()
    attachment.close()
    attachment.close()
    with pytest.raises(botocore.exceptions.HTTPClientError, match="a socket to"):
        client.list_queues()


def test_a_client_is_attached_to_one_file_at_a_time(tmp_path):
    client = existing_client()
    with (
        boto.attach(client, tmp_path / "first.db"),
        pytest.raises(ValueError, match="is attached to a file already"),
    ):
        boto.attach(client, tmp_path / "second.db")
    with boto.attach(client, tmp_path / "second.db"):
        client.create_queue(QueueName="in-the-second")
    with sqsqlite.connect(tmp_path / "second.db") as sqs:
        assert [queue.name for queue in sqs.queues()] == ["in-the-second"]


def test_an_attached_resource_is_answered_from_the_file(path):
    resource = boto3.Session().resource(
        "sqs", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    with boto.attach(resource, path):
        assert resource.create_queue(QueueName="q").attributes["VisibilityTimeout"] == "30"


@pytest.mark.parametrize("kind", ["boto3", "botocore"])
def test_an_attached_session_makes_clients_that_are_answered_from_the_file(kind, path):
    session = boto3.Session()
    attached = session if kind == "boto3" else session._session
    with boto.attach(attached, path):
        client = session.client(
            "sqs", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        assert client.create_queue(QueueName="q")["QueueUrl"].endswith("/000000000000/q")


@pytest.mark.parametrize(
    "target",
    [None, "sqs", boto3.Session().client("sts", region_name="us-east-1")],
    ids=["None", "a text", "sts"],
)
def test_only_sqs_can_be_attached(target, path):
    with pytest.raises(TypeError, match="is no SQS client"):
        boto.attach(target, path)
    assert not path.exists()


def test_other_threads_can_send_through_the_client_during_a_long_poll(client, clock):
    url = client.create_queue(QueueName="q")["QueueUrl"]
    received = []
    waiting = threading.Thread(
        target=lambda: received.append(client.receive_message(QueueUrl=url, WaitTimeSeconds=20))
    )
    waiting.start()
    clock.until_waiting()
    client.send_message(QueueUrl=url, MessageBody="at last")
    waiting.join(300)
    assert [message["Body"] for message in received[0]["Messages"]] == ["at last"]


def test_import_error_without_boto3_names_the_package_to_install():
    program = "import sys; sys.modules['botocore'] = None; import sqsqlite.boto"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=600
    )
    assert f"sqsqlite.boto needs boto3: {install_command('boto3')}" in run.stderr.strip().splitlines()[-1]


def test_attach_needs_botocore_but_not_boto3(path):
    """So a project that uses only botocore or aiobotocore can use it."""
    program = (
        "import sys; sys.modules['boto3'] = None\n"
        "import botocore.session, sqsqlite.boto\n"
        "session = botocore.session.Session()\n"
        "attachment = sqsqlite.boto.attach(session, sys.argv[1])\n"
        "client = session.create_client('sqs', 'us-east-1', aws_access_key_id='a', aws_secret_access_key='b')\n"
        "print(client.create_queue(QueueName='q')['QueueUrl'])\n"
        "attachment.close()"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False, timeout=600
    )
    assert run.stdout.strip().endswith("/q"), run.stderr
