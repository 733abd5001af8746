"""Is the file sound? SQLite's own checks first, then what must hold between our rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.contract.digests import md5_of_body
from sqsqlite.operators.set_aside import find_damaged, is_about_a_value
from sqsqlite.sql import file as sql
from sqsqlite.sql import operators as find
from sqsqlite.store import migrate
from sqsqlite.store.driver import dbapi
from sqsqlite.store.soundness import findings
from sqsqlite.store.translate import CORRUPT, primary_code

if TYPE_CHECKING:
    from sqsqlite.store.driver import Connection
    from sqsqlite.store.store import Store

_RESTORE = "restore a backup; or `dump` what can be read and `load` it into a new file"
_REBUILD = "`dump` the queues and `load` them into a new file, which takes along what is whole"
_SET_ASIDE = "`sqsqlite check --set-aside FILE` writes it to FILE and deletes it"
_UPKEEP = "nothing is lost; it takes up room until you `dump` and `load` into a new file"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that should not be, and what to do about it. `str()` is one line."""

    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.what}. What to do: {self.advice}."


class Invariant(NamedTuple):
    """A statement that finds nothing in a sound file, and the words for each of its rows."""

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
        _RESTORE,
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
        "{1} leases belong to the epoch {0}, which there is not",
        _RESTORE,
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
        "lease {0} is in no state that a message can be in: visible_at {1}, received {2} times, {3} of them in this "
        "queue, last at {4}",
        _REBUILD,
    ),
    Invariant(
        "send times",
        find.FIND_MESSAGES_FROM_THE_FUTURE,
        "message {0} was sent {1} ms from now: the clock was ahead then, or is behind now",
        "set the machine's clock; the message stays until its retention ends, so much later",
    ),
    Invariant(
        "message groups",
        find.FIND_LEASES_WITHOUT_GROUP,
        "lease {0} is of the message group {1}, which there is not in its queue",
        _REBUILD,
    ),
    Invariant(
        "a message for each message group",
        find.FIND_GROUPS_WITHOUT_LEASE,
        "message group {0} of queue {1} has no messages: receives look into it in vain",
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
        "it is noted where message {0} was moved from, which is not there",
        _UPKEEP,
    ),
    Invariant(
        "earlier moves",
        find.FIND_ODD_PROVENANCE,
        "where message {0} died before it last did can't be read: a redrive by one step forgets it",
        "redrive it with a destination",
    ),
    Invariant(
        "dead-letter queues",
        find.FIND_UNMARKED_DEAD_LETTER_QUEUES,
        "queue {0} holds dead letters and is not marked so: receives don't tell their source",
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
    """Look at the whole file, at one instant, beside those who use it.

    Args:
        quick: SQLite's quick_check instead of its integrity_check: indexes are not compared with their tables.
        bodies: also compute the MD5 of each body.
        progress: is told what is looked at next.

    Returns:
        Findings, none in a sound file. After damage that SQLite finds, the rows are not looked at.
    """
    findings: list[Finding] = []
    with store.reading() as snapshot:
        try:
            findings.extend(_findings(snapshot.connection, snapshot.now_ms, quick, bodies, progress))
        except dbapi.Error as error:
            if primary_code(error) != CORRUPT:
                raise
            findings.append(Finding(f"SQLite: {error}", _RESTORE))
    return findings


def _findings(
    connection: "Connection", now_ms: int, quick: bool, bodies: bool, progress: Callable[[str], None]
) -> Iterator[Finding]:
    pragma = "quick_check" if quick else "integrity_check"
    progress(pragma)
    damage = findings(connection, pragma, 20, progress)
    yield from (Finding(f"SQLite: {line}".replace("\n", " "), _RESTORE) for line in damage)
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
            yield Finding(f"sqs_meta: {name} is not of {size_bytes} bytes", _RESTORE)


def _in_utf8(stored: bytes, encoding: str) -> bytes:
    """What was digested at the send. `encoding` is "UTF-16le" or "UTF-16be"; broken text has another MD5."""
    return stored.decode(encoding, "replace").encode()


def _bodies(connection: "Connection") -> Iterator[Finding]:
    encoding = connection.execute("PRAGMA encoding").fetchone()[0]  # an adopted file's is its owner's choice
    for row_id, body_md5, body in connection.execute(find.LIST_BODIES):
        if md5_of_body(body if encoding == "UTF-8" else _in_utf8(body, encoding)) != body_md5:
            yield Finding(f"message {row_id}: its body does not have the MD5 that was sent", _RESTORE)
