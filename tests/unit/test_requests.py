# SPDX-License-Identifier: Apache-2.0
"""The 23 requests compared with the service model, and the errors that need no look at a queue."""

import botocore.session
import msgspec
import pytest

from sqsqlite import errors
from sqsqlite.contract import responses
from sqsqlite.contract.limits import NATIVE, SQS
from sqsqlite.contract.prepared import prepare_message
from sqsqlite.contract.requests import Request, SendMessageBatchRequestEntry
from sqsqlite.contract.shapes import ACTIONS, parse

MODEL = botocore.session.get_session().get_service_model("sqs")
URL = "http://localhost:9324/000000000000/orders"
ARN = "arn:aws:sqs:us-east-1:000000000000:orders"
HANDLE = {"QueueUrl": URL, "ReceiptHandle": "h"}


def refusal(action, limits=SQS, **params):
    with pytest.raises(errors.SQSError) as refused:
        parse(ACTIONS[action], params, limits)
    return refused.value


def accept(action, limits=SQS, **params):
    return parse(ACTIONS[action], params, limits)


def test_every_action_of_the_service_model_has_its_request():
    assert sorted(ACTIONS) == sorted(MODEL.operation_names)


@pytest.mark.parametrize("action", MODEL.operation_names)
def test_members_and_required_ones_are_the_models(action):
    shape = MODEL.operation_model(action).input_shape
    fields = msgspec.structs.fields(ACTIONS[action])
    assert [field.encode_name for field in fields] == list(shape.members)
    assert [field.encode_name for field in fields if field.required] == shape.required_members


@pytest.mark.parametrize("action", MODEL.operation_names)
def test_results_have_the_models_members(action):
    shape = MODEL.operation_model(action).output_shape
    kind = getattr(responses, f"{action}Response", responses.Empty)
    assert [field.encode_name for field in msgspec.structs.fields(kind)] == list(
        shape.members if shape else ()
    )


def test_a_request_knows_its_action():
    assert {kind.action: kind for kind in ACTIONS.values()} == ACTIONS
    assert all(issubclass(kind, Request) for kind in ACTIONS.values())


@pytest.mark.parametrize(
    ("action", "params", "parameter"),
    [
        ("SendMessage", {"QueueUrl": "", "MessageBody": "x"}, "QueueUrl"),
        ("GetQueueUrl", {"QueueName": ""}, "QueueName"),
        ("DeleteMessage", {"QueueUrl": URL, "ReceiptHandle": ""}, "ReceiptHandle"),
        (
            "ChangeMessageVisibility",
            {"QueueUrl": URL, "ReceiptHandle": "", "VisibilityTimeout": -1},
            "ReceiptHandle",
        ),
        ("TagQueue", {"QueueUrl": URL, "Tags": {}}, "Tags"),
        ("RemovePermission", {"QueueUrl": URL, "Label": ""}, "Label"),
        ("AddPermission", {"QueueUrl": URL, "Label": "", "AWSAccountIds": ["1"], "Actions": ["*"]}, "Label"),
        (
            "AddPermission",
            {"QueueUrl": URL, "Label": "l", "AWSAccountIds": ["1" * 12], "Actions": []},
            "Actions",
        ),
        ("StartMessageMoveTask", {"SourceArn": ""}, "SourceArn"),
        ("CancelMessageMoveTask", {"TaskHandle": ""}, "TaskHandle"),
    ],
)
def test_an_empty_required_parameter_is_missing(action, params, parameter):
    error = refusal(action, **params)
    assert isinstance(error, errors.MissingParameter)
    assert error.message == f"The request must contain the parameter {parameter}."


