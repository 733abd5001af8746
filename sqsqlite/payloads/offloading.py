# SPDX-License-Identifier: Apache-2.0
"""What the extended queue and the extended client share: a message's way into the store, and back out of it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sqsqlite.payloads.errors import PayloadError, PayloadMissing, PayloadStoreDown, PointerRefused
from sqsqlite.payloads.pointers import MAX_ATTRIBUTES, SIZE_ATTRIBUTE, SIZE_ATTRIBUTES, body_of, pointer_in
from sqsqlite.payloads.store import PayloadStore

M = TypeVar("M")


class Offloaded(NamedTuple):
    """The pointer as a body, and the attributes with the payload's size, in boto3's form."""

    body: str
    attributes: dict[str, Any]


def offload(
    store: PayloadStore, body: Any, attributes: Mapping[str, Mapping[str, Any]], owner: str
) -> Offloaded | None:
    """Store a message's body if the store takes it. None: the message is to be sent as it is.

    Raises:
        ValueError: an attribute has a reserved name, or there are ten: one more is needed for the size.
        PayloadStoreDown: the store can't be reached, or refuses. The message must not be sent.
    """
    reserved = attributes.keys() & SIZE_ATTRIBUTES
    if reserved:
        raise ValueError(f"attribute {min(reserved)!r}: the name is reserved for the size of a payload")
    if not isinstance(body, str):
        return None  # SQS's own words for it come with the send
    try:
        data = body.encode()
    except UnicodeEncodeError:
        return None
    if not store.takes(data, attributes):
        return None
    if len(attributes) > MAX_ATTRIBUTES:
        raise ValueError(
            f"{len(attributes)} attributes: a message with a payload may have {MAX_ATTRIBUTES}, since the size of the "
            "payload is one more"
        )
    pointer = store.put(data, owner=owner)
    size = {"DataType": "Number", "StringValue": str(len(data))}
    return Offloaded(body_of(pointer), {**attributes, SIZE_ATTRIBUTE: size})


class Offered(NamedTuple):
    """A received message that has a payload, as far as this module needs to know it.

    Attributes:
        body: the pointer, as the message's body.
        size_bytes: what its attribute tells.
    """

    body: str
    size_bytes: int
    message_id: str
    receipt_handle: str


def fetch(store: PayloadStore, message: Offered) -> tuple[str, Any]:
    """The body that was sent, and the pointer to it.

    Raises:
        PayloadMissing: there is no such object, or it has another size or is no text.
        PayloadStoreDown: the store can't be reached, or refuses.
        PointerRefused: the body is no pointer, or it leads out of the store.
    """
    pointer = pointer_in(message.body)
    try:
        if pointer is None:
            store.count("refused")
            raise PointerRefused(
                f"it has the attribute {SIZE_ATTRIBUTE}, but its body is no pointer: {message.body[:80]!r}"
            )
        data = store.get(pointer)
        if len(data) != message.size_bytes:
            store.count("missing")
            raise PayloadMissing(
                f"{pointer} has {len(data):,} bytes, and {message.size_bytes:,} were sent: it is another object"
            )
        try:
            return data.decode(), pointer
        except UnicodeDecodeError as error:
            store.count("missing")
            raise PayloadMissing(f"{pointer} is no text in UTF-8: {error}") from error
    except PayloadError as error:
        told = type(error)(
            f"message {message.message_id}: {error}. The message stays in its queue, hidden until its visibility "
            "timeout ends"
        )
        told.pointer, told.message_id, told.receipt_handle = (
            pointer,
            message.message_id,
            message.receipt_handle,
        )
        raise told from (error.__cause__ or error)


def deliver(
    found: Sequence[M], fill: Callable[[M], None], *, is_fifo: bool, group_of: Callable[[M], str | None]
) -> list[M]:
    """Fill in the payloads of received messages, and give those that can be handed over.

    The others stay hidden: those whose payload is missing; all that have one once the store is down; and on a FIFO
    queue those behind them in their group, which would overtake them.

    Args:
        fill: raises PayloadError for a message that can't be handed over.
        group_of: a message's group; None: it is not known, so it may be any.

    Raises:
        PayloadError: of the first message, if no message can be handed over. Those of other messages are logged.
    """
    ready: list[M] = []
    errors: list[PayloadError] = []
    blocked: set[str | None] = set()
    behind = 0
    for message in found:
        group = group_of(message) if is_fifo else None
        if is_fifo and blocked and (group in blocked or group is None or None in blocked):
            behind += 1
            continue
        try:
            fill(message)
        except PayloadError as error:
            errors.append(error)
            if is_fifo:
                blocked.add(group)
        else:
            ready.append(message)
    for each in errors if ready else errors[1:]:
        logging.getLogger("sqsqlite").warning("%s", each)
    if behind:
        logging.getLogger("sqsqlite").warning(
            "%d messages behind these in their groups stay hidden too, so that the order is kept", behind
        )
    if errors and not ready:
        raise errors[0]
    return ready


class Fetcher:
    """Fetches the payloads of one receive, and stops asking a store that is down."""

    def __init__(self, store: PayloadStore) -> None:
        self._store = store
        self._down: PayloadStoreDown | None = None

    def __call__(self, message: Offered) -> tuple[str, Any]:
        """See `fetch`."""
        if self._down is not None:
            told = PayloadStoreDown(f"message {message.message_id}: not fetched either, for the same reason")
            told.message_id, told.receipt_handle = message.message_id, message.receipt_handle
            told.pointer = pointer_in(message.body)
            raise told from self._down
        try:
            return fetch(self._store, message)
        except PayloadStoreDown as error:
            self._down = error
            raise
