# SPDX-License-Identifier: Apache-2.0
"""The attributes of queues: SQS's names and texts on one side, columns of the queue's row on the other.

What concerns another queue (does a dead-letter target exist, does it permit the source) is the service's.
Source: API_SetQueueAttributes, API_GetQueueAttributes; developer guide, "Amazon SQS queue parameters".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from sqsqlite.contract.digests import has_valid_characters
from sqsqlite.contract.limits import Limits, Range
from sqsqlite.contract.names import is_queue_arn
from sqsqlite.contract.policy import check_policy
from sqsqlite.errors import InvalidAttributeName, InvalidAttributeValue, InvalidParameterValue

Columns = dict[str, object]

DEFAULTS: Mapping[str, object] = {
    "fifo": 0,
    "delay_seconds": 0,
    "maximum_message_size_bytes": 1_048_576,
    "message_retention_period_seconds": 345_600,
    "receive_message_wait_time_seconds": 0,
    "visibility_timeout_seconds": 30,
    "policy": None,
    "dead_letter_target_arn": None,
    "max_receive_count": None,
    "redrive_allow_policy": None,
    "kms_master_key_id": None,
    "kms_data_key_reuse_period_seconds": None,
    "sqs_managed_sse_enabled": 1,
    "content_based_deduplication": 0,
    "deduplication_scope": None,
    "fifo_throughput_limit": None,
}
"""Columns of a new standard queue."""

FIFO_DEFAULTS: Mapping[str, object] = {
    **DEFAULTS,
    "fifo": 1,
    "deduplication_scope": "queue",
    "fifo_throughput_limit": "perQueue",
}
"""Columns of a new FIFO queue."""

_KMS_REUSE_SECONDS = 300  # what a queue with a key and no period of its own has

_SCOPES = ("queue", "messageGroup")
_THROUGHPUT_LIMITS = ("perQueue", "perMessageGroupId")
_PERMISSIONS = ("allowAll", "denyAll", "byQueue")


@dataclass(frozen=True, slots=True)
class QueueAttribute:
    """An attribute that a request can set.

    Attributes:
        name: SQS's name.
        read: the columns that a text stands for; raises SQS's error for a text that is not allowed.
        show: the text that a row has for it, None where the attribute is not set.
        fifo_only: not an attribute of standard queues.
    """

    name: str
    read: Callable[[str, Limits], Columns]
    show: Callable[[Mapping[str, Any]], str | None]
    fifo_only: bool = False


def parse_attributes(
    attributes: Mapping[str, str],
    *,
    fifo: bool,
    creating: bool,
    limits: Limits,
    current: Mapping[str, object] | None = None,
) -> Columns:
    """The columns to write for the attributes supplied: all of them, or an error.

    Args:
        attributes: by SQS's names.
        fifo: the queue's type, the one about to be made included.
        creating: CreateQueue, not SetQueueAttributes.
        limits: the ranges in force.
        current: the queue's row, None before the queue exists.

    Raises:
        InvalidAttributeName: unknown, read-only, not of this type of queue, or two kinds of encryption at once.
        InvalidAttributeValue: out of range or malformed, or a change of the queue's type.
        InvalidParameterValue: a RedrivePolicy or RedriveAllowPolicy of the wrong form.
    """
    columns: Columns = {}
    for name, text in attributes.items():
        attribute = _SETTABLE.get(name)
        if attribute is None or (name in _UNKNOWN_ON_STANDARD and not fifo):
            raise _unknown(name)
        if attribute.fifo_only and not fifo:
            raise InvalidAttributeName(f"You can specify the {name} only when FifoQueue is set to true.")
        columns |= attribute.read(text, limits)
        if name == "FifoQueue" and not columns["fifo"] and not creating:
            raise _bad_value(name, "Modifying queue type is not supported.")
    if fifo:
        _check_throughput({**FIFO_DEFAULTS, **(current or {}), **columns})
    return _with_one_encryption(columns, current or {})


def render_attributes(
    row: Mapping[str, Any], names: Sequence[str], counts: tuple[int, int, int], arn: str
) -> dict[str, str]:
    """Attributes as GetQueueAttributes shows them; one that is known but not set is left out.

    Args:
        row: the queue's columns, `created_at` and `modified_at` (ms) among them.
        names: those asked for, or `All`.
        counts: messages visible, in flight and delayed.
        arn: the queue's.

    Raises:
        InvalidAttributeName: a name is unknown, or one of FIFO queues asked of a standard one.
    """
    for name in names:
        known = name == "All" or name in _READ_ONLY or name in _SETTABLE
        if not known or (not row["fifo"] and name in _SETTABLE and _SETTABLE[name].fifo_only):
            raise _unknown(name)
    wanted = (*_READ_ONLY, *_SETTABLE) if "All" in names else names
    shown: dict[str, str] = {}
    for name in wanted:
        if name in _READ_ONLY:
            shown[name] = _READ_ONLY[name](row, counts, arn)
        elif (row["fifo"] or not _SETTABLE[name].fifo_only) and (
            text := _SETTABLE[name].show(row)
        ) is not None:
            shown[name] = text
    return shown


def different_attribute(row: Mapping[str, Any], parsed: Mapping[str, object]) -> str | None:
    """Name of the first supplied attribute whose value is not the queue's current one; None: all are the same.

    Args:
        row: the existing queue's columns.
        parsed: what `parse_attributes` made of the attributes supplied to CreateQueue.
    """
    for column, value in parsed.items():
        if _meaning(column, row[column]) != _meaning(column, value):
            return _ATTRIBUTE_OF_COLUMN[column]
    return None


def _meaning(column: str, value: object) -> object:
    """The form in which two values of a column are compared: spaces in a policy's JSON mean nothing."""
    if column == "kms_data_key_reuse_period_seconds":
        return value or _KMS_REUSE_SECONDS
    if column == "policy" and isinstance(value, str):
        return msgspec.json.decode(value)
    return value


