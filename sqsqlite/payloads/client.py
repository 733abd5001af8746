# SPDX-License-Identifier: Apache-2.0
"""A client with boto3's methods whose big bodies go to a store."""

import hashlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sqsqlite.api.client import Client
from sqsqlite.payloads.offloading import Fetcher, Offered, deliver, offload
from sqsqlite.payloads.pointers import SIZE_ATTRIBUTES, Pointer, marked, size_told, unmarked
from sqsqlite.payloads.settling import discard_when_committed, owner_of
from sqsqlite.payloads.store import REMOTE, PayloadStore

if TYPE_CHECKING:
    from sqsqlite.store.store import Store

_ALL = {"All", ".*"}


class ExtendedClient:
    """A client that sends big bodies through a payload store. `extend(client, store)` makes it.

    The methods below take and return what the client's own do. All other names are the client's.

    Attributes:
        payloads: the store.
    """

    def __init__(self, client: Any, store: PayloadStore) -> None:
        self._client = client
        self.payloads = store
        # A client of a file can look whether a message is gone, and joins the transaction of its thread.
        self._file: Store | None = _file_of(client)
        self._owner = REMOTE if self._file is None else owner_of(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def __repr__(self) -> str:
        return f"<ExtendedClient of {self._client!r}>"

    # --- sending

    def send_message(self, **parameters: Any) -> dict[str, Any]:
        """Send a message. The payload of a big one is stored first.

        Raises:
            PayloadStoreDown: nothing was sent.
            ValueError: an attribute has a reserved name; or a big message has ten of them.
        """
        url = parameters.get("QueueUrl")
        sent: dict[str, Any] = self._client.send_message(**self._entry(url, parameters))
        return sent

    def send_message_batch(self, **parameters: Any) -> dict[str, Any]:
        """Send up to ten messages. The payloads of big ones are stored first, all of them.

        Raises:
            PayloadStoreDown, ValueError: as `send_message`; nothing was sent.
        """
        url = parameters.get("QueueUrl")
        entries = [self._entry(url, entry) for entry in parameters.get("Entries", ())]
        sent: dict[str, Any] = self._client.send_message_batch(**{**parameters, "Entries": entries})
        return sent

    def _entry(self, url: Any, given: dict[str, Any]) -> dict[str, Any]:
        """The same message, with the pointer for a body that the store has taken."""
        body = given.get("MessageBody")
        taken = offload(self.payloads, body, given.get("MessageAttributes") or {}, self._owner)
        if taken is None:
            return given
        found = {**given, "MessageBody": taken.body, "MessageAttributes": taken.attributes}
        if "MessageDeduplicationId" not in given and self._is_content_based(url):
            # The content is the body, not its pointer, which differs each time.
            found["MessageDeduplicationId"] = hashlib.sha256(str(body).encode()).hexdigest()
        return found

    def _is_content_based(self, url: Any) -> bool:
        if not _is_fifo(url):
            return False
        wanted = "ContentBasedDeduplication"
        found = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=[wanted])
        return bool(found.get("Attributes", {}).get(wanted) == "true")

    # --- receiving

    def receive_message(self, **parameters: Any) -> dict[str, Any]:
        """Receive up to ten messages with their payloads. Their receipt handles also say where those are.

        A message whose payload can't be read stays in the queue, hidden until its visibility timeout ends. If others
        came with it they are returned, and the logger "sqsqlite" warns.

        Raises:
            PayloadMissing, PayloadStoreDown, PointerRefused: no message came whose payload can be read.
        """
        names = list(parameters.get("MessageAttributeNames") or ())
        if _ALL.isdisjoint(names):
            parameters["MessageAttributeNames"] = [
                *names,
                *(name for name in SIZE_ATTRIBUTES if name not in names),
            ]
        answer: dict[str, Any] = self._client.receive_message(**parameters)
        if not answer.get("Messages"):
            return answer
        fetch = Fetcher(self.payloads)
        ready = deliver(
            answer["Messages"],
            lambda message: _fill(message, fetch),
            is_fifo=_is_fifo(parameters.get("QueueUrl")),
            group_of=lambda message: message.get("Attributes", {}).get("MessageGroupId"),
        )
        return {**answer, "Messages": ready}

    # --- settling

    def delete_message(self, **parameters: Any) -> dict[str, Any]:
        """Delete a message, then its payload. A payload that can't be removed is no error: it is counted."""
        handle, pointer = _unmarked(parameters)
        answer: dict[str, Any] = self._client.delete_message(**{**parameters, **handle})
        if pointer is not None:
            self._discard([(handle["ReceiptHandle"], pointer)])
        return answer

    def delete_message_batch(self, **parameters: Any) -> dict[str, Any]:
        """Delete up to ten messages, then the payloads of those that are deleted."""
        read = [(entry, *_unmarked(entry)) for entry in parameters.get("Entries", ())]
        entries = [{**entry, **handle} for entry, handle, _ in read]
        answer: dict[str, Any] = self._client.delete_message_batch(**{**parameters, "Entries": entries})
        done = {one["Id"] for one in answer.get("Successful", ())}
        self._discard(
            (handle["ReceiptHandle"], pointer)
            for entry, handle, pointer in read
            if pointer is not None and entry.get("Id") in done
        )
        return answer

    def change_message_visibility(self, **parameters: Any) -> dict[str, Any]:
        """Hide a received message for another time, from now."""
        changed: dict[str, Any] = self._client.change_message_visibility(
            **{**parameters, **_unmarked(parameters)[0]}
        )
        return changed

    def change_message_visibility_batch(self, **parameters: Any) -> dict[str, Any]:
        """The same for up to ten."""
        entries = [{**entry, **_unmarked(entry)[0]} for entry in parameters.get("Entries", ())]
        changed: dict[str, Any] = self._client.change_message_visibility_batch(
            **{**parameters, "Entries": entries}
        )
        return changed

    def _discard(self, deleted: Iterable[tuple[str, Pointer]]) -> None:
        if self._file is not None:
            discard_when_committed(self._file, self.payloads, deleted)
            return
        for _, pointer in deleted:
            self.payloads.discard(pointer)


def _fill(message: dict[str, Any], fetch: Fetcher) -> None:
    """Put the payload into a received message."""
    attributes = message.get("MessageAttributes", {})
    size_bytes = size_told(attributes)
    if size_bytes is None:
        return
    plain = message["ReceiptHandle"]
    message["Body"], pointer = fetch(Offered(message["Body"], size_bytes, message["MessageId"], plain))
    message["ReceiptHandle"] = marked(plain, pointer)
    for name in SIZE_ATTRIBUTES:
        attributes.pop(name, None)
    if not attributes:
        message.pop("MessageAttributes", None)
        message.pop("MD5OfMessageAttributes", None)


def _unmarked(given: dict[str, Any]) -> tuple[dict[str, Any], Pointer | None]:
    """The queue's own receipt handle as a parameter, if there is one, and the pointer in the given handle."""
    handle = given.get("ReceiptHandle")
    if not isinstance(handle, str):
        return {}, None
    plain, pointer = unmarked(handle)
    return {"ReceiptHandle": plain}, pointer


def _is_fifo(url: Any) -> bool:
    return isinstance(url, str) and url.endswith(".fifo")


def _file_of(client: Any) -> "Store | None":
    """The open file behind a client of this process. None: the client reaches an endpoint."""
    if isinstance(client, Client):
        return client._store  # noqa: SLF001 # the open file behind its calls
    boto = sys.modules.get("sqsqlite.boto")  # else no client of boto3 can be a file's
    return None if boto is None or not hasattr(client, "meta") else boto.store_of(client)
