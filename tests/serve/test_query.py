# SPDX-License-Identifier: Apache-2.0
"""Only the Query protocol has these: second names of parameters, and answers in JSON for clients that accept it.

JSON nests a result as XML does, but lists and maps have their names from the service model. A map is a list of pairs.
"""

import json
from urllib.parse import urlencode

import pytest

import sqsqlite
from tests.serve.raw import FORM, ask, json_of, post
from tests.serve.serving import serving


@pytest.fixture
def url(store):
    with serving(store) as found:
        ask(found, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
        yield found


def query(url, action, headers=b"", **parameters):
    """Send a form, for queue q unless the parameters name another."""
    form = urlencode({"Action": action, "QueueUrl": "q", **parameters})
    return ask(url, post(form.encode(), FORM + headers))


def tags(url, queue="q"):
    answer = ask(url, json_of(b"ListQueueTags", json.dumps({"QueueUrl": queue}).encode()))
    return json.loads(answer.body).get("Tags")


@pytest.mark.parametrize("element", ["Tag", "Tags"])
def test_tag_queue_takes_tags_under_either_name(url, element):
    """Older Java SDKs send the plural, and Amazon accepts it."""
    pairs = {"Key": "team", "Value": "blue"}, {"Key": "empty", "Value": ""}
    form = {
        f"{element}.{place}.{name}": text
        for place, pair in enumerate(pairs, 1)
        for name, text in pair.items()
    }
    answer = query(url, "TagQueue", **form)
    assert (answer.status, tags(url)) == (200, {"team": "blue", "empty": ""})


@pytest.mark.parametrize("element", ["TagKey", "TagKeys"])
def test_untag_queue_takes_keys_under_either_name(url, element):
    query(url, "TagQueue", **{"Tag.1.Key": "a", "Tag.1.Value": "1", "Tag.2.Key": "b", "Tag.2.Value": "2"})
    answer = query(url, "UntagQueue", **{f"{element}.1": "a"})
    assert (answer.status, tags(url)) == (200, {"b": "2"})


@pytest.mark.parametrize("element", ["Tag", "Tags"])
def test_create_queue_takes_tags_under_one_name(url, element):
    """No SDK sends the plural here, and no recorded answer shows that Amazon accepts it."""
    query(url, "CreateQueue", QueueName="new", **{f"{element}.1.Key": "a", f"{element}.1.Value": "1"})
    assert tags(url, "new") == ({"a": "1"} if element == "Tag" else None)


def in_json(url, action, **parameters):
    """The whole answer and its result, if the action has one."""
    answer = query(url, action, b"Accept: application/json\r\n", **parameters)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json"), answer
    [(name, envelope)] = json.loads(answer.body).items()
    assert name == f"{action}Response"
    assert envelope.pop("ResponseMetadata") == {"RequestId": answer.headers["x-amzn-requestid"]}
    assert envelope.keys() <= {f"{action}Result"}
    return envelope.get(f"{action}Result")


def arn(name):
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


def test_queue_actions_answer_json(url):
    """Attributes and tags are pairs."""
    where = {"QueueUrl": "http://localhost/000000000000/dead"}
    assert in_json(url, "CreateQueue", QueueName="dead") == where
    assert in_json(url, "GetQueueUrl", QueueName="dead") == where
    policy = json.dumps({"deadLetterTargetArn": arn("dead"), "maxReceiveCount": 1})
    setting = {"Attribute.1.Name": "RedrivePolicy", "Attribute.1.Value": policy}
    assert in_json(url, "SetQueueAttributes", **setting) is None
    names = {"AttributeName.1": "DelaySeconds", "AttributeName.2": "QueueArn"}
    assert in_json(url, "GetQueueAttributes", **names) == {
        "Attributes": [{"Name": "DelaySeconds", "Value": "0"}, {"Name": "QueueArn", "Value": arn("q")}]
    }
    assert in_json(url, "ListQueues", QueueNamePrefix="d") == {"QueueUrls": [where["QueueUrl"]]}
    sources = in_json(url, "ListDeadLetterSourceQueues", QueueUrl="dead")
    assert sources == {"queueUrls": ["http://localhost/000000000000/q"]}
    assert in_json(url, "TagQueue", **{"Tag.1.Key": "Attributes", "Tag.1.Value": "1"}) is None
    assert in_json(url, "ListQueueTags") == {"Tags": [{"Key": "Attributes", "Value": "1"}]}
    assert in_json(url, "UntagQueue", **{"TagKey.1": "Attributes"}) is None
    assert in_json(url, "ListQueueTags") == {}
    permission = {"Label": "a", "AWSAccountId.1": "111111111111", "ActionName.1": "SendMessage"}
    assert in_json(url, "AddPermission", **permission) is None
    assert in_json(url, "RemovePermission", Label="a") is None
    assert in_json(url, "PurgeQueue") is None
    assert in_json(url, "DeleteQueue") is None


def test_message_actions_answer_json(url):
    """The member is `messages`, in lower case. Attributes are pairs, and their values have members."""
    attributes = {
        "MessageAttribute.1.Name": "Attributes",
        "MessageAttribute.1.Value.DataType": "Binary",
        "MessageAttribute.1.Value.BinaryValue": "AAE=",
    }
    sent = in_json(url, "SendMessage", MessageBody="<a>", **attributes)
    assert sent.keys() == {"MD5OfMessageBody", "MD5OfMessageAttributes", "MessageId"}
    asked = {"AttributeName.1": "ApproximateReceiveCount", "MessageAttributeName.1": "All"}
    [message] = in_json(url, "ReceiveMessage", **asked)["messages"]
    handle = message.pop("ReceiptHandle")
    assert message == {
        "MessageId": sent["MessageId"],
        "MD5OfBody": sent["MD5OfMessageBody"],
        "Body": "<a>",
        "Attributes": [{"Name": "ApproximateReceiveCount", "Value": "1"}],
        "MD5OfMessageAttributes": sent["MD5OfMessageAttributes"],
        "MessageAttributes": [{"Name": "Attributes", "Value": {"BinaryValue": "AAE=", "DataType": "Binary"}}],
    }
    assert in_json(url, "ReceiveMessage") == {}
    assert in_json(url, "ChangeMessageVisibility", ReceiptHandle=handle, VisibilityTimeout=9) is None
    assert in_json(url, "DeleteMessage", ReceiptHandle=handle) is None


def test_batches_answer_json(url):
    def entries(action, *members):
        return {
            f"{action}RequestEntry.{place}.{name}": text
            for place, entry in enumerate(members, 1)
            for name, text in {"Id": f"e{place}", **entry}.items()
        }

    sends = entries("SendMessageBatch", {"MessageBody": "a"}, {"MessageBody": "b", "DelaySeconds": 901})
    answer = in_json(url, "SendMessageBatch", **sends)
    [successful], [failed] = answer["Successful"], answer["Failed"]
    assert successful.keys() == {"Id", "MessageId", "MD5OfMessageBody"}
    assert (failed["Id"], failed["SenderFault"], failed["Code"]) == ("e2", True, "InvalidParameterValue")
    [message] = in_json(url, "ReceiveMessage")["messages"]
    held = {"ReceiptHandle": message["ReceiptHandle"]}
    change = entries("ChangeMessageVisibilityBatch", {**held, "VisibilityTimeout": 9})
    assert in_json(url, "ChangeMessageVisibilityBatch", **change) == {"Successful": [{"Id": "e1"}]}
    delete = entries("DeleteMessageBatch", held)
    assert in_json(url, "DeleteMessageBatch", **delete) == {"Successful": [{"Id": "e1"}]}


def test_move_tasks_answer_json(url):
    policy = json.dumps({"deadLetterTargetArn": arn("q"), "maxReceiveCount": 1})
    setting = {"Attribute.1.Name": "RedrivePolicy", "Attribute.1.Value": policy}
    in_json(url, "CreateQueue", QueueName="source", **setting)
    for name in "ab":
        in_json(url, "SendMessage", MessageBody=name)
    slowly = {"DestinationArn": arn("source"), "MaxNumberOfMessagesPerSecond": 1}
    task = in_json(url, "StartMessageMoveTask", SourceArn=arn("q"), **slowly)
    assert task.keys() == {"TaskHandle"}
    [result] = in_json(url, "ListMessageMoveTasks", SourceArn=arn("q"))["Results"]
    assert (result["Status"], result["MaxNumberOfMessagesPerSecond"]) == ("RUNNING", 1)
    cancelled = in_json(url, "CancelMessageMoveTask", **task)
    assert list(cancelled) == ["ApproximateNumberOfMessagesMoved"]


def test_errors_are_json_too(url):
    answer = query(url, "DeleteMessage", b"Accept: application/json\r\n", ReceiptHandle="x")
    assert (answer.status, answer.headers["content-type"]) == (404, "application/json")
    assert json.loads(answer.body) == {
        "Error": {
            "Type": "Sender",
            "Code": "ReceiptHandleIsInvalid",
            "Message": 'The input receipt handle "x" is not a valid receipt handle.',
            "Detail": None,
        },
        "RequestId": answer.headers["x-amzn-requestid"],
    }


def test_clients_that_do_not_accept_json_get_xml(url):
    for accept in (b"", b"Accept: */*\r\n", b"Accept: text/xml\r\n"):
        answer = query(url, "ListQueues", accept)
        assert answer.headers["content-type"] == "text/xml"
        assert b"<ListQueuesResult><QueueUrl>" in answer.body


@pytest.mark.parametrize(("limits", "most"), [("sqs", 1_000), ("native", 5_000)])
def test_form_with_more_parameters_than_any_action_takes_is_refused(tmp_path, limits, most):
    """Thousands of tiny parameters in a short form would keep other requests waiting."""
    with sqsqlite.connect(tmp_path / "limited.db", limits=limits) as sqs, serving(sqs._store) as url:
        form = b"Action=ListQueues" + b"&a=" * (most - 1)
        assert ask(url, post(form, FORM)).status == 200
        refused = ask(url, post(form + b"&a=", FORM))
        assert (refused.status, f"More than {most} parameters".encode() in refused.body) == (400, True)