def redrive_policy_error(policy_json: str, reason: str) -> InvalidParameterValue:
    """The error for a RedrivePolicy that is refused for `reason` (a sentence)."""
    return _bad_policy("RedrivePolicy", policy_json, reason)


def redrive_allowed(redrive_allow_policy: str | None, source_arn: str) -> bool:
    """Whether a dead-letter queue with this RedriveAllowPolicy (JSON, or None: unset) takes this source's messages.

    Source: API_SetQueueAttributes, RedriveAllowPolicy.
    """
    if redrive_allow_policy is None:
        return True
    policy = msgspec.json.decode(redrive_allow_policy)
    if policy["redrivePermission"] == "byQueue":
        return source_arn in policy["sourceQueueArns"]
    return bool(policy["redrivePermission"] == "allowAll")


# Rules that join attributes


def _check_throughput(row: Mapping[str, object]) -> None:
    if row["fifo_throughput_limit"] == "perMessageGroupId" and row["deduplication_scope"] != "messageGroup":
        raise _bad_value(
            "FifoThroughputLimit",
            "perMessageGroupId is only allowed when DeduplicationScope is messageGroup.",
        )


def _with_one_encryption(columns: Columns, current: Mapping[str, object]) -> Columns:
    """Encryption by key and by SQS exclude each other: one switched on switches the other off."""
    by_key = bool(columns.get("kms_master_key_id"))
    by_sqs = bool(columns.get("sqs_managed_sse_enabled"))
    if by_key and by_sqs:
        raise InvalidAttributeName(
            "You can use one type of server-side encryption (SSE) at one time. "
            "You can either enable KMS SSE or SQS SSE."
        )
    if by_key:
        columns["sqs_managed_sse_enabled"] = 0
    # Only where there is a key to take away: CreateQueue compares all these columns with the queue's.
    if by_sqs and current.get("kms_master_key_id"):
        columns |= {"kms_master_key_id": None, "kms_data_key_reuse_period_seconds": None}
    return columns


# Errors


def _unknown(name: str) -> InvalidAttributeName:
    return InvalidAttributeName(f"Unknown Attribute {name}.")


def _bad_value(name: str, reason: str) -> InvalidAttributeValue:
    return InvalidAttributeValue(f"Invalid value for the parameter {name}. Reason: {reason}")


def _bad_policy(name: str, text: str, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"Value {text} for parameter {name} is invalid. Reason: {reason}")


# Kinds of attributes


def _number(name: str, column: str, range_of: Callable[[Limits], Range]) -> QueueAttribute:
    def read(text: str, limits: Limits) -> Columns:
        allowed = range_of(limits)
        if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) in allowed):
            raise _bad_value(name, f"Must be between {allowed.low} and {allowed.high}, but is {text!r}.")
        return {column: int(text)}

    return QueueAttribute(name, read, lambda row: str(row[column]))


def _switch(name: str, column: str, *, fifo_only: bool = False) -> QueueAttribute:
    def read(text: str, _: Limits) -> Columns:
        if text.lower() not in ("true", "false"):
            raise _bad_value(name, f"Must be true or false, but is {text!r}.")
        return {column: int(text.lower() == "true")}

    return QueueAttribute(name, read, lambda row: "true" if row[column] else "false", fifo_only)


