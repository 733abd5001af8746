# SPDX-License-Identifier: Apache-2.0
"""Sweeping a payload store: removing what no message of a file refers to."""

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqsqlite.api.connect import SQS
from sqsqlite.payloads.errors import PayloadStoreDown
from sqsqlite.payloads.settling import owner_of
from sqsqlite.payloads.store import PayloadStore
from sqsqlite.sql import operators as sql
from sqsqlite.store.damage import undecoded

if TYPE_CHECKING:
    from sqsqlite.payloads.places import Stored

DAY_SECONDS = 86_400
_NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found below the keys of one owner.

    Attributes:
        owner: whose payloads.
        found: objects.
        referred: those that a message of the file refers to.
        young: those that are younger than the limit, and that no message refers to.
        removed, removed_bytes: orphans; in a dry run those that would be removed.
        failed: orphans that could not be removed.
    """

    owner: str
    found: int
    referred: int
    young: int
    removed: int
    removed_bytes: int
    failed: int


def sweep(
    sqs: SQS,
    store: PayloadStore,
    *,
    older_than: float = DAY_SECONDS,
    owner: str | None = None,
    dry_run: bool = False,
) -> Swept:
    """Remove payloads that no message of the file refers to.

    They stem from senders that were killed or rolled back, from purges and expired messages, and from removals that
    failed. Objects of other owners are not looked at.

    Args:
        older_than: seconds. Younger ones stay: their messages may be about to be committed. It must be longer than the
            longest transaction that sends. Default: a day.
        owner: whose payloads. Default: the store's own owner, else the file's id. With `remote`, or the id of another
            file, all messages of the owner must be in this file: what others refer to is removed.
        dry_run: remove nothing.

    Raises:
        PayloadStoreDown: the store could not be listed. Single payloads that can't be removed are counted instead.
        PayloadError: the store does not say when its objects were made.
        ValueError: `older_than` is negative.
    """
    if not older_than >= 0:
        raise ValueError(f"older_than={older_than!r}: 0 or more seconds are allowed")
    whose = owner or store.owner or owner_of(sqs._store)  # noqa: SLF001 # the open file behind Python's calls
    # In this order: a message that is sent after the look at the file has a payload that the list does not name.
    listed = store.list(whose)
    named = _named(sqs, whose)
    latest = time.time() - older_than
    unnamed = [one for one in listed if _name_of(one) not in named]
    orphans = [one for one in unnamed if one.changed_at <= latest]
    failed = 0
    removed_bytes = 0
    for orphan in orphans:
        try:
            if not dry_run:
                store.remove(store.pointer_to(orphan))
            removed_bytes += orphan.size_bytes
        except PayloadStoreDown:
            failed += 1
    return Swept(
        owner=whose,
        found=len(listed),
        referred=len(listed) - len(unnamed),
        young=len(unnamed) - len(orphans),
        removed=len(orphans) - failed,
        removed_bytes=removed_bytes,
        failed=failed,
    )


def _named(sqs: SQS, owner: str) -> set[str]:
    """The payloads' names in all bodies that name the owner, in one snapshot.

    Any mention counts, so that no way of writing a pointer is mistaken for none.
    """
    # A damaged body too keeps its payload.
    with sqs._store.reading() as snapshot, undecoded(snapshot.connection):  # noqa: SLF001
        rows = snapshot.execute(sql.LIST_BODIES_WITH, {"text": owner})
        return {name for (body,) in rows for name in _NAME.findall(str(body))}


def _name_of(stored: "Stored") -> str:
    """The payload's own name: what the owner's folder calls it. A partial file has one that no message names."""
    return stored.name.rpartition("/")[2]
