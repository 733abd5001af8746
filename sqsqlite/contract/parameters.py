# SPDX-License-Identifier: Apache-2.0
"""Rules for parameters that several requests share, and the texts of their refusals."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sqsqlite.contract.limits import Limits, Range
from sqsqlite.contract.names import is_queue_arn
from sqsqlite.errors import (
    BatchEntryIdsNotDistinct,
    EmptyBatchRequest,
    InvalidBatchEntryId,
    InvalidParameterValue,
    MissingParameter,
    TooManyEntriesInBatchRequest,
)

_is_label = re.compile(r"[A-Za-z0-9_-]+").fullmatch  # permission labels and batch entry ids
# Letters, digits and all punctuation of ASCII are exactly the characters from ! to ~.
_is_identifier = re.compile(r"[!-~]+").fullmatch
# The control characters that count as whitespace have no place in XML.
_is_tag_text = re.compile(r"(?:[\w.:/=+\-@]|(?![\x0b\x0c\x1c-\x1f])\s)*").fullmatch


class Identified(Protocol):
    """What a batch's shape depends on: the id of each entry."""

    @property
    def id(self) -> str:
        """The caller's name for the entry, in this request alone."""


def missing(parameter: str) -> MissingParameter:
    """The error for a required parameter that is absent or empty."""
    return MissingParameter(f"The request must contain the parameter {parameter}.")


def check_identifier(parameter: str, value: str, limits: Limits) -> None:
    """Check a group, deduplication or receive attempt id: 1 to 128 letters, digits and punctuation of ASCII.

    Raises:
        InvalidParameterValue: it is another text.
    """
    length = limits.identifier_characters
    if len(value) not in length or not _is_identifier(value):
        raise InvalidParameterValue(
            f"Value {value} for parameter {parameter} is invalid. Reason: {parameter} can only include "
            f"alphanumeric and punctuation characters. {length.low} to {length.high} in length."
        )


def check_batch(entry_type: str, entries: Sequence[Identified], limits: Limits) -> None:
    """Check the shape of a batch, in SQS's order: empty, too many, ids well formed, ids distinct.

    Raises:
        EmptyBatchRequest: the batch has no entries.
        TooManyEntriesInBatchRequest: it has more than ten, or than `limits` allow.
        InvalidBatchEntryId: an id has other characters, or more than 80.
        BatchEntryIdsNotDistinct: two entries have one id.
    Source: API_SendMessageBatch, Errors.
    """
    if not entries:
        raise EmptyBatchRequest(f"There should be at least one {entry_type} in the request.")
    if len(entries) > limits.batch_entry_count:
        raise TooManyEntriesInBatchRequest(
            f"Maximum number of entries per request are {limits.batch_entry_count}. You have sent {len(entries)}."
        )
    longest = limits.batch_entry_id_characters.high
    ids = [entry.id for entry in entries]
    # All at once: well-formed ids are so too when joined, and only an empty or long one would hide in that.
    if _is_label("".join(ids)) and min(map(len, ids)) > 0 and max(map(len, ids)) <= longest:
        if len(set(ids)) != len(ids):
            raise BatchEntryIdsNotDistinct(f"Id {_first_repeated(ids)} repeated.")
        return
    raise InvalidBatchEntryId(
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
        f"It can be at most {longest} letters long."
    )


def _first_repeated(ids: Sequence[str]) -> str:
    return next(entry_id for place, entry_id in enumerate(ids) if entry_id in ids[:place])


def check_count_of_names(parameter: str, names: Collection[str] | None, limits: Limits) -> None:
    """Check the length of a list of attributes or tags, which SQS does not bound.

    Raises:
        InvalidParameterValue: more names than `limits` allow: looking at each would keep others waiting.
    """
    if names is not None and len(names) > limits.name_count:
        raise InvalidParameterValue(
            f"Value for parameter {parameter} is invalid. "
            f"Reason: At most {limits.name_count} are taken. You have sent {len(names)}."
        )


def check_tags(tags: Mapping[str, str], limits: Limits) -> None:
    """Check tags about to be set; how many a queue has in the end is the service's to check.

    Raises:
        InvalidParameterValue: far too many, a key or value too long, of other characters, or under AWS's own prefix.
    Source: developer guide, "Amazon SQS cost allocation tags"; API_TagQueue.
    """
    check_count_of_names("Tags", tags, limits)
    for key, value in tags.items():
        if len(key) not in limits.tag_key_characters:
            raise bad_tag_key_length(limits)
        if len(value) not in (allowed := limits.tag_value_characters):
            raise InvalidParameterValue(
                f"Tag values must be between {allowed.low} and {allowed.high} characters in length."
            )
        if not (_is_tag_text(key) and _is_tag_text(value)):
            raise InvalidParameterValue(
                f"Tag {key!r}: {value!r} is invalid. "
                "Tags can only include letters, digits, whitespace and the characters _ . : / = + - @"
            )
        if key.lower().startswith("aws:"):
            raise InvalidParameterValue(f"Tag key '{key}' is invalid. The prefix 'aws:' is reserved.")


def bad_tag_key_length(limits: Limits) -> InvalidParameterValue:
    """The error for a tag's key that is empty or too long, and for no keys at all."""
    allowed = limits.tag_key_characters
    return InvalidParameterValue(
        f"Tag keys must be between {allowed.low} and {allowed.high} characters in length."
    )


def check_label(label: str, limits: Limits) -> None:
    """Check a permission's label: 1 to 80 letters, digits, `-` and `_`.

    Raises:
        MissingParameter: it is empty.
        InvalidParameterValue: it is another text.
    Source: API_AddPermission, Label.
    """
    if not label:
        raise missing("Label")
    allowed = limits.permission_label_characters
    if len(label) not in allowed or not _is_label(label):
        raise InvalidParameterValue(
            f"Value {label} for parameter Label is invalid. Reason: Can only include alphanumeric characters, "
            f"hyphens, or underscores. {allowed.low} to {allowed.high} in length."
        )


def check_source_arn(arn: str) -> None:
    """Check that the source of message move tasks has the form of a queue's ARN.

    Raises:
        MissingParameter: it is empty.
        InvalidParameterValue: it is another text.
    Source: API_StartMessageMoveTask, SourceArn.
    """
    if not arn:
        raise missing("SourceArn")
    if not is_queue_arn(arn):
        raise InvalidParameterValue(
            "You must use this format to specify the SourceArn: "
            "arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
        )


def check_between(parameter: str, number: int, allowed: Range) -> None:
    """Check a number that was given. Raises InvalidParameterValue if it is out of its range."""
    if number not in allowed:
        raise InvalidParameterValue(
            f"Value {number} for parameter {parameter} is invalid. "
            f"Reason: Must be between {allowed.low} and {allowed.high}, if provided."
        )


def check_range(parameter: str, number: int | None, allowed: Range) -> None:
    """Check a number that may be left out. Raises InvalidParameterValue if it is out of its range."""
    if number is not None:
        check_between(parameter, number, allowed)