def _choice(name: str, column: str, allowed: tuple[str, ...]) -> QueueAttribute:
    def read(text: str, _: Limits) -> Columns:
        if text not in allowed:
            raise _bad_value(name, f"Must be {' or '.join(allowed)}, but is {text!r}.")
        return {column: text}

    return QueueAttribute(name, read, lambda row: row[column], fifo_only=True)


def _read_policy(text: str, limits: Limits) -> Columns:
    if not text:
        return {"policy": None}
    check_policy(text, limits)
    return {"policy": text}


def _read_redrive_policy(text: str, limits: Limits) -> Columns:
    if not text:
        return {"dead_letter_target_arn": None, "max_receive_count": None}
    policy = _json_object(text)
    if policy is None:
        raise redrive_policy_error(text, "Redrive policy is not a valid JSON map.")
    members = ("deadLetterTargetArn", "maxReceiveCount")
    for member in members:
        if member not in policy:
            raise redrive_policy_error(
                text, f"Redrive policy does not contain mandatory attribute: {member}."
            )
    if len(policy) > len(members):
        raise redrive_policy_error(text, f"Only following attributes are supported: [{', '.join(members)}].")
    target = policy["deadLetterTargetArn"]
    if not (isinstance(target, str) and is_queue_arn(target)):
        raise redrive_policy_error(text, "Invalid value for deadLetterTargetArn.")
    count = policy["maxReceiveCount"]
    allowed = limits.max_receive_count
    digits = str(count) if isinstance(count, int | str) and not isinstance(count, bool) else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and int(digits) in allowed):
        raise redrive_policy_error(
            text,
            f"Invalid value for maxReceiveCount: {count}, "
            f"valid values are from {allowed.low} to {allowed.high} both inclusive.",
        )
    return {"dead_letter_target_arn": target, "max_receive_count": int(digits)}


def _show_redrive_policy(row: Mapping[str, Any]) -> str | None:
    if row["dead_letter_target_arn"] is None:
        return None
    return _compact(
        {"deadLetterTargetArn": row["dead_letter_target_arn"], "maxReceiveCount": row["max_receive_count"]}
    )


def _read_redrive_allow_policy(text: str, limits: Limits) -> Columns:
    if not text:
        return {"redrive_allow_policy": None}
    policy = _json_object(text)
    reason = "Must be a JSON map." if policy is None else _wrong_with_allow_policy(policy, limits)
    if policy is None or reason is not None:
        raise _bad_policy("RedriveAllowPolicy", text, reason or "")
    # One spelling for what means the same, so that CreateQueue can compare texts.
    canonical = {"redrivePermission": policy["redrivePermission"]}
    if "sourceQueueArns" in policy:
        canonical["sourceQueueArns"] = policy["sourceQueueArns"]
    return {"redrive_allow_policy": _compact(canonical)}


def _wrong_with_allow_policy(policy: dict[str, Any], limits: Limits) -> str | None:
    if policy.keys() - {"redrivePermission", "sourceQueueArns"}:
        return "Only following attributes are supported: [redrivePermission, sourceQueueArns]."
    permission, sources = policy.get("redrivePermission"), policy.get("sourceQueueArns")
    if permission not in _PERMISSIONS:
        return f"redrivePermission must be one of [{', '.join(_PERMISSIONS)}]."
    if (permission == "byQueue") != ("sourceQueueArns" in policy):
        return "sourceQueueArns must be given with redrivePermission byQueue, and only then."
    if permission != "byQueue":
        return None
    if not isinstance(sources, list) or not 1 <= len(sources) <= limits.redrive_source_count:
        return f"sourceQueueArns must be a list of 1 to {limits.redrive_source_count} ARNs."
    if not all(isinstance(arn, str) and is_queue_arn(arn) for arn in sources):
        return "sourceQueueArns must be a list of queue ARNs."
    return None


def _read_kms_key(text: str, _: Limits) -> Columns:
    # Whether the key exists is not checked: Amazon does not check it either.
    if not has_valid_characters(text):
        raise _bad_value("KmsMasterKeyId", "Must be a key's id, ARN or alias.")
    return {"kms_master_key_id": text or None}


_KMS_REUSE = _number(
    "KmsDataKeyReusePeriodSeconds",
    "kms_data_key_reuse_period_seconds",
    lambda limits: limits.kms_data_key_reuse_period_seconds,
)


