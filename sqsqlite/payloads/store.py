# SPDX-License-Identifier: Apache-2.0
"""A payload store: which bodies go there, under what keys, and what happened to them."""

import os
import re
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqsqlite.contract.limits import Range
from sqsqlite.payloads.errors import PayloadError, PayloadMissing, PayloadStoreDown, PointerRefused
from sqsqlite.payloads.places import Stored, place_at
from sqsqlite.payloads.pointers import Pointer, size_of

THRESHOLD_BYTES = Range(0, 1_048_576)
DEFAULT_THRESHOLD_BYTES = 262_144  # of Amazon's clients
# The owner of payloads whose senders can't know the file: they send to an endpoint.
REMOTE = "remote"
_OWNER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_KEY_BYTES = 1_024  # of S3
_UNFIT = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")


@dataclass(slots=True)
class Counts:
    """What a `PayloadStore` did since it was made, in this process.

    Attributes:
        stored, fetched, removed: payloads.
        missing: payloads that were not there when their messages were received.
        refused: pointers that could not be read, or that led out of the store.
        down: how often the store could not be reached, or refused; failed removals are not among them.
        not_removed: payloads that stayed after their messages were deleted. A sweep removes them.
    """

    stored: int = 0
    fetched: int = 0
    removed: int = 0
    missing: int = 0
    refused: int = 0
    down: int = 0
    not_removed: int = 0


class PayloadStore:
    """A place for bodies that are too big for a queue. Any number of threads may use it.

    Args:
        url: a folder (`file:///var/lib/app/payloads`, or a path), which is made if only its last part is missing; or
            any URL of fsspec's, such as `s3://bucket/prefix`.
        threshold: bytes, 0 to 1,048,576. A message with more goes to the store; body and attributes count, in UTF-8.
            Default: 262,144, as Amazon's clients.
        always: send every body to the store.
        owner: the part of the keys between the URL and the payload's own name, 1 to 64 letters, digits, `-` and `_`. A
            sweep looks at one owner only. Default: the id of the open file; for clients of an endpoint, `remote`.
        remove: whether deleting a message removes its payload. False where several queues share payloads, as behind
            Amazon SNS.
        create: make a missing folder.
        options: of fsspec's implementation, such as `endpoint_url` and `key` for `s3://`.

    Attributes:
        url: the store's URL, without a password.

    Raises:
        ValueError: the threshold, the owner or the URL is not as described.
        TypeError: options with a folder, which has none.
        ModuleNotFoundError: fsspec is not installed, or lacks the package that the URL needs.
        PayloadStoreDown: the folder is missing, and can't or shall not be made.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        threshold: int = DEFAULT_THRESHOLD_BYTES,
        always: bool = False,
        owner: str | None = None,
        remove: bool = True,
        create: bool = True,
        **options: Any,
    ) -> None:
        if not THRESHOLD_BYTES.low <= threshold <= THRESHOLD_BYTES.high:
            raise ValueError(
                f"threshold={threshold!r}: {THRESHOLD_BYTES.low} to {THRESHOLD_BYTES.high:,} bytes are allowed"
            )
        if owner is not None and not _OWNER.fullmatch(owner):
            raise ValueError(f"owner={owner!r}: 1 to 64 letters, digits, - and _ are allowed")
        self.threshold = threshold
        self.always = always
        self.owner = owner
        self.remove_with_message = remove
        self._place = place_at(url, options, create=create)
        self.url = self._place.shown
        self._counts = Counts()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<PayloadStore {self.url}>"

    @property
    def counts(self) -> Counts:
        """What happened so far. A copy: later events do not change it."""
        with self._lock:
            return replace(self._counts)

    def count(self, name: str) -> None:
        """Add one to a count."""
        with self._lock:
            setattr(self._counts, name, getattr(self._counts, name) + 1)

    def takes(self, body: bytes, attributes: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether a message's body goes to the store.

        Args:
            body: in UTF-8.
            attributes: in boto3's form.
        """
        return bool(body) and (self.always or size_of(body, attributes) > self.threshold)

    # --- objects

    def put(self, data: bytes, *, owner: str = REMOTE) -> Pointer:
        """Store a payload under a new key. When this returns it is durable; in a folder that means synced.

        Args:
            owner: what the key says if the store has no owner of its own.

        Raises:
            PayloadStoreDown: nothing was stored that a pointer leads to.
        """
        name = f"{self.owner or owner}/{uuid.uuid4()}"
        try:
            self._place.put(name, data)
        except PayloadStoreDown:
            self.count("down")
            raise
        self.count("stored")
        return Pointer(self._place.bucket, self._place.prefix + name)

    def get(self, pointer: Pointer) -> bytes:
        """Read a payload.

        Raises:
            PayloadMissing: it is not there.
            PayloadStoreDown: the store can't be reached, or refuses.
            PointerRefused: the pointer does not lead below the store's URL.
        """
        try:
            found = self._place.get(self._name(pointer))
        except PayloadError as error:
            error.pointer = pointer
            self.count(_COUNTED[type(error)])
            raise
        self.count("fetched")
        return found

    def remove(self, pointer: Pointer) -> None:
        """Remove a payload. One that is gone already is no error.

        Raises:
            PayloadStoreDown, PointerRefused: as `get`.
        """
        self._place.remove(self._name(pointer))
        self.count("removed")

    def discard(self, pointer: Pointer) -> None:
        """Remove a deleted message's payload, unless `remove` is False. A failure is counted and left to a sweep."""
        if not self.remove_with_message:
            return
        try:
            self.remove(pointer)
        except PayloadError:
            self.count("not_removed")

    def list(self, owner: str) -> list[Stored]:
        """The payloads of one owner, by their names below the store's URL.

        Raises:
            PayloadStoreDown: as `get`.
            PayloadError: the store does not know when its objects were made.
        """
        return self._place.list(owner)

    def pointer_to(self, stored: Stored) -> Pointer:
        """The pointer to an object that `list` gave."""
        return Pointer(self._place.bucket, self._place.prefix + stored.name)

    def _name(self, pointer: Pointer) -> str:
        """The object's name below the store's URL. Any sender may have written the pointer, so it is not trusted."""
        place = self._place
        name = pointer.key.removeprefix(place.prefix)
        parts = name.split("/")
        if (
            pointer.bucket != place.bucket
            or not pointer.key.startswith(place.prefix)
            or _UNFIT.search(name)
            or len(pointer.key.encode()) > _MAX_KEY_BYTES
            or not {"", ".", ".."}.isdisjoint(parts)
        ):
            raise PointerRefused(
                f"the pointer to bucket {pointer.bucket!r}, key {pointer.key!r} does not lead below {self.url} (bucket "
                f"{place.bucket!r}, keys that begin with {place.prefix!r})"
            )
        return name


_COUNTED = {PayloadMissing: "missing", PayloadStoreDown: "down", PointerRefused: "refused"}
