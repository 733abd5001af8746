# SPDX-License-Identifier: Apache-2.0
"""Checks a file for damage, first with SQLite's own checks, then row by row, and sets damaged messages aside."""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.actions import damaged as actions
from sqsqlite.actions.damaged import check_message
from sqsqlite.actions.queue_rows import StoredMessage
from sqsqlite.contract.digests import md5_of_body
from sqsqlite.errors import CannotOpen, Corrupt, NotADatabase, TargetExists
from sqsqlite.sql import file as sql
from sqsqlite.sql import operators as find
from sqsqlite.store import create, meta, migrate
from sqsqlite.store.closed import reading
from sqsqlite.store.damage import findings, undecoded
from sqsqlite.store.driver import dbapi
from sqsqlite.store.translate import CORRUPT, primary_code

if TYPE_CHECKING:
    from sqsqlite.store.driver import Connection
    from sqsqlite.store.store import Store

RESTORE = "restore a backup; or `dump` the readable part and `load` it into a new file"
_REBUILD = "`dump` the queues and `load` them into a new file, which keeps everything that is whole"
_SET_ASIDE = "`sqsqlite check --set-aside FILE` writes it to FILE and deletes it"
_UPKEEP = "nothing is lost; it uses space until you `dump` and `load` into a new file"