def _show_kms_reuse(row: Mapping[str, Any]) -> str | None:
    if not row["kms_master_key_id"]:
        return None
    return str(row["kms_data_key_reuse_period_seconds"] or _KMS_REUSE_SECONDS)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _compact(content: Mapping[str, object]) -> str:
    return msgspec.json.encode(content).decode()


# The tables

_SETTABLE: dict[str, QueueAttribute] = {
    attribute.name: attribute
    for attribute in (
        _number("DelaySeconds", "delay_seconds", lambda limits: limits.delay_seconds),
        _number(
            "MaximumMessageSize",
            "maximum_message_size_bytes",
            lambda limits: limits.maximum_message_size_bytes,
        ),
        _number(
            "MessageRetentionPeriod",
            "message_retention_period_seconds",
            lambda limits: limits.message_retention_period_seconds,
        ),
        _number(
            "ReceiveMessageWaitTimeSeconds",
            "receive_message_wait_time_seconds",
            lambda limits: limits.receive_message_wait_time_seconds,
        ),
        _number(
            "VisibilityTimeout",
            "visibility_timeout_seconds",
            lambda limits: limits.visibility_timeout_seconds,
        ),
        QueueAttribute("Policy", _read_policy, lambda row: row["policy"]),
        QueueAttribute("RedrivePolicy", _read_redrive_policy, _show_redrive_policy),
        QueueAttribute(
            "RedriveAllowPolicy", _read_redrive_allow_policy, lambda row: row["redrive_allow_policy"]
        ),
        QueueAttribute("KmsMasterKeyId", _read_kms_key, lambda row: row["kms_master_key_id"]),
        QueueAttribute(_KMS_REUSE.name, _KMS_REUSE.read, _show_kms_reuse),
        _switch("SqsManagedSseEnabled", "sqs_managed_sse_enabled"),
        _switch("FifoQueue", "fifo", fifo_only=True),
        _switch("ContentBasedDeduplication", "content_based_deduplication", fifo_only=True),
        _choice("DeduplicationScope", "deduplication_scope", _SCOPES),
        _choice("FifoThroughputLimit", "fifo_throughput_limit", _THROUGHPUT_LIMITS),
    )
}

# Of the four attributes that standard queues don't have, SQS words the refusal of two differently.
_UNKNOWN_ON_STANDARD = frozenset({"FifoQueue", "ContentBasedDeduplication"})

_READ_ONLY: dict[str, Callable[[Mapping[str, Any], tuple[int, int, int], str], str]] = {
    "ApproximateNumberOfMessages": lambda _row, counts, _arn: str(counts[0]),
    "ApproximateNumberOfMessagesNotVisible": lambda _row, counts, _arn: str(counts[1]),
    "ApproximateNumberOfMessagesDelayed": lambda _row, counts, _arn: str(counts[2]),
    "CreatedTimestamp": lambda row, _counts, _arn: str(row["created_at"] // 1000),
    "LastModifiedTimestamp": lambda row, _counts, _arn: str(row["modified_at"] // 1000),
    "QueueArn": lambda _row, _counts, arn: arn,
}

SETTABLE = tuple(_SETTABLE)
"""Names of the attributes that CreateQueue and SetQueueAttributes take."""

FIFO_ONLY = tuple(name for name, attribute in _SETTABLE.items() if attribute.fifo_only)
"""Names of those of them that standard queues don't have."""

READ_ONLY = tuple(_READ_ONLY)
"""Names that only GetQueueAttributes knows."""

_ATTRIBUTE_OF_COLUMN = {
    "fifo": "FifoQueue",
    "delay_seconds": "DelaySeconds",
    "maximum_message_size_bytes": "MaximumMessageSize",
    "message_retention_period_seconds": "MessageRetentionPeriod",
    "receive_message_wait_time_seconds": "ReceiveMessageWaitTimeSeconds",
    "visibility_timeout_seconds": "VisibilityTimeout",
    "policy": "Policy",
    "dead_letter_target_arn": "RedrivePolicy",
    "max_receive_count": "RedrivePolicy",
    "redrive_allow_policy": "RedriveAllowPolicy",
    "kms_master_key_id": "KmsMasterKeyId",
    "kms_data_key_reuse_period_seconds": "KmsDataKeyReusePeriodSeconds",
    "sqs_managed_sse_enabled": "SqsManagedSseEnabled",
    "content_based_deduplication": "ContentBasedDeduplication",
    "deduplication_scope": "DeduplicationScope",
    "fifo_throughput_limit": "FifoThroughputLimit",
}
