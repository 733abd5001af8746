# SPDX-License-Identifier: Apache-2.0
"""A message checked once and completely, with everything about it that is computed from its content."""

import msgspec

from sqsqlite.contract.digests import (
    check_characters,
    md5_of_attributes,
    md5_of_body,
    message_size_bytes,
    to_utf8,
)
from sqsqlite.contract.limits import SQS, Limits
from sqsqlite.contract.message_attributes import (
    TRACE_HEADER,
    Attributes,
    check_attributes,
    check_system_attributes,
    store_attributes,
)
from sqsqlite.contract.parameters import check_identifier, missing
from sqsqlite.errors import InvalidParameterValue


class PreparedMessage(msgspec.Struct, frozen=True, gc=False):
    """A valid message, ready for the row.

    Attributes:
        body: the text.
        body_md5: MD5 of its UTF-8, 16 raw bytes.
        size_bytes: body and user attributes.
        group_id: MessageGroupId.
        deduplication_id: MessageDeduplicationId as given; one made from the content is the engine's business.
        delay_seconds: None: the queue's own delay.
        attributes_json: user attributes as `store_attributes` writes them.
        attributes_md5: their MD5, hexadecimal.
        trace_header: the system attribute AWSTraceHeader.
        trace_md5: MD5 of the system attributes, hexadecimal.
    """

    body: str
    body_md5: bytearray
    size_bytes: int
    group_id: str | None = None
    deduplication_id: str | None = None
    delay_seconds: int | None = None
    attributes_json: str | None = None
    attributes_md5: str | None = None
    trace_header: str | None = None
    trace_md5: str | None = None


def prepare_message(
    message_body: str,
    message_attributes: Attributes | None = None,
    message_system_attributes: Attributes | None = None,
    group_id: str | None = None,
    deduplication_id: str | None = None,
    delay_seconds: int | None = None,
    *,
    limits: Limits = SQS,
    maximum_size_bytes: int | None = None,
    in_batch: bool = False,
) -> PreparedMessage:
    """Check a message in SQS's order and compute its size and digests.

    Args:
        message_body: 1 character or more.
        message_attributes: the user's attributes by name.
        message_system_attributes: AWSTraceHeader or nothing.
        group_id: 1 to 128 letters, digits or punctuation characters of ASCII.
        deduplication_id: the same.
        delay_seconds: None: the queue's.
        limits: the quotas in force.
        maximum_size_bytes: the queue's MaximumMessageSize; None: as much as any queue takes.
        in_batch: an entry of a batch: SQS words the size error differently there.

    Raises:
        MissingParameter: an empty body.
        InvalidParameterValue: size, attributes, ids or delay out of what is allowed.
        InvalidMessageContents: a forbidden character in the body.
        UnsupportedOperation: attributes with list values.
    Source: API_SendMessage; what depends on the queue's type is in `check_queue_type`.
    """
    if not message_body:
        raise missing("MessageBody")
    maximum = limits.maximum_message_size_bytes.high if maximum_size_bytes is None else maximum_size_bytes
    if message_attributes or len(message_body) > maximum:
        size_bytes = message_size_bytes(message_body, message_attributes)
        if size_bytes > maximum:
            raise too_long(maximum, in_batch=in_batch)
    else:
        size_bytes = 0  # the encoded body's, below
    encoded = to_utf8(message_body)
    if not size_bytes:
        size_bytes = len(encoded)
        if size_bytes > maximum:
            raise too_long(maximum, in_batch=in_batch)
    check_characters(encoded)
    attributes_json = attributes_md5 = trace_header = trace_md5 = None
    if message_attributes:
        check_attributes(message_attributes, limits)
        attributes_json = store_attributes(message_attributes)
        attributes_md5 = md5_of_attributes(message_attributes)
    if message_system_attributes:
        check_system_attributes(message_system_attributes)
        trace_header = message_system_attributes[TRACE_HEADER].string_value
        trace_md5 = md5_of_attributes(message_system_attributes)
    if deduplication_id is not None:
        check_identifier("MessageDeduplicationId", deduplication_id, limits)
    if group_id is not None:
        check_identifier("MessageGroupId", group_id, limits)
    if delay_seconds is not None and delay_seconds not in limits.delay_seconds:
        raise _bad_delay(delay_seconds, limits)
    return PreparedMessage(
        message_body,
        md5_of_body(encoded),
        size_bytes,
        group_id,
        deduplication_id,
        delay_seconds,
        attributes_json,
        attributes_md5,
        trace_header,
        trace_md5,
    )


def check_queue_type(message: PreparedMessage, *, fifo: bool) -> None:
    """Check what one type of queue refuses: a delay of its own on FIFO, a deduplication id on standard.

    Raises:
        InvalidParameterValue: the message has it.
    Source: API_SendMessage, DelaySeconds and MessageDeduplicationId.
    """
    if fifo and message.delay_seconds:
        raise InvalidParameterValue(
            f"Value {message.delay_seconds} for parameter DelaySeconds is invalid. "
            "Reason: The request include parameter that is not valid for this queue type."
        )
    if not fifo and message.deduplication_id is not None:
        raise InvalidParameterValue(
            f"Value {message.deduplication_id} for parameter MessageDeduplicationId is invalid. "
            "Reason: The request includes a parameter that is not valid for this queue type."
        )


def check_fifo_identifiers(
    group_id: str | None,
    deduplication_id: str | None,
    *,
    content_based_deduplication: bool,
    in_batch: bool = False,
) -> None:
    """Check that a message to a FIFO queue has a group, and something to tell duplicates by.

    In a batch one such entry fails the whole request, before any entry is looked at.

    Raises:
        MissingParameter: no group id in a single request.
        InvalidParameterValue: no group id in a batch, or no way to tell duplicates.
    Source: API_SendMessage, MessageGroupId and MessageDeduplicationId.
    """
    if group_id is None:
        error = missing("MessageGroupId")
        raise InvalidParameterValue(error.message) if in_batch else error
    if deduplication_id is None and not content_based_deduplication:
        raise InvalidParameterValue(
            "The queue should either have ContentBasedDeduplication enabled or "
            "MessageDeduplicationId provided explicitly"
        )


def too_long(maximum_bytes: int, *, in_batch: bool) -> InvalidParameterValue:
    """The error for a message longer than its queue takes; exactly `maximum_bytes` is allowed."""
    what = "cannot be validated" if in_batch else "are invalid"
    return InvalidParameterValue(
        f"One or more parameters {what}. Reason: Message must be shorter than {maximum_bytes} bytes."
    )


def _bad_delay(delay_seconds: int, limits: Limits) -> InvalidParameterValue:
    allowed = limits.delay_seconds
    return InvalidParameterValue(
        f"Value {delay_seconds} for parameter DelaySeconds is invalid. "
        f"Reason: DelaySeconds must be >= {allowed.low} and <= {allowed.high}."
    )
