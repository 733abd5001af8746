# SPDX-License-Identifier: Apache-2.0
"""Codes, statuses, and the form in which boto3's users see an error."""

import pickle

import botocore.session
import pytest

from sqsqlite import errors

MODEL = botocore.session.get_session().get_service_model("sqs")
MODELLED = {
    name: MODEL.shape_for(name).metadata
    for name in MODEL.shape_names
    if MODEL.shape_for(name).metadata.get("exception")
}
BY_CODE = {kind.code: kind for kind in errors.by_query_code.values()}


@pytest.mark.rule("error.23")
@pytest.mark.parametrize("name", MODELLED)
def test_every_error_of_the_service_model_has_its_class(name):
    assert BY_CODE[name] is getattr(errors, name)


def test_errors_unknown_to_the_service_model_are_the_frameworks():
    others = {code: kind.json_namespace for code, kind in BY_CODE.items() if code not in MODELLED}
    assert others == dict.fromkeys(
        [
            "AccessDeniedException",
            "InvalidParameterValueException",
            "MissingRequiredParameterException",
            "SerializationException",
            "UnknownOperationException",
        ],
        "com.amazon.coral.service",
    )


@pytest.mark.rule(
    "error.1",
    "error.2",
    "error.3",
    "error.4",
    "error.5",
    "error.6",
    "error.19",
    "error.20",
    "error.21",
    "error.22",
)
@pytest.mark.parametrize(
    ("kind", "query_code", "http_status"),
    [
        (errors.QueueDoesNotExist, "AWS.SimpleQueueService.NonExistentQueue", 400),
        (errors.QueueNameExists, "QueueAlreadyExists", 400),
        (errors.PurgeQueueInProgress, "AWS.SimpleQueueService.PurgeQueueInProgress", 403),
        (errors.OverLimit, "OverLimit", 403),
        (errors.ReceiptHandleIsInvalid, "ReceiptHandleIsInvalid", 404),
        (errors.ResourceNotFoundException, "ResourceNotFoundException", 404),
        (errors.RequestThrottled, "RequestThrottled", 403),
        (errors.InvalidAddress, "InvalidAddress", 404),
        (errors.InvalidSecurity, "InvalidSecurity", 403),
        (errors.KmsOptInRequired, "KMS.OptInRequired", 403),
        (errors.InvalidParameterValue, "InvalidParameterValue", 400),
        (errors.MissingParameter, "MissingParameter", 400),
        (errors.InvalidAction, "InvalidAction", 400),
    ],
)
def test_codes_and_statuses_are_those_of_the_wire(kind, query_code, http_status):
    assert (kind.query_code, kind.http_status, kind.fault) == (query_code, http_status, "Sender")
    assert errors.by_query_code[query_code] is kind


def test_query_codes_are_distinct():
    ours = [kind for kind in errors.SQSError.__subclasses__() if kind.__module__ == errors.__name__]
    assert list(errors.by_query_code.values()) == ours


def test_message_stays_plain_and_the_sentence_is_boto3s_once_the_operation_is_known():
    error = errors.QueueDoesNotExist("The specified queue does not exist.")
    assert str(error) == "The specified queue does not exist."
    error.operation_name = "SendMessage"
    assert error.message == "The specified queue does not exist."
    assert str(error) == (
        "An error occurred (AWS.SimpleQueueService.NonExistentQueue) when calling the SendMessage operation: "
        "The specified queue does not exist."
    )


def test_response_is_boto3s():
    error = errors.QueueDoesNotExist("gone")
    assert error.response["Error"] == {
        "Message": "gone",
        "Code": "AWS.SimpleQueueService.NonExistentQueue",
        "QueryErrorCode": "QueueDoesNotExist",
        "Type": "Sender",
    }
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400


@pytest.mark.parametrize("kind", errors.by_query_code.values())
def test_response_has_a_message_if_its_code_is_a_modelled_name(kind):
    assert kind("text").response.get("message") == ("text" if kind.query_code in MODELLED else None)


def test_errors_travel_between_processes():
    error = errors.OverLimit("too many")
    error.operation_name = "ReceiveMessage"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.message, str(again)) == (errors.OverLimit, "too many", str(error))
    refused = pickle.loads(pickle.dumps(errors.ParamValidationError("a\nb")))
    assert str(refused).count("Parameter validation failed") == 1


def test_refused_parameters_are_a_value_error_not_an_answer_of_sqs():
    error = errors.ParamValidationError('Missing required parameter in input: "QueueUrl"')
    assert str(error) == 'Parameter validation failed:\nMissing required parameter in input: "QueueUrl"'
    assert isinstance(error, ValueError)
    assert not isinstance(error, errors.SQSError)


@pytest.mark.parametrize("kind", errors.StoreError.__subclasses__())
def test_errors_of_the_file_are_not_answers_of_sqs(kind):
    assert str(kind("queue.db: why")) == "queue.db: why"
    assert not issubclass(kind, errors.SQSError)
