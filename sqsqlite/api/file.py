# SPDX-License-Identifier: Apache-2.0
"""An open file as a whole: backups, checks, dumps and access keys."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.store.store import Store

# Loaded when they are used: a program that sends and receives needs none of them.
if TYPE_CHECKING:
    from sqsqlite.access.keys import AccessKey, NewKey, Session
    from sqsqlite.operators.check import DamagedMessage, Finding
    from sqsqlite.operators.load import Loaded

Line = str | bytes | Mapping[str, Any]
"""A line of a dump: JSON, or the object that it holds."""


class OpenFile:
    """An open file as a whole. `SQS` adds the queues."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._store.path}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"an {type(self).__name__} can't be pickled or copied: open the file in the other process, "
            f"with sqsqlite.connect({str(self._store.path)!r})"
        )

    def close(self) -> None:
        """Close the file. Waiting receives return empty; messages in flight stay so until their timeout ends."""
        self._store.close()

    @property
    def path(self) -> Path:
        """The file."""
        return self._store.path

    @property
    def region(self) -> str:
        """The region that the ARNs of this opening name."""
        return self._store.settings.region

    def now_ms(self) -> int:
        """The file's clock: milliseconds since 1970 UTC. Steps of the machine's clock do not move it."""
        return self._store.clock.now_ms()

    def backup(self, target: str | os.PathLike[str], *, replace: bool = False) -> int:
        """Copy the file as it is at one instant, messages in flight included, while others send and receive.

        The copy gets its name when it is whole and synced. Killed before that, the target is as it was.

        Args:
            target: the backup: one file, which needs no other.
            replace: take the place of an existing backup.

        Returns:
            The backup's size in bytes.

        Raises:
            TargetExists: the target exists, and `replace` is False.
            FileInUse: the target is a database that a process has open.
            MissingFolder, ReadOnlyFile, DiskFull, InputOutputError: see `errors`.
        """
        from sqsqlite.operators.backup import backup

        return backup(self._store, target, replace=replace)

    def check(
        self, *, quick: bool = False, bodies: bool = False, progress: Callable[[str], None] | None = None
    ) -> "list[Finding]":
        """Check the file for damage, at one instant, while others use it.

        Args:
            quick: do not compare the indexes with their tables.
            bodies: compute the MD5 of each body too.
            progress: called with the name of each step, before it begins.

        Returns:
            An empty list for a sound file. If SQLite finds damaged pages, the rows are not checked.
        """
        from sqsqlite.operators.check import check

        return check(self._store, quick=quick, bodies=bodies, progress=progress or (lambda _: None))

    def damaged_messages(self) -> "list[DamagedMessage]":
        """All messages that can't be received because their rows are damaged. Reads every message.

        Raises:
            Corrupt: pages of the file are damaged. Nothing may be deleted from such a file.
        """
        from sqsqlite.operators.check import damaged_messages

        return damaged_messages(self._store)

    def set_aside(self, damaged: "Sequence[DamagedMessage]", target: str | os.PathLike[str]) -> int:
        """Write damaged messages to a new file as JSON lines, sync it, then delete the messages in one transaction.

        Args:
            damaged: from `damaged_messages()`.
            target: must not exist. Only its owner can read it. Bytes, and texts that are not UTF-8, are Base64 under a
                name that ends in `_base64`.

        Returns:
            The number of messages deleted.

        Raises:
            TargetExists: the target exists.
            CannotOpen: the target can't be written.
            StoreError: the messages could not be deleted; the target stays.
        """
        from sqsqlite.operators.check import set_aside

        return set_aside(self._store, damaged, target)

    def dump(self, *queues: str, on_damage: Callable[[str], None] | None = None) -> Iterator[dict[str, Any]]:
        """Yield queues with all their messages as they are at one instant. Changes nothing.

        Each object is a line of a dump: its `kind` is "dump", "queue", "message", "deduplication" or "end".
        `json.dumps` writes it, and `load` takes it. Messages in flight are included, and stay with their consumers.
        The snapshot is held until the last object was taken, and the WAL grows for that long.

        Args:
            queues: names, URLs or ARNs; without any, all queues.
            on_damage: called with a sentence for each message, queue or range of rows that is damaged and left out.
                Without it they are logged as warnings.

        Raises:
            QueueDoesNotExist: no queue has this name. Raised before the first object.
            Corrupt: the file is too damaged to find the queues.
        """
        from sqsqlite.operators.dump import dump
        from sqsqlite.operators.dump_lines import to_row

        return map(to_row, dump(self._store, queues, LOCAL, passed_by=on_damage))

    def load(
        self,
        lines: Iterable[Line],
        *,
        renew: bool = False,
        again: bool = False,
        progress: "Callable[[Loaded], None] | None" = None,
    ) -> "Loaded":
        """Create the missing queues of a dump, and append its messages.

        Messages keep their ids, send times, receive counts and delays. Existing queues keep their settings. Hundreds of
        messages are one commit, and each commit notes how much of this dump is in the file: loading the same dump
        again goes on from there.

        Args:
            lines: of one dump: an open file, or what `dump` yields.
            renew: give messages new ids, and store them as sent now and never received.
            again: load the dump from its beginning, whatever was loaded of it before.
            progress: called with the counts so far after each commit.

        Raises:
            BadDump: a line does not belong to a dump, or the end is missing.
            SQSError: a queue or message is not allowed here; the message begins with the line's number.
            DiskFull, Busy: see `errors`. All earlier commits are in the file.
        """
        from sqsqlite.operators.load import load

        return load(
            self._store, lines, LOCAL, renew=renew, again=again, progress=progress or (lambda _: None)
        )

    @property
    def keys(self) -> "AccessKeys":
        """The access keys of the file's endpoint."""
        return AccessKeys(self._store)


