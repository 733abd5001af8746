# SPDX-License-Identifier: Apache-2.0
"""SQS's error catalogue, and a check of a refused request against all parts of its error."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# Shape (what boto3's class and `QueryErrorCode` are called) -> Query code (boto3's `Error.Code`) and HTTP status.
# Source: the SQS service model, and the errors sections of the API reference.
CATALOGUE = {
    "BatchEntryIdsNotDistinct": ("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400),
    "BatchRequestTooLong": ("AWS.SimpleQueueService.BatchRequestTooLong", 400),
    "EmptyBatchRequest": ("AWS.SimpleQueueService.EmptyBatchRequest", 400),
    "InvalidAttributeName": ("InvalidAttributeName", 400),
    "InvalidAttributeValue": ("InvalidAttributeValue", 400),
    "InvalidBatchEntryId": ("AWS.SimpleQueueService.InvalidBatchEntryId", 400),
    "InvalidMessageContents": ("InvalidMessageContents", 400),
    "MessageNotInflight": ("AWS.SimpleQueueService.MessageNotInflight", 400),
    "OverLimit": ("OverLimit", 403),
    "PurgeQueueInProgress": ("AWS.SimpleQueueService.PurgeQueueInProgress", 403),
    "QueueDeletedRecently": ("AWS.SimpleQueueService.QueueDeletedRecently", 400),
    "QueueDoesNotExist": ("AWS.SimpleQueueService.NonExistentQueue", 400),
    "QueueNameExists": ("QueueAlreadyExists", 400),
    "ReceiptHandleIsInvalid": ("ReceiptHandleIsInvalid", 404),
    "ResourceNotFoundException": ("ResourceNotFoundException", 404),
    "TooManyEntriesInBatchRequest": ("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400),
    "UnsupportedOperation": ("AWS.SimpleQueueService.UnsupportedOperation", 400),
    # Raised by AWS's framework, not in SQS's model: boto3 has no class for them.
    "InvalidParameterValueException": ("InvalidParameterValue", 400),
    "MissingRequiredParameterException": ("MissingParameter", 400),
}
UNMODELLED = {"InvalidParameterValueException", "MissingRequiredParameterException"}

INVALID = "InvalidParameterValueException"
MISSING = "MissingRequiredParameterException"

NO_SUCH_QUEUE = "The specified queue does not exist."
NO_SUCH_QUEUE_IN_QUERY = "The specified queue does not exist for this wsdl version."
NO_GROUP = "The request must contain the parameter MessageGroupId."
NO_DEDUPLICATION = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)


@contextmanager
def refused(client: Any, shape: str, message: str | re.Pattern[str]) -> Iterator[None]:
    """The block raises exactly this error: class, codes, status, fault and message (a pattern for a part of it)."""
    code, status = CATALOGUE[shape]
    kind = client.exceptions.ClientError if shape in UNMODELLED else getattr(client.exceptions, shape)
    with pytest.raises(kind) as caught:
        yield
    error = caught.value.response["Error"]
    if getattr(client, "speaks_query", False):
        # Query has one code, and its own words for one error.
        assert "QueryErrorCode" not in error
        message = NO_SUCH_QUEUE_IN_QUERY if message == NO_SUCH_QUEUE else message
    else:
        assert error["QueryErrorCode"] == shape
    assert (error["Code"], error["Type"]) == (code, "Sender")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    if isinstance(message, re.Pattern):
        assert message.search(error["Message"]), error["Message"]
    else:
        assert error["Message"] == message


def bad_value(value: object, parameter: str, reason: str) -> str:
    """SQS's error for a bad value of a parameter."""
    return f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"


def out_of_range(parameter: str, value: object, low: int, high: int) -> str:
    return bad_value(value, parameter, f"Must be between {low} and {high}, if provided.")


def bad_identifier(parameter: str, value: object) -> str:
    reason = "can only include alphanumeric and punctuation characters. 1 to 128 in length."
    return bad_value(value, parameter, f"{parameter} {reason}")


def wrong_queue_type(parameter: str, value: object) -> str:
    """The error for a parameter that a standard queue does not accept."""
    reason = "The request includes a parameter that is not valid for this queue type."
    return bad_value(value, parameter, reason)


def no_delay_in_fifo(value: object) -> str:
    """SQS's error for a delay in FIFO, with SQS's own grammar."""
    reason = "The request include parameter that is not valid for this queue type."
    return bad_value(value, "DelaySeconds", reason)


def beyond_12_hours(timeout: int) -> str:
    reason = "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
    return bad_value(timeout, "VisibilityTimeout", reason)


def expired(message: dict[str, Any]) -> str:
    return bad_value(message["ReceiptHandle"], "ReceiptHandle", "The receipt handle has expired.")


def does_not_exist(message: dict[str, Any]) -> str:
    reason = "Message does not exist or is not available for visibility timeout change."
    return bad_value(message["ReceiptHandle"], "ReceiptHandle", reason)
