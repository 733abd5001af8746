# SPDX-License-Identifier: Apache-2.0
"""Queue attributes: texts to columns and back, and each refusal in SQS's words."""

import json
from contextlib import closing

import pytest

from sqsqlite.contract.limits import NATIVE, SQS
from sqsqlite.contract.queue_attributes import (
    DEFAULTS,
    FIFO_DEFAULTS,
    different_attribute,
    parse_attributes,
    redrive_allowed,
    redrive_policy_error,
    render_attributes,
)
from sqsqlite.errors import InvalidAttributeName, InvalidAttributeValue, InvalidParameterValue
from sqsqlite.sql import schema
from sqsqlite.store.driver import dbapi

ARN = "arn:aws:sqs:us-east-1:000000000000:orders"
DEAD = "arn:aws:sqs:us-east-1:000000000000:dead"
COUNTS = (3, 2, 1)
TIMES = {"created_at": 1_700_000_000_999, "modified_at": 1_700_000_001_000}
STANDARD = {**DEFAULTS, **TIMES}
FIFO = {**FIFO_DEFAULTS, **TIMES}


def parse(attributes, *, fifo=False, creating=False, limits=SQS, current=None):
    return parse_attributes(attributes, fifo=fifo, creating=creating, limits=limits, current=current)


def refusal(kind, attributes, **options):
    with pytest.raises(kind) as refused:
        parse(attributes, **options)
    return refused.value.message


def show(row, *names):
    return render_attributes(row, names, COUNTS, ARN)


def after(row, attributes, **options):
    return {**row, **parse(attributes, fifo=bool(row["fifo"]), current=row, **options)}


def test_defaults_fill_columns_that_the_table_has():
    assert DEFAULTS.keys() == FIFO_DEFAULTS.keys()
    with closing(dbapi.connect(":memory:")) as connection:
        for statement in schema.statements():
            connection.execute(statement)
        columns = {row[1] for row in connection.execute("PRAGMA table_info(sqs_queues)")}
    assert columns > DEFAULTS.keys()


@pytest.mark.rule("attribute.1")
def test_a_new_standard_queue_has_exactly_these_attributes():
    assert show(STANDARD, "All") == {
        "ApproximateNumberOfMessages": "3",
        "ApproximateNumberOfMessagesNotVisible": "2",
        "ApproximateNumberOfMessagesDelayed": "1",
        "CreatedTimestamp": "1700000000",
        "DelaySeconds": "0",
        "LastModifiedTimestamp": "1700000001",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "QueueArn": ARN,
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
        "VisibilityTimeout": "30",
    }


@pytest.mark.rule("fifo-queue.1")
def test_a_new_fifo_queue_adds_exactly_these_attributes():
    assert {name: text for name, text in show(FIFO, "All").items() if name not in show(STANDARD, "All")} == {
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoQueue": "true",
        "FifoThroughputLimit": "perQueue",
    }


@pytest.mark.rule("attribute.10")
def test_only_requested_attributes_that_are_set_are_shown():
    assert show(STANDARD) == {}
    assert show(STANDARD, "VisibilityTimeout", "Policy", "RedrivePolicy") == {"VisibilityTimeout": "30"}
    assert show(STANDARD, "QueueArn", "All") == show(STANDARD, "All")


@pytest.mark.rule("attribute.12")
@pytest.mark.parametrize("name", ["Foo", "", "all", "FifoQueue", "DeduplicationScope"])
def test_names_that_a_standard_queue_does_not_have_are_unknown(name):
    with pytest.raises(InvalidAttributeName) as refused:
        show(STANDARD, "All", name)
    assert refused.value.message == f"Unknown Attribute {name}."


NUMBERS = [
    ("DelaySeconds", "delay_seconds", 0, 900),
    ("MaximumMessageSize", "maximum_message_size_bytes", 1_024, 1_048_576),
    ("MessageRetentionPeriod", "message_retention_period_seconds", 60, 1_209_600),
    ("ReceiveMessageWaitTimeSeconds", "receive_message_wait_time_seconds", 0, 20),
    ("VisibilityTimeout", "visibility_timeout_seconds", 0, 43_200),
    ("KmsDataKeyReusePeriodSeconds", "kms_data_key_reuse_period_seconds", 60, 86_400),
]