_A_VALUE = re.compile(r"(NULL|TEXT|NUMERIC|non-\w+) value in sqs_")
# Places in the rows of LIST_STORED_MESSAGES.
_QUEUE = 9
_COLUMNS = ("message_id", "body_md5", "body", "sender_id", "group_id", "trace_header", "attributes")


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of the file and its remedy. `str()` is one line."""

    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.what}. What to do: {self.advice}."


@dataclass(frozen=True, slots=True)
class DamagedMessage:
    """A message that can't be received because its rows are damaged.

    Attributes:
        queue: the queue's name.
        why: the damage.
        columns: its row in `sqs_messages`, by column; empty if the row is missing. A TEXT that is not UTF-8 is bytes.
        lease: its row in `sqs_leases`, by column.
    """

    row_id: int
    queue: str
    why: str
    columns: dict[str, Any]
    lease: dict[str, Any]

    def __str__(self) -> str:
        return f"message {self.row_id} of queue {self.queue} is damaged: {self.why}"


class Invariant(NamedTuple):
    """A statement that finds nothing in a sound file, and the sentence for each row that it finds."""

    name: str
    statement: str
    words: str
    advice: str


INVARIANTS = (
    Invariant(
        "a message for each lease",
        find.FIND_LEASES_WITHOUT_MESSAGE,
        "lease {0} has no message: its body is lost",
        _SET_ASIDE,
    ),
    Invariant(
        "a lease for each message",
        find.FIND_MESSAGES_WITHOUT_LEASE,
        "message {0} has no lease: no queue will ever hand it out",
        RESTORE,
    ),
    Invariant(
        "row ids",
        find.FIND_REUSABLE_IDS,
        "sqlite_sequence is behind message {0}: an old receipt handle could name a new message",
        _REBUILD,
    ),
    Invariant(
        "an epoch for each lease",
        find.FIND_LEASES_WITHOUT_EPOCH,
        "{1} leases belong to the epoch {0}, which does not exist",
        RESTORE,
    ),
    Invariant(
        "an epoch for each queue",
        find.FIND_QUEUES_WITHOUT_EPOCH,
        "queue {0} refers to the epoch {1}, which is not its own",
        "purge the queue, which gives it a new one",
    ),
    Invariant(
        "a queue for each epoch", find.FIND_EPOCHS_WITHOUT_QUEUE, "the epoch {0} belongs to no queue", _UPKEEP
    ),
    Invariant(
        "counts",
        find.FIND_WRONG_COUNTS,
        "queue {0} counts messages, in flight, delayed as {1}, {2}, {3}; there are {4}, {5}, {6}",
        "`dump` the queue, `purge` it, `load` the dump with --again",
    ),
    Invariant(
        "states",
        find.FIND_ODD_LEASES,
        "lease {0} is in an impossible state: visible_at {1}, received {2} times, {3} of them in this "
        "queue, last at {4}",
        _REBUILD,
    ),
    Invariant(
        "send times",
        find.FIND_MESSAGES_FROM_THE_FUTURE,
        "message {0} was sent {1} ms in the future: the clock was ahead then, or is behind now",
        "set the machine's clock; the message stays that much longer than its retention",
    ),
    Invariant(
        "message groups",
        find.FIND_LEASES_WITHOUT_GROUP,
        "lease {0} is of the message group {1}, which does not exist in its queue",
        _REBUILD,
    ),
    Invariant(
        "a message for each message group",
        find.FIND_GROUPS_WITHOUT_LEASE,
        "message group {0} of queue {1} has no messages: receives search it for nothing",
        _REBUILD,
    ),
    Invariant(
        "when message groups are receivable",
        find.FIND_WRONG_GROUP_HEADS,
        "message group {0} of queue {1} is receivable from {2} on, its first message from {3} on",
        _REBUILD,
    ),
    Invariant(
        "tenants",
        find.FIND_UNMARKED_TENANTS,
        "queue {0} has messages of tenants and is not marked so: new messages don't take turns with them",
        _REBUILD,
    ),
    Invariant(
        "provenance",
        find.FIND_DEAD_LETTERS_WITHOUT_LEASE,
        "the file notes where message {0} was moved from, but has no such message",
        _UPKEEP,
    ),
    Invariant(
        "earlier moves",
        find.FIND_ODD_PROVENANCE,
        "the earlier dead-letter queues of message {0} can't be read: a redrive by one step forgets them",
        "redrive it with a destination",
    ),
    Invariant(
        "dead-letter queues",
        find.FIND_UNMARKED_DEAD_LETTER_QUEUES,
        "queue {0} holds dead letters and is not marked so: receives don't name their source",
        _REBUILD,
    ),
)


def check(
    store: "Store",
    *,
    quick: bool = False,
    bodies: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Finding]:
    """Check the whole file, at one instant, while others use it.

    Args:
        quick: SQLite's quick_check instead of its integrity_check: indexes are not compared with their tables.
        bodies: also compute the MD5 of each body.
        progress: called with the name of each step, before it begins.

    Returns:
        An empty list for a sound file. If SQLite finds damaged pages, the rows are not checked.
    """
    with store.reading() as snapshot:
        return _check(snapshot.connection, snapshot.now_ms, quick, bodies, progress)


def check_closed(
    path: str | os.PathLike[str], *, quick: bool, bodies: bool, progress: Callable[[str], None]
) -> list[Finding]:
    """The same for a file that is not open here, or is too damaged to be opened. The file is only read.

    Raises:
        SchemaTooOld, SchemaTooNew: the file is of another version's schema.
        StoreError: the file can't be read, and not because of damage.
    """
    try:
        with reading(path) as connection:
            connection.execute("BEGIN")
            meta.check_version(connection, create.resolved(path))
            return _check(connection, meta.now_ms(connection), quick, bodies, progress)
    except (Corrupt, NotADatabase) as error:
        return [Finding(str(error), RESTORE)]


def _check(
    connection: "Connection", now_ms: int, quick: bool, bodies: bool, progress: Callable[[str], None]
) -> list[Finding]:
    findings: list[Finding] = []
    try:
        findings.extend(_findings(connection, now_ms, quick, bodies, progress))
    except dbapi.Error as error:
        if primary_code(error) != CORRUPT:
            raise
        findings.append(Finding(f"SQLite: {error}", RESTORE))
    return findings


def _findings(
    connection: "Connection", now_ms: int, quick: bool, bodies: bool, progress: Callable[[str], None]
) -> Iterator[Finding]:
    pragma = "quick_check" if quick else "integrity_check"
    progress(pragma)
    damage = findings(connection, pragma, 20, progress)
    yield from (Finding(f"SQLite: {line}".replace("\n", " "), RESTORE) for line in damage)
    if not all(map(is_about_a_value, damage)):
        return
    progress("schema")
    for line in migrate.differences(connection):
        yield Finding(line, _REBUILD)
    yield from _facts(connection)
    for invariant in INVARIANTS:
        progress(invariant.name)
        for row in connection.execute(invariant.statement, _parameters(invariant, now_ms)):
            yield Finding(invariant.words.format(*row), invariant.advice)
    progress("messages")
    for message in find_damaged(connection):
        if message.columns:  # without any it was found above
            yield Finding(str(message), _SET_ASIDE)
    if bodies:
        progress("bodies")
        yield from _bodies(connection)


def _parameters(invariant: Invariant, now_ms: int) -> dict[str, Any]:
    return {"now_ms": now_ms} if ":now_ms" in invariant.statement else {}


def _facts(connection: "Connection") -> Iterator[Finding]:
    facts = {name: value for name, _, value in connection.execute(sql.SELECT_META)}
    for name, size_bytes in (("file_id", 16), ("secret", 32)):
        if len(facts.get(name) or b"") != size_bytes:
            yield Finding(f"sqs_meta: {name} is not of {size_bytes} bytes", RESTORE)


def _in_utf8(stored: bytes, encoding: str) -> bytes:
    """What was digested at the send. `encoding` is "UTF-16le" or "UTF-16be"; broken text has another MD5."""
    return stored.decode(encoding, "replace").encode()


def _bodies(connection: "Connection") -> Iterator[Finding]:
    encoding = connection.execute("PRAGMA encoding").fetchone()[0]  # an adopted file's is its owner's choice
    for row_id, body_md5, body in connection.execute(find.LIST_BODIES):
        if md5_of_body(body if encoding == "UTF-8" else _in_utf8(body, encoding)) != body_md5:
            yield Finding(f"message {row_id}: its body does not have the MD5 that was sent", RESTORE)


# --- damaged messages


def damaged_messages(store: "Store") -> list[DamagedMessage]:
    """All damaged messages of all queues, by row id. Reads every message.

    Raises:
        Corrupt: pages of the file are damaged. Nothing may be deleted from such a file.
    """
    with store.reading() as snapshot:
        if odd := [
            line for line in findings(snapshot.connection, "quick_check", 20) if not is_about_a_value(line)
        ]:
            raise Corrupt(
                f"{store.path}: pages of the file are damaged, so nothing is deleted from it ({odd[0]}): `dump` what "
                "can be read and `load` it into a new file"
            )
        return find_damaged(snapshot.connection)


def is_about_a_value(line: str) -> bool:
    """Whether a line of SQLite's check is "ok" or names a value that its table does not allow: the pages are whole."""
    return line == "ok" or _A_VALUE.match(line) is not None


