# SPDX-License-Identifier: Apache-2.0
"""A queue of an open file whose big bodies go to a store."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqsqlite.api.message import Message, SentMessage, to_attributes
from sqsqlite.api.queue import Queue
from sqsqlite.contract import requests
from sqsqlite.payloads.offloading import Fetcher, Offered, deliver, offload
from sqsqlite.payloads.pointers import SIZE_ATTRIBUTES, marked, size_told, unmarked
from sqsqlite.payloads.settling import discard_when_committed, owner_of
from sqsqlite.payloads.store import PayloadStore

if TYPE_CHECKING:
    from sqsqlite.api.message import CallersTransaction


class ExtendedQueue(Queue):
    """A `Queue` that sends big bodies through a payload store. `extend(queue, store)` makes it.

    What is not described here is `Queue`'s own. `peek`, `purge`, `delete` and the digests of messages know pointers,
    not payloads: a purge leaves the payloads to a sweep.
    """

    def __init__(self, queue: Queue, store: PayloadStore) -> None:
        super().__init__(queue._store, queue.name)  # noqa: SLF001 # the same queue of the same open file
        self.payloads = store
        self._owner = owner_of(self._store)

    def send(
        self,
        body: str,
        *,
        delay: int | None = None,
        attributes: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        deduplication_id: str | None = None,
        trace_header: str | None = None,
        connection: "CallersTransaction | None" = None,
    ) -> SentMessage:
        """Send a message. The payload of a big one is stored first, durably; then the message, as `Queue.send` does.

        Inside a transaction too the payload is stored at once. If the transaction rolls back, a sweep removes it.

        Raises:
            PayloadStoreDown: nothing was sent.
            ValueError: an attribute has a reserved name; or a big message has ten of them.
            as `Queue.send`.
        """
        given = self._entry({"body": body, "attributes": attributes, "deduplication_id": deduplication_id})
        return super().send(
            given["body"],
            delay=delay,
            attributes=given["attributes"],
            group_id=group_id,
            deduplication_id=given["deduplication_id"],
            trace_header=trace_header,
            connection=connection,
        )

    def send_many(
        self, messages: Iterable[str | Mapping[str, Any]], *, connection: "CallersTransaction | None" = None
    ) -> list[SentMessage]:
        """Send any number of messages in one transaction: all of them or none. Payloads are stored before it begins.

        Raises:
            PayloadStoreDown, ValueError: as `send`; nothing was sent.
            as `Queue.send_many`.
        """
        if not isinstance(messages, (str, bytes, bytearray, Mapping)):
            messages = [self._entry(message) for message in messages]
        return super().send_many(messages, connection=connection)

    def _entry(self, message: Any) -> Any:
        """A message of `send_many`, with the pointer for a body that the store has taken."""
        given = {"body": message} if isinstance(message, str) else message
        if not isinstance(given, Mapping):
            return message  # `send_many` has words for it
        named: Any = given.get("attributes")
        attributes = to_attributes(named) or {}
        body = given.get("body")
        taken = offload(self.payloads, body, attributes, self._owner)
        if taken is None:
            return message
        found = {**given, "body": taken.body, "attributes": taken.attributes}
        if given.get("deduplication_id") is None and self._is_content_based():
            # The content is the body, not its pointer, which differs each time.
            found["deduplication_id"] = hashlib.sha256(str(body).encode()).hexdigest()
        return found

    def _is_content_based(self) -> bool:
        return self.name.endswith(".fifo") and self.attributes.get("ContentBasedDeduplication") == "true"

    def receive(
        self,
        max_messages: int = 1,
        wait: int | None = None,
        visibility_timeout: int | None = None,
        *,
        attempt_id: str | None = None,
        connection: "CallersTransaction | None" = None,
    ) -> list[Message]:
        """Receive up to `max_messages` (1 to 10) with their payloads. Their receipt handles also say where those are.

        A message whose payload can't be read stays in the queue, hidden until its visibility timeout ends. If others
        came with it they are returned, and the logger "sqsqlite" warns; `PayloadStore.counts` counts it.

        Raises:
            PayloadMissing, PayloadStoreDown, PointerRefused: no message came whose payload can be read.
            as `Queue.receive`.
        """
        found = super().receive(
            max_messages, wait, visibility_timeout, attempt_id=attempt_id, connection=connection
        )
        fetch = Fetcher(self.payloads)

        def fill(message: Message) -> None:
            size_bytes = size_told(message.attributes)
            if size_bytes is None:
                return
            plain = message.receipt_handle
            message.body, pointer = fetch(Offered(message.body, size_bytes, message.message_id, plain))
            message.receipt_handle = marked(plain, pointer)
            for name in SIZE_ATTRIBUTES:
                message.attributes.pop(name, None)

        return deliver(
            found, fill, is_fifo=self.name.endswith(".fifo"), group_of=lambda message: message.group_id
        )

    def delete_many(
        self,
        messages: "Iterable[Message | str]",
        *,
        missing_ok: bool = False,
        connection: "CallersTransaction | None" = None,
    ) -> None:
        """Delete any number of received messages: all of them or none. Their payloads follow after the commit.

        A payload that can't be removed is no error: it is counted, and left to a sweep.

        Raises:
            as `Queue.delete_many`.
        """
        if isinstance(messages, (str, Message)):
            super().delete_many(messages)  # raises TypeError
        pairs = [
            unmarked(handle) if isinstance(handle, str) else (handle, None) for handle in _handles(messages)
        ]
        super().delete_many([handle for handle, _ in pairs], missing_ok=missing_ok, connection=connection)
        self._discard([(handle, pointer) for handle, pointer in pairs if pointer is not None], connection)

    def _call(
        self, kind: type, parameters: dict[str, Any], connection: "CallersTransaction | None" = None
    ) -> Any:
        """All requests come here: a receipt handle becomes the queue's own, and a delete removes the payload too."""
        handle, pointer = unmarked(parameters.get("ReceiptHandle", ""))
        if pointer is not None:
            parameters["ReceiptHandle"] = handle
        response = super()._call(kind, parameters, connection)
        if pointer is not None and kind is requests.DeleteMessage:
            self._discard([(handle, pointer)], connection)
        return response

    def _discard(self, deleted: list[tuple[str, Any]], connection: "CallersTransaction | None") -> None:
        if deleted:
            raw = None if connection is None else self._store.application.connection_of(connection)
            discard_when_committed(self._store, self.payloads, deleted, raw)


def _handles(messages: Iterable[Any]) -> Iterable[Any]:
    """Of each message its handle; other things stay, for `Queue.delete_many` to name."""
    return (message.receipt_handle if isinstance(message, Message) else message for message in messages)