@pytest.mark.rule("attribute.18")
@pytest.mark.parametrize(("name", "column", "low", "high"), NUMBERS)
def test_numbers_have_their_ranges(name, column, low, high):
    assert parse({name: str(low)}) == {column: low}
    assert parse({name: str(high)}) == {column: high}
    for text in (str(low - 1), str(high + 1), "", "x", "1.5", " 70", "٣", "9" * 5_000):
        message = refusal(InvalidAttributeValue, {name: text})
        assert message.startswith(f"Invalid value for the parameter {name}. Reason: ")
        assert f"between {low} and {high}" in message


def test_native_limits_allow_a_longer_delay():
    assert parse({"DelaySeconds": "43200"}, limits=NATIVE) == {"delay_seconds": 43_200}


@pytest.mark.rule("attribute.20")
@pytest.mark.parametrize(
    "name",
    ["Foo", "All", "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", "ApproximateNumberOfMessages"],
)
@pytest.mark.parametrize("creating", [True, False])
def test_names_that_can_not_be_set_are_unknown(name, creating):
    assert refusal(InvalidAttributeName, {name: "1"}, creating=creating) == f"Unknown Attribute {name}."


@pytest.mark.rule("attribute.22")
@pytest.mark.parametrize("name", ["FifoQueue", "ContentBasedDeduplication"])
def test_two_fifo_attributes_are_unknown_on_standard_queues(name):
    assert refusal(InvalidAttributeName, {name: "false"}, creating=True) == f"Unknown Attribute {name}."


@pytest.mark.rule("attribute.23")
@pytest.mark.parametrize("name", ["DeduplicationScope", "FifoThroughputLimit"])
def test_two_fifo_attributes_have_their_own_refusal_on_standard_queues(name):
    assert refusal(InvalidAttributeName, {name: "x"}) == (
        f"You can specify the {name} only when FifoQueue is set to true."
    )


@pytest.mark.rule("fifo-queue.6")
def test_the_type_of_a_queue_cannot_change():
    assert parse({"FifoQueue": "True"}, fifo=True, creating=True) == {"fifo": 1}
    assert parse({"FifoQueue": "true"}, fifo=True, current=FIFO) == {"fifo": 1}
    assert refusal(InvalidAttributeValue, {"FifoQueue": "false"}, fifo=True, current=FIFO) == (
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."
    )


@pytest.mark.rule("attribute.39", "fifo-queue.3")
@pytest.mark.parametrize("name", ["ContentBasedDeduplication", "SqsManagedSseEnabled"])
def test_switches_are_true_or_false(name):
    for text, shown in (("true", "true"), ("False", "false"), ("TRUE", "true")):
        assert show(after(FIFO, {name: text}), name) == {name: shown}
    assert "Must be true or false" in refusal(InvalidAttributeValue, {name: "1"}, fifo=True)


