# SPDX-License-Identifier: Apache-2.0
"""Errors as callers see them: classes, codes, and parameters of the wrong shape."""

import pytest

from tests.behaviour.refusals import CATALOGUE, INVALID, UNMODELLED

KMS = (
    "KmsAccessDenied",
    "KmsDisabled",
    "KmsInvalidKeyUsage",
    "KmsInvalidState",
    "KmsNotFound",
    "KmsOptInRequired",
    "KmsThrottled",
)
RESERVED = (
    "InvalidAddress",
    "InvalidIdFormat",
    "InvalidSecurity",
    "RequestThrottled",
    "ResourceNotFoundException",
)


def problem(sqs, action, **params):
    """The error text for parameters of the wrong shape, before a request.

    Both boto3 and our client use boto3's words.
    """
    with pytest.raises(Exception, match=r"\AParameter validation failed:\n") as refused:
        getattr(sqs, action)(**params)
    assert type(refused.value).__name__ == "ParamValidationError"
    assert not isinstance(refused.value, sqs.exceptions.ClientError)
    return str(refused.value).partition("\n")[2]


@pytest.mark.parametrize("shape", sorted({*CATALOGUE, *KMS, *RESERVED} - UNMODELLED))
def test_every_modelled_error_has_a_class_under_exceptions(sqs, shape):
    """Also those that a file never raises, for code that catches them."""
    assert issubclass(getattr(sqs.exceptions, shape), sqs.exceptions.ClientError)


def test_an_unknown_error_has_no_class(sqs):
    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = sqs.exceptions.NoSuchThing


def test_one_clause_catches_every_error_of_sqs(sqs):
    with pytest.raises(sqs.exceptions.ClientError):
        sqs.get_queue_url(QueueName="nobody")
    with pytest.raises(sqs.exceptions.ClientError):
        sqs.list_queues(MaxResults=0)


@pytest.mark.rule("error.13")
def test_an_errors_text_names_code_operation_and_reason(sqs):
    with pytest.raises(sqs.exceptions.ClientError) as refused:
        sqs.list_queues(MaxResults=0)
    assert str(refused.value) == (
        "An error occurred (InvalidParameterValue) when calling the ListQueues operation: "
        "Value 0 for parameter MaxResults is invalid. Reason: Must be between 1 and 1000, if provided."
    )
    assert refused.value.operation_name == "ListQueues"


@pytest.mark.rule("error.9", "error.11", "error.12")
def test_errors_whose_code_is_their_shape_also_have_a_lower_case_message(queue):
    """boto3 adds it for ReceiptHandleIsInvalid, but not if the Query code has another name."""
    with pytest.raises(queue.client.exceptions.ReceiptHandleIsInvalid) as refused:
        queue.delete({"ReceiptHandle": "x"})
    assert refused.value.response["message"] == refused.value.response["Error"]["Message"]
    with pytest.raises(queue.client.exceptions.QueueDoesNotExist) as refused:
        queue.client.get_queue_url(QueueName="nobody")
    assert "message" not in refused.value.response
    with pytest.raises(queue.client.exceptions.ClientError) as refused:
        queue.receive(11)
    assert "message" not in refused.value.response
    assert refused.value.response["Error"]["QueryErrorCode"] == INVALID


@pytest.mark.rule("error.18")
def test_an_answer_has_its_metadata(sqs):
    metadata = sqs.list_queues()["ResponseMetadata"]
    assert (metadata["HTTPStatusCode"], metadata["RetryAttempts"]) == (200, 0)
    assert metadata["RequestId"]


@pytest.mark.rule("error.14")
def test_a_missing_member_is_reported_before_the_request(sqs):
    assert problem(sqs, "send_message", QueueUrl="nobody") == (
        'Missing required parameter in input: "MessageBody"'
    )


@pytest.mark.rule("error.14")
def test_a_missing_nested_member_is_reported_with_its_path(sqs):
    attributes = {"a": {"StringValue": "x"}}
    assert (
        problem(sqs, "send_message", QueueUrl="q", MessageBody="x", MessageAttributes=attributes)
        == 'Missing required parameter in MessageAttributes.a: "DataType"'
    )
    assert (
        problem(sqs, "delete_message_batch", QueueUrl="q", Entries=[{"Id": "a"}])
        == 'Missing required parameter in Entries[0]: "ReceiptHandle"'
    )


@pytest.mark.rule("error.15")
def test_an_unknown_member_is_reported_with_the_known_ones(sqs):
    assert problem(sqs, "purge_queue", QueueUrl="q", Force=True) == (
        'Unknown parameter in input: "Force", must be one of: QueueUrl'
    )


@pytest.mark.rule("error.16")
def test_a_member_of_the_wrong_type_is_reported_with_its_value(sqs):
    assert problem(sqs, "purge_queue", QueueUrl=1) == (
        "Invalid type for parameter QueueUrl, value: 1, type: <class 'int'>, valid types: <class 'str'>"
    )
    assert problem(sqs, "receive_message", QueueUrl="q", WaitTimeSeconds="20") == (
        "Invalid type for parameter WaitTimeSeconds, value: 20, type: <class 'str'>, valid types: <class 'int'>"
    )


@pytest.mark.rule("error.17")
def test_none_is_not_the_same_as_left_out(sqs):
    assert problem(sqs, "receive_message", QueueUrl="q", WaitTimeSeconds=None) == (
        "Invalid type for parameter WaitTimeSeconds, value: None, type: <class 'NoneType'>, "
        "valid types: <class 'int'>"
    )


@pytest.mark.rule("error.16")
def test_all_problems_are_reported_at_once(sqs):
    assert problem(sqs, "change_message_visibility", QueueUrl=1, ReceiptHandle="x").splitlines() == [
        'Missing required parameter in input: "VisibilityTimeout"',
        "Invalid type for parameter QueueUrl, value: 1, type: <class 'int'>, valid types: <class 'str'>",
    ]


@pytest.mark.rule("error.24")
def test_every_action_of_the_api_is_a_method(sqs):
    """The 23 of API version 2012-11-05, by boto3's names."""
    actions = {
        "add_permission",
        "cancel_message_move_task",
        "change_message_visibility",
        "change_message_visibility_batch",
        "create_queue",
        "delete_message",
        "delete_message_batch",
        "delete_queue",
        "get_queue_attributes",
        "get_queue_url",
        "list_dead_letter_source_queues",
        "list_message_move_tasks",
        "list_queue_tags",
        "list_queues",
        "purge_queue",
        "receive_message",
        "remove_permission",
        "send_message",
        "send_message_batch",
        "set_queue_attributes",
        "start_message_move_task",
        "tag_queue",
        "untag_queue",
    }
    assert len(actions) == 23
    assert [action for action in actions if not callable(getattr(sqs, action, None))] == []


def test_only_the_two_listings_have_paginators(sqs):
    assert sqs.can_paginate("list_queues")
    assert sqs.can_paginate("list_dead_letter_source_queues")
    assert not sqs.can_paginate("receive_message")