class AccessKeys:
    """The access keys that `sqsqlite serve` checks signatures with. While a file has one, requests must be signed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<AccessKeys {self._store.path}>"

    def add(self, account_id: str = LOCAL.account_id, user_name: str = "") -> "NewKey":
        """Make a key. A running server takes it at once.

        From then on, users who may not write the file may not read it either, because its secrets are in it.

        Args:
            account_id: twelve digits: whose queues the key is for.
            user_name: up to 64 letters, digits and `_+=,.@-`, for policies that name a user; empty: the account.

        Returns:
            The key with its secret, which nothing shows again.

        Raises:
            InvalidParameterValue: an account or user of another form.
        """
        from sqsqlite.access.keys import add_key

        return self._store.write(add_key, account_id, user_name)

    def list(self) -> "tuple[AccessKey, ...]":
        """All keys by their ids, without their secrets. Expired ones are listed until the next key is made."""
        from sqsqlite.access.keys import list_keys

        with self._store.reading() as snapshot:
            return tuple(list_keys(snapshot.connection))

    def rotate(self, access_key_id: str, grace_seconds: int = 3_600) -> "NewKey":
        """Make another key of the same account and user.

        Args:
            grace_seconds: 0 to 31,536,000 (a year): how long the old key goes on.

        Raises:
            InvalidParameterValue: the key does not exist or has expired, or the time is out of its range.
        """
        from sqsqlite.access.keys import rotate_key

        return self._store.write(rotate_key, access_key_id, grace_seconds)

    def remove(self, access_key_id: str) -> None:
        """Delete a key, and overwrite its secret. A running server refuses it at once; the account's queues stay.

        Raises:
            InvalidParameterValue: the key does not exist.
        """
        from sqsqlite.access.keys import remove_key

        self._store.write(remove_key, access_key_id)

    def session(self, access_key_id: str, duration_seconds: int = 3_600) -> "Session":
        """Temporary credentials that act as the key's account and user. Writes nothing.

        They end with the key if that ends first.

        Args:
            duration_seconds: 900 to 129,600 (15 minutes to 36 hours).

        Raises:
            InvalidParameterValue: the key does not exist or has expired, or the time is out of its range.
        """
        from sqsqlite.access.keys import find_credentials, make_session, no_such_key

        parent = find_credentials(self._store, access_key_id)
        if parent is None:
            raise no_such_key(access_key_id)
        return make_session(access_key_id, parent, duration_seconds, time.time())