@pytest.mark.rule("fifo-queue.5")
def test_throughput_per_group_needs_the_scope_of_groups():
    both = {"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "messageGroup"}
    row = after(FIFO, both)
    assert show(row, *both) == both
    assert "DeduplicationScope" in refusal(
        InvalidAttributeValue, {"FifoThroughputLimit": "perMessageGroupId"}, fifo=True, creating=True
    )
    assert "DeduplicationScope" in refusal(
        InvalidAttributeValue, {"DeduplicationScope": "queue"}, fifo=True, current=row
    )
    assert after(row, {"FifoThroughputLimit": "perMessageGroupId"}) == row
    assert "Must be queue or messageGroup" in refusal(
        InvalidAttributeValue, {"DeduplicationScope": "x"}, fifo=True
    )


def test_one_invalid_attribute_refuses_all():
    refusal(InvalidAttributeName, {"VisibilityTimeout": "1", "Foo": "1"})
    refusal(InvalidAttributeValue, {"VisibilityTimeout": "1", "DelaySeconds": "901"})


@pytest.mark.rule("attribute.29", "attribute.30")
def test_a_policy_is_kept_as_given_and_removed_by_an_empty_text():
    policy = '{ "Statement": [] }'
    row = after(STANDARD, {"Policy": policy})
    assert show(row, "Policy") == {"Policy": policy}
    assert show(after(row, {"Policy": ""}), "Policy") == {}
    for text in ("x", "[]", '"x"', "{", "\ud800", '{"a":"' + "x" * 8_192 + '"}', "[" * 8_000):
        assert "parameter Policy" in refusal(InvalidAttributeValue, {"Policy": text})


@pytest.mark.rule("redrive.1", "redrive.2")
@pytest.mark.parametrize("count", [3, "3"])
def test_a_redrive_policy_is_shown_with_its_count_as_a_number(count):
    row = after(
        STANDARD, {"RedrivePolicy": json.dumps({"maxReceiveCount": count, "deadLetterTargetArn": DEAD})}
    )
    assert (row["dead_letter_target_arn"], row["max_receive_count"]) == (DEAD, 3)
    assert show(row, "RedrivePolicy") == {
        "RedrivePolicy": f'{{"deadLetterTargetArn":"{DEAD}","maxReceiveCount":3}}'
    }
    assert show(after(row, {"RedrivePolicy": ""}), "RedrivePolicy") == {}


@pytest.mark.parametrize("count", [0, 1_001, "0", "x", "", 1.5, True, None, [3], "9" * 5_000])
def test_max_receive_count_is_1_to_1000(count):
    policy = json.dumps({"deadLetterTargetArn": DEAD, "maxReceiveCount": count})
    assert refusal(InvalidParameterValue, {"RedrivePolicy": policy}) == (
        f"Value {policy} for parameter RedrivePolicy is invalid. "
        f"Reason: Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both inclusive."
    )


@pytest.mark.parametrize("digits", [30, 300, 5_000])  # the last: longer than Python converts to an int
def test_a_count_of_any_length_is_refused_with_sqss_error(digits):
    policy = f'{{"deadLetterTargetArn":"{DEAD}","maxReceiveCount":{"9" * digits}}}'
    assert "parameter RedrivePolicy is invalid. Reason: " in refusal(
        InvalidParameterValue, {"RedrivePolicy": policy}
    )


@pytest.mark.parametrize(
    "policy",
    [
        "x",
        "[]",
        "{}",
        f'{{"deadLetterTargetArn":"{DEAD}"}}',
        '{"maxReceiveCount":3}',
        '{"deadLetterTargetArn":"dead","maxReceiveCount":3}',
        '{"deadLetterTargetArn":3,"maxReceiveCount":3}',
        f'{{"deadLetterTargetArn":"{DEAD}","maxReceiveCount":3,"more":1}}',
    ],
)
def test_a_redrive_policy_of_another_form_is_refused(policy):
    message = refusal(InvalidParameterValue, {"RedrivePolicy": policy})
    assert message.startswith(f"Value {policy} for parameter RedrivePolicy is invalid. Reason: ")


def test_every_reason_for_a_refusal_has_the_same_frame():
    assert redrive_policy_error("{}", "Dead letter target does not exist.").message == (
        "Value {} for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist."
    )


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        (None, True),
        ({"redrivePermission": "allowAll"}, True),
        ({"redrivePermission": "denyAll"}, False),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [DEAD, ARN]}, True),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [DEAD]}, False),
    ],
)
def test_a_redrive_allow_policy_is_read(policy, allowed):
    row = STANDARD if policy is None else after(STANDARD, {"RedriveAllowPolicy": json.dumps(policy)})
    assert redrive_allowed(row["redrive_allow_policy"], ARN) is allowed
    if policy is not None:
        assert json.loads(show(row, "All")["RedriveAllowPolicy"]) == policy


@pytest.mark.parametrize(
    "policy",
    [
        "x",
        "[]",
        "{}",
        '{"redrivePermission":"some"}',
        '{"redrivePermission":["allowAll"]}',
        '{"redrivePermission":"byQueue"}',
        '{"redrivePermission":"byQueue","sourceQueueArns":[]}',
        '{"redrivePermission":"byQueue","sourceQueueArns":["orders"]}',
        '{"redrivePermission":"byQueue","sourceQueueArns":"' + ARN + '"}',
        '{"redrivePermission":"byQueue","sourceQueueArns":null}',
        json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [ARN] * 11}),
        '{"redrivePermission":"allowAll","sourceQueueArns":["' + ARN + '"]}',
        '{"redrivePermission":"allowAll","more":1}',
    ],
)
def test_a_redrive_allow_policy_of_another_form_is_refused(policy):
    message = refusal(InvalidParameterValue, {"RedriveAllowPolicy": policy})
    assert message.startswith(f"Value {policy} for parameter RedriveAllowPolicy is invalid. Reason: ")