def find_damaged(connection: "Connection") -> list[DamagedMessage]:
    """All damaged messages of all queues. Reads every message."""
    with undecoded(connection):
        return list(_damaged(connection))


def _damaged(connection: "Connection") -> Iterator[DamagedMessage]:
    cursor = connection.execute(find.LIST_STORED_MESSAGES)
    lease_names = [column[0] for column in cursor.description[_QUEUE + 1 :]]
    for row_id, stored_id, *values in cursor:
        lease = dict(zip(lease_names, values[len(_COLUMNS) + 1 :], strict=True))
        queue = values[len(_COLUMNS)]
        columns = dict(zip(_COLUMNS, values, strict=False)) if stored_id is not None else {}
        try:
            if not columns:
                raise Corrupt("its row in sqs_messages is missing")
            check_message(StoredMessage(stored_id, **columns))
        except Corrupt as error:
            yield DamagedMessage(row_id, queue, str(error), columns, lease)


def set_aside(store: "Store", damaged: Sequence[DamagedMessage], target: str | os.PathLike[str]) -> int:
    """Write damaged messages to a new file, one JSON object a line, then delete them. Returns how many were deleted.

    The file is synced before anything is deleted, and all of them are deleted in one transaction. Bytes, and texts that
    are not UTF-8, are Base64 under a name that ends in `_base64`. Messages of a FIFO group that waited behind one can
    be received.

    Args:
        target: must not exist. Only its owner can read it.

    Raises:
        TargetExists: the target exists.
        CannotOpen: the target can't be written.
        StoreError: the messages could not be deleted; the target stays.
    """
    path = Path(target)
    lines = [json.dumps(_row(message), ensure_ascii=False) + "\n" for message in damaged]
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(path.parent)
    except FileExistsError as error:
        raise TargetExists(f"{path}: exists already: give another name") from error
    except OSError as error:
        raise CannotOpen(f"{path}: {error.strerror}: nothing was set aside") from error
    return store.write(actions.remove, [message.row_id for message in damaged])


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _row(message: DamagedMessage) -> dict[str, Any]:
    row: dict[str, Any] = {"row": message.row_id, "queue": message.queue, "damage": message.why}
    for name, value in {**message.columns, **message.lease}.items():
        if isinstance(value, bytes):
            row[f"{name}_base64"] = base64.b64encode(value).decode()
        elif value is not None:
            row[name] = value
    return row