@pytest.mark.parametrize(
    ("action", "params", "parameter", "low", "high"),
    [
        ("ReceiveMessage", {"QueueUrl": URL}, "MaxNumberOfMessages", 1, 10),
        ("ReceiveMessage", {"QueueUrl": URL}, "VisibilityTimeout", 0, 43_200),
        ("ChangeMessageVisibility", HANDLE, "VisibilityTimeout", 0, 43_200),
        ("ListQueues", {}, "MaxResults", 1, 1_000),
        ("ListDeadLetterSourceQueues", {"QueueUrl": URL}, "MaxResults", 1, 1_000),
        ("ListMessageMoveTasks", {"SourceArn": ARN}, "MaxResults", 1, 10),
        ("StartMessageMoveTask", {"SourceArn": ARN}, "MaxNumberOfMessagesPerSecond", 1, 500),
    ],
)
def test_numbers_have_their_ranges(action, params, parameter, low, high):
    for number in (low, high):
        accept(action, **params, **{parameter: number})
    for number in (low - 1, high + 1):
        error = refusal(action, **params, **{parameter: number})
        assert isinstance(error, errors.InvalidParameterValue)
        assert error.message == (
            f"Value {number} for parameter {parameter} is invalid. "
            f"Reason: Must be between {low} and {high}, if provided."
        )


@pytest.mark.parametrize("seconds", [-1, 21])
def test_a_wait_out_of_range_has_its_own_text(seconds):
    assert refusal("ReceiveMessage", QueueUrl=URL, WaitTimeSeconds=seconds).message == (
        f"Value {seconds} for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."
    )


def test_native_limits_allow_larger_receives_and_longer_waits():
    request = accept("ReceiveMessage", NATIVE, QueueUrl=URL, MaxNumberOfMessages=1_000, WaitTimeSeconds=3_600)
    assert (request.max_number_of_messages, request.wait_time_seconds) == (1_000, 3_600)


def test_both_parameters_for_system_attributes_are_joined():
    request = accept(
        "ReceiveMessage",
        QueueUrl=URL,
        AttributeNames=["SenderId"],
        MessageSystemAttributeNames=["SentTimestamp"],
    )
    assert request.system_attribute_names == {"SenderId", "SentTimestamp"}
    assert accept("ReceiveMessage", QueueUrl=URL).system_attribute_names == frozenset()


@pytest.mark.rule("receive.14")
@pytest.mark.parametrize("parameter", ["AttributeNames", "MessageSystemAttributeNames"])
@pytest.mark.parametrize("name", ["", ".*", "all", "Policy"])
def test_an_unknown_system_attribute_is_refused(parameter, name):
    accept("ReceiveMessage", QueueUrl=URL, **{parameter: ["All"]})
    error = refusal("ReceiveMessage", QueueUrl=URL, **{parameter: ["All", name]})
    assert isinstance(error, errors.InvalidAttributeName)
    assert error.message == f"Unknown Attribute {name}."


@pytest.mark.rule("attempt.10")
def test_a_receive_attempt_id_has_the_form_of_a_group_id():
    accept("ReceiveMessage", QueueUrl=URL, ReceiveRequestAttemptId="a" * 128)
    error = refusal("ReceiveMessage", QueueUrl=URL, ReceiveRequestAttemptId="")
    assert error.message.startswith("Value  for parameter ReceiveRequestAttemptId is invalid.")


def entries(*ids, **more):
    return [{"Id": one, "ReceiptHandle": "h", **more} for one in ids]


BATCHES = ["DeleteMessageBatch", "ChangeMessageVisibilityBatch", "SendMessageBatch"]


def batch(action, ids):
    content = {"MessageBody": "x"} if action == "SendMessageBatch" else {"ReceiptHandle": "h"}
    return {"QueueUrl": URL, "Entries": [{"Id": one, **content} for one in ids]}


@pytest.mark.rule("batch.1")
@pytest.mark.parametrize("action", BATCHES)
def test_a_batch_is_refused_as_a_whole_for_its_shape_in_order(action):
    accept(action, **batch(action, ["a-B_9", "x" * 80, *"cdefghij"]))
    empty = refusal(action, **batch(action, []))
    assert isinstance(empty, errors.EmptyBatchRequest)
    assert empty.message == f"There should be at least one {action}RequestEntry in the request."
    many = refusal(action, **batch(action, ["!"] * 11))
    assert isinstance(many, errors.TooManyEntriesInBatchRequest)
    assert many.message == "Maximum number of entries per request are 10. You have sent 11."
    for bad in ("", "x" * 81, "a b", "a.b", "ü"):
        badly = refusal(action, **batch(action, ["a", "a", bad]))
        assert isinstance(badly, errors.InvalidBatchEntryId)
        assert badly.message == (
            "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
            "It can be at most 80 letters long."
        )
    twice = refusal(action, **batch(action, ["a", "b", "c", "b", "a"]))
    assert isinstance(twice, errors.BatchEntryIdsNotDistinct)
    assert twice.message == "Id b repeated."