SSE = ("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled")


@pytest.mark.rule("attribute.32", "attribute.33")
def test_a_key_switches_encryption_by_sqs_off():
    by_key = after(STANDARD, {"KmsMasterKeyId": "alias/aws/sqs"})
    assert show(by_key, *SSE) == {
        "KmsMasterKeyId": "alias/aws/sqs",
        "KmsDataKeyReusePeriodSeconds": "300",
        "SqsManagedSseEnabled": "false",
    }


@pytest.mark.rule("attribute.35")
def test_a_removed_key_leaves_encryption_by_sqs_off():
    by_key = after(STANDARD, {"KmsMasterKeyId": "k"})
    removed = after(by_key, {"KmsMasterKeyId": "", "KmsDataKeyReusePeriodSeconds": "300"})
    assert show(removed, *SSE) == {"SqsManagedSseEnabled": "false"}


@pytest.mark.rule("attribute.36")
def test_encryption_by_sqs_switches_the_key_off():
    by_key = after(STANDARD, {"KmsMasterKeyId": "k", "KmsDataKeyReusePeriodSeconds": "60"})
    assert show(after(by_key, {"SqsManagedSseEnabled": "true"}), *SSE) == {"SqsManagedSseEnabled": "true"}


@pytest.mark.rule("attribute.37")
@pytest.mark.parametrize(
    "names", [("KmsMasterKeyId", "SqsManagedSseEnabled"), ("SqsManagedSseEnabled", "KmsMasterKeyId")]
)
def test_both_kinds_of_encryption_at_once_are_refused(names):
    values = {"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "true"}
    assert refusal(InvalidAttributeName, {name: values[name] for name in names}) == (
        "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."
    )
    assert parse({"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "false"})["sqs_managed_sse_enabled"] == 0


def test_a_key_is_any_text():
    assert "KmsMasterKeyId" in refusal(InvalidAttributeValue, {"KmsMasterKeyId": "\ud800"})


def different(row, attributes):
    return different_attribute(row, parse(attributes, fifo=bool(row["fifo"]), creating=True, current=row))


@pytest.mark.rule("queue.9")
def test_only_attributes_supplied_are_compared():
    row = after(STANDARD, {"VisibilityTimeout": "60", "DelaySeconds": "5"})
    assert different(row, {}) is None
    assert different(row, {"VisibilityTimeout": "60"}) is None
    assert (
        different(row, {"VisibilityTimeout": "060", "DelaySeconds": "4", "MaximumMessageSize": "1024"})
        == "DelaySeconds"
    )


@pytest.mark.parametrize(
    ("attributes", "same", "other"),
    [
        (
            "RedrivePolicy",
            {"deadLetterTargetArn": DEAD, "maxReceiveCount": 3},
            {"deadLetterTargetArn": DEAD, "maxReceiveCount": 4},
        ),
        ("RedriveAllowPolicy", {"redrivePermission": "denyAll"}, {"redrivePermission": "allowAll"}),
        ("Policy", {"Id": "1", "Statement": []}, {"Id": "2", "Statement": []}),
    ],
)
def test_policies_are_compared_by_meaning(attributes, same, other):
    row = after(STANDARD, {attributes: json.dumps(same)})
    assert different(row, {attributes: json.dumps(dict(reversed(same.items())), indent=2)}) is None
    assert different(row, {attributes: json.dumps(other)}) == attributes
    assert different(row, {attributes: ""}) == attributes
    assert different(STANDARD, {attributes: json.dumps(same)}) == attributes


def test_encryption_is_compared_with_what_the_queue_shows():
    by_key = after(STANDARD, {"KmsMasterKeyId": "k"})
    assert different(by_key, {"KmsMasterKeyId": "k", "KmsDataKeyReusePeriodSeconds": "300"}) is None
    assert different(by_key, {"KmsDataKeyReusePeriodSeconds": "60"}) == "KmsDataKeyReusePeriodSeconds"
    assert different(by_key, {"KmsMasterKeyId": "other"}) == "KmsMasterKeyId"
    assert different(by_key, {"SqsManagedSseEnabled": "true"}) == "SqsManagedSseEnabled"
    assert (
        different(STANDARD, {"SqsManagedSseEnabled": "true", "KmsDataKeyReusePeriodSeconds": "300"}) is None
    )
