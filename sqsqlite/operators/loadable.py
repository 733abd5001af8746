"""Keep out of a dump what `load` would refuse: one such line would keep out all others."""

import uuid

from sqsqlite.contract import limits, queue_attributes
from sqsqlite.contract.message_attributes import TRACE_HEADER, MessageAttributeValue
from sqsqlite.contract.parameters import check_tags
from sqsqlite.contract.prepared import prepare_message
from sqsqlite.errors import Corrupt, SQSError
from sqsqlite.operators.dump_lines import DumpedDeduplication, DumpedMessage, decode, encode


def check_message(dumped: DumpedMessage) -> None:
    """See that a message can be loaded, if it is not too large for where.

    Raises:
        Corrupt: why it can't.
    """
    trace = dumped.trace_header
    system = {TRACE_HEADER: MessageAttributeValue(data_type="String", string_value=trace)} if trace else None
    try:
        prepare_message(
            dumped.body,
            dumped.attributes,
            system,
            dumped.group_id,
            dumped.deduplication_id,
            limits=limits.NATIVE,
        )
    except SQSError as error:
        raise Corrupt(f"no queue would take it: {error.message}") from error
    if dumped.group_id is None and dumped.queue.endswith(".fifo"):
        raise Corrupt("its message group is missing")


def check_deduplication(dumped: DumpedDeduplication) -> None:
    """See that what was read has the types of its line, and an id.

    Raises:
        Corrupt: why it has not.
    """
    try:
        decode(encode(dumped))
        uuid.UUID(dumped.message_id)
    except ValueError as error:  # msgspec's among them
        raise Corrupt(str(error)) from error


def attributes(stored: dict[str, str], *, fifo: bool) -> dict[str, str]:
    """Those of a queue's attributes that a new queue can have."""
    if _is_allowed(stored, fifo=fifo):
        return stored
    return {name: text for name, text in stored.items() if _is_allowed({name: text}, fifo=fifo)}


def _is_allowed(some: dict[str, str], *, fifo: bool) -> bool:
    try:
        queue_attributes.parse_attributes(some, fifo=fifo, creating=True, limits=limits.NATIVE, current=None)
    except (SQSError, ValueError):
        return False
    return True


def tags(stored: dict[str, str]) -> dict[str, str]:
    """Those of a queue's tags that a new queue can have."""
    return {key: value for key, value in stored.items() if _is_tag(key, value)}


def _is_tag(key: str, value: str) -> bool:
    try:
        check_tags({key: value}, limits.NATIVE)
    except SQSError:
        return False
    return True