@pytest.mark.rule("batch.9")
def test_a_batch_of_messages_has_a_total_size():
    attribute = {"k": {"DataType": "String", "StringValue": "x"}}  # 8 bytes
    sizes = [524_288, 524_280]
    whole = [{"Id": str(size), "MessageBody": "x" * size} for size in sizes]
    whole[1]["MessageAttributes"] = attribute
    accept("SendMessageBatch", QueueUrl=URL, Entries=whole)
    whole[0]["MessageBody"] += "x"
    error = refusal("SendMessageBatch", QueueUrl=URL, Entries=whole)
    assert isinstance(error, errors.BatchRequestTooLong)
    assert error.message == "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."


def test_an_invalid_entry_does_not_refuse_its_batch():
    bad = [{"Id": "a", "MessageBody": "x" * 2_000}, {"Id": "b", "MessageBody": "\x00", "DelaySeconds": -1}]
    long, forbidden = accept("SendMessageBatch", QueueUrl=URL, Entries=bad).entries
    with pytest.raises(errors.InvalidParameterValue, match="cannot be validated"):
        prepare_message(long.message_body, limits=SQS, maximum_size_bytes=1_024, in_batch=True)
    with pytest.raises(errors.InvalidMessageContents):
        prepare_message(
            forbidden.message_body, delay_seconds=forbidden.delay_seconds, limits=SQS, in_batch=True
        )
    assert isinstance(long, SendMessageBatchRequestEntry)


def test_entries_with_handles_check_themselves():
    request = accept(
        "ChangeMessageVisibilityBatch",
        QueueUrl=URL,
        Entries=[
            *entries("a", VisibilityTimeout=43_200),
            *entries("b", VisibilityTimeout=43_201),
            *entries("c"),
            {"Id": "d", "ReceiptHandle": "", "VisibilityTimeout": 1},
        ],
    )
    good, late, bare, empty = request.entries
    assert good.check_entry(SQS) == 43_200
    with pytest.raises(errors.InvalidParameterValue, match="Value 43201 for parameter VisibilityTimeout"):
        late.check_entry(SQS)
    with pytest.raises(errors.MissingParameter, match="VisibilityTimeout"):
        bare.check_entry(SQS)
    with pytest.raises(errors.MissingParameter, match="ReceiptHandle"):
        empty.check_entry(SQS)
    [deletion] = accept(
        "DeleteMessageBatch", QueueUrl=URL, Entries=[{"Id": "a", "ReceiptHandle": ""}]
    ).entries
    with pytest.raises(errors.MissingParameter, match="ReceiptHandle"):
        deletion.check_entry(SQS)


@pytest.mark.rule("queue.6")
def test_the_attribute_fifo_queue_is_read_in_any_letter_case():
    assert accept("CreateQueue", QueueName="a.fifo", Attributes={"FifoQueue": "True"}).fifo
    assert not accept("CreateQueue", QueueName="a").fifo
    assert isinstance(refusal("CreateQueue", QueueName="a.fifo"), errors.InvalidParameterValue)


@pytest.mark.rule("queue.28")
def test_a_malformed_name_names_no_queue():
    assert isinstance(refusal("GetQueueUrl", QueueName="two words"), errors.QueueDoesNotExist)
    assert isinstance(refusal("GetQueueUrl", QueueName="\ud800"), errors.QueueDoesNotExist)
    owner = refusal("GetQueueUrl", QueueName="a", QueueOwnerAWSAccountId="12")
    assert "QueueOwnerAWSAccountId" in owner.message
    accept("ListQueues", QueueNamePrefix="any prefix")
    assert "QueueNamePrefix" in refusal("ListQueues", QueueNamePrefix="\ud800").message


