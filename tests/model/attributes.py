# SPDX-License-Identifier: Apache-2.0
"""Queue attributes: settable values and shown values. Contract, sections 3.1, 3.6, 3.7 and 4."""

import json

from tests.model.state import Refusal, arn_of, bad_value, counts, invalid

DEFAULTS = {
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "VisibilityTimeout": "30",
    "SqsManagedSseEnabled": "true",
}
FIFO_DEFAULTS = {
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}
RANGES = {
    "DelaySeconds": (0, 900),
    "MaximumMessageSize": (1024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
}
CHOICES = {
    "SqsManagedSseEnabled": ("true", "false"),
    "FifoQueue": ("true", "false"),
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("queue", "messageGroup"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}
TEXTS = ("Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId")
SETTABLE = (*RANGES, *CHOICES, *TEXTS)
COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
READ_ONLY = (*COUNTS, "CreatedTimestamp", "LastModifiedTimestamp", "QueueArn")


def unknown(name):
    return Refusal("InvalidAttributeName", f"Unknown Attribute {name}.")


def bad(name):
    return Refusal("InvalidAttributeValue", f"Invalid value for the parameter {name}.", whole=False)


def parse(state, name, supplied, *, fifo, current):
    """The attributes supplied, checked and as they will be shown; "" for one that is removed.

    `current`: those of the existing queue, None for a queue about to be made.
    """
    parsed = {}
    for attribute, text in supplied.items():
        if attribute not in SETTABLE or (
            attribute in ("FifoQueue", "ContentBasedDeduplication") and not fifo
        ):
            raise unknown(attribute)
        if attribute in FIFO_DEFAULTS and not fifo:
            raise Refusal(
                "InvalidAttributeName", f"You can specify the {attribute} only when FifoQueue is set to true."
            )
        parsed[attribute] = _parsed(state, name, attribute, text, fifo)
        if attribute == "FifoQueue" and parsed[attribute] == "false" and current is not None:
            reason = "Modifying queue type is not supported."
            raise Refusal(
                "InvalidAttributeValue", f"Invalid value for the parameter FifoQueue. Reason: {reason}"
            )
    if fifo:
        _check_throughput({**FIFO_DEFAULTS, **(current or {}), **parsed})
    if parsed.get("KmsMasterKeyId") and parsed.get("SqsManagedSseEnabled") == "true":
        raise Refusal(
            "InvalidAttributeName",
            "You can use one type of server-side encryption (SSE) at one time. "
            "You can either enable KMS SSE or SQS SSE.",
        )
    return parsed


def _parsed(state, name, attribute, text, fifo):
    if attribute in RANGES:
        low, high = RANGES[attribute]
        if not (text.isdigit() and low <= int(text) <= high):
            raise bad(attribute)
        return str(int(text))
    if attribute in CHOICES:
        lowered = text.lower() if CHOICES[attribute] == ("true", "false") else text
        if lowered not in CHOICES[attribute]:
            raise bad(attribute)
        return lowered
    if not text or attribute == "KmsMasterKeyId":
        return text
    if attribute == "RedrivePolicy":
        return _redrive_policy(state, name, text, fifo)
    if attribute == "RedriveAllowPolicy":
        return _redrive_allow_policy(text)
    if not isinstance(_json(text), dict):
        raise bad(attribute)
    return text


def _json(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def _redrive_policy(state, name, text, fifo):
    policy = _json(text)
    if not isinstance(policy, dict) or {"deadLetterTargetArn", "maxReceiveCount"} - policy.keys():
        raise invalid(f"Value {text} for parameter RedrivePolicy is invalid. Reason: ", whole=False)
    count = policy["maxReceiveCount"]
    if not 1 <= int(count) <= 1000:
        raise bad_value(
            text,
            "RedrivePolicy",
            f"Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both inclusive.",
        )
    target = state.queue_of_arn(policy["deadLetterTargetArn"])
    if target is None:
        raise bad_value(text, "RedrivePolicy", "Dead letter target does not exist.")
    if target.fifo != fifo:
        raise bad_value(text, "RedrivePolicy", "Dead-letter queue must be same type of queue as the source.")
    if (target.name == name and state.compat != "aws") or not _allows(target, arn_of(name)):
        raise invalid(f"Value {text} for parameter RedrivePolicy is invalid. Reason: ", whole=False)
    return json.dumps({"deadLetterTargetArn": target.arn, "maxReceiveCount": int(count)})


def _allows(target, source_arn):
    policy = json.loads(target.attributes.get("RedriveAllowPolicy") or "{}")
    if policy.get("redrivePermission") == "byQueue":
        return source_arn in policy["sourceQueueArns"]
    return policy.get("redrivePermission") != "denyAll"


def _redrive_allow_policy(text):
    policy = _json(text)
    permission = policy.get("redrivePermission") if isinstance(policy, dict) else None
    if permission not in ("allowAll", "denyAll", "byQueue") or (
        (permission == "byQueue") != ("sourceQueueArns" in policy)
    ):
        raise invalid(f"Value {text} for parameter RedriveAllowPolicy is invalid. Reason: ", whole=False)
    return text


def _check_throughput(attributes):
    if (
        attributes["FifoThroughputLimit"] == "perMessageGroupId"
        and attributes["DeduplicationScope"] != "messageGroup"
    ):
        raise bad("FifoThroughputLimit")


def apply(attributes, parsed):
    """Set the parsed attributes. Encryption by a key and by SQS itself exclude each other; "" removes."""
    by_key, by_sqs = parsed.get("KmsMasterKeyId"), parsed.get("SqsManagedSseEnabled") == "true"
    changed = {**attributes, **parsed}
    if by_key:
        changed["SqsManagedSseEnabled"] = "false"
    if by_sqs:
        changed.pop("KmsMasterKeyId", None)
        changed.pop("KmsDataKeyReusePeriodSeconds", None)
    attributes.clear()
    attributes.update({name: value for name, value in changed.items() if value != ""})


def different(queue, parsed):
    """The first supplied attribute whose value differs from the queue's, None if all are equal."""
    shown = {"KmsDataKeyReusePeriodSeconds": "300", **queue.attributes}
    for name, value in parsed.items():
        if shown.get(name, "") != value:
            return name
    return None


def show(state, queue, names):
    for name in names:
        fifo_only = name in FIFO_DEFAULTS and not queue.fifo
        if name != "All" and (name not in (*READ_ONLY, *SETTABLE) or fifo_only):
            raise unknown(name)
    wanted = (*READ_ONLY, *SETTABLE) if "All" in names else names
    values = {
        **queue.attributes,
        **dict(zip(COUNTS, map(str, counts(state, queue)), strict=True)),
        "CreatedTimestamp": str(queue.created_at // 1000),
        "LastModifiedTimestamp": str(queue.modified_at // 1000),
        "QueueArn": queue.arn,
    }
    if "KmsMasterKeyId" in values:
        values.setdefault("KmsDataKeyReusePeriodSeconds", "300")
    else:
        values.pop("KmsDataKeyReusePeriodSeconds", None)
    return {name: values[name] for name in wanted if name in values}