@pytest.mark.rule("tag.11", "tag.12", "tag.15", "tag.16")
@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ({"": "x"}, "Tag keys must be between 1 and 128"),
        ({"k" * 129: "x"}, "Tag keys must be between 1 and 128"),
        ({"k": "x" * 257}, "Tag values must be between 0 and 256"),
        ({"aws:k": "x"}, "reserved"),
        ({"AWS:k": "x"}, "reserved"),
        ({"k!": "x"}, "can only include"),
        ({"k\x1f": "x"}, "can only include"),
        ({"k": "x\x0b"}, "can only include"),
        ({"k": "\ud800"}, "can only include"),
    ],
)
def test_invalid_tags_are_refused_by_each_action(tags, why):
    for error in (
        refusal("TagQueue", QueueUrl=URL, Tags=tags),
        refusal("CreateQueue", QueueName="a", tags=tags),
    ):
        assert isinstance(error, errors.InvalidParameterValue)
        assert why in error.message


@pytest.mark.parametrize("key", ["\ud800", "a\0", "\uffff"], ids=ascii)
def test_tag_keys_to_remove_must_be_texts(key):
    assert isinstance(
        refusal("UntagQueue", QueueUrl=URL, TagKeys=["team", key]), errors.InvalidParameterValue
    )


def test_good_tags_pass():
    accept("TagQueue", QueueUrl=URL, Tags={"Größe _.:/=+-@9": "", "k" * 128: "v" * 256})


@pytest.mark.rule("tag.8")
@pytest.mark.parametrize("keys", [[], [""], ["k" * 129]])
def test_tag_keys_to_remove_have_a_length(keys):
    assert refusal("UntagQueue", QueueUrl=URL, TagKeys=keys).message == (
        "Tag keys must be between 1 and 128 characters in length."
    )


@pytest.mark.parametrize("whitespace", [" ", "\t", "\n", "\u3000"], ids=ascii)
def test_tags_may_hold_whitespace(whitespace):
    accept("TagQueue", QueueUrl=URL, Tags={f"a{whitespace}b": whitespace})


def test_permissions_have_their_limits():
    params = {"QueueUrl": URL, "Label": "l", "AWSAccountIds": ["1" * 12], "Actions": ["SendMessage"] * 7}
    accept("AddPermission", **params)
    over = refusal("AddPermission", **{**params, "Actions": ["SendMessage"] * 8})
    assert isinstance(over, errors.OverLimit)
    assert over.message == "8 Actions were found, maximum allowed is 7."
    assert refusal("AddPermission", **{**params, "AWSAccountIds": []}).message == (
        "Value [] for parameter PrincipalId is invalid. Reason: Unable to verify."
    )
    assert (
        "Value a b for parameter Label is invalid"
        in refusal("AddPermission", **{**params, "Label": "a b"}).message
    )


@pytest.mark.rule("move.15")
def test_the_source_of_a_move_is_an_arn():
    error = refusal("StartMessageMoveTask", SourceArn=URL)
    assert isinstance(error, errors.InvalidParameterValue)
    assert error.message == (
        "You must use this format to specify the SourceArn: "
        "arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
    )


@pytest.mark.parametrize(
    ("action", "parameter"),
    [
        ("GetQueueAttributes", "AttributeNames"),
        ("ReceiveMessage", "AttributeNames"),
        ("ReceiveMessage", "MessageSystemAttributeNames"),
        ("ReceiveMessage", "MessageAttributeNames"),
        ("UntagQueue", "TagKeys"),
    ],
)
def test_a_list_of_names_has_at_most_1000(action, parameter):
    accept(action, QueueUrl=URL, **{parameter: ["All"] * 1_000})
    refused = refusal(action, QueueUrl=URL, **{parameter: ["All"] * 1_001})
    assert isinstance(refused, errors.InvalidParameterValue)
    assert f"parameter {parameter} is invalid. Reason: At most 1000 are taken. You have sent 1001." in str(
        refused
    )


def test_far_too_many_tags_are_refused_before_each_is_checked():
    tags = {str(number): "" for number in range(1_001)}
    for request in ({"QueueUrl": URL, "Tags": tags}, {"QueueName": "orders", "tags": tags}):
        action = "TagQueue" if "Tags" in request else "CreateQueue"
        assert "At most 1000 are taken" in str(refusal(action, **request))
