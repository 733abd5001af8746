"""The move to the dead-letter queue: in the transaction of the receive that finds a message exhausted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from sqsqlite.actions import groups, unreadable
from sqsqlite.actions.find import find_queue
from sqsqlite.actions.rows import Claim, Queue
from sqsqlite.contract.names import queue_arn
from sqsqlite.errors import Corrupt
from sqsqlite.sql import fifo as fifo_sql
from sqsqlite.sql import messages as sql

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


def find_target(tx: "Transaction", queue: Queue, target_arn: str | None) -> Queue | None:
    """The queue that the RedrivePolicy names, if it exists (a queue deleted and made again has the same name).

    None where it names its own queue, as compat="aws" allows: what fails there has nowhere to go.
    """
    if target_arn is None:
        return None
    target = find_queue(tx.execute, target_arn)
    if target is None:
        return None
    return target if target.id != queue.id else None


def move(
    tx: "Transaction", source: Queue, target: Queue, exhausted: Sequence[Claim], *, hidden: bool
) -> None:
    """Move claimed, exhausted messages: the same rows in another queue, receivable there at once.

    They keep their message ids, send times and receive counts; where they came from stands in `sqs_dead_letters`.
    """
    for found in exhausted:
        tx.execute(sql.MOVE_TO_DEAD_LETTER_QUEUE, {"id": found.id, "dead_letter_epoch_id": target.epoch_id})
        _note(tx, source, target, found.id, found.receive_count - 1)
    _count(tx, source, target, len(exhausted), len(exhausted) if hidden else 0)


class Exhausted(NamedTuple):
    """A message of a FIFO queue that a receive found exhausted, and left as it was."""

    id: int
    receive_count: int
    sent_at: int
    hidden: bool


def move_fifo(tx: "Transaction", source: Queue, target: Queue, exhausted: Sequence[Exhausted]) -> None:
    """Move messages that were not claimed, into the same groups of another FIFO queue.

    Their deduplication ids become their message ids, where those can be read. compat="aws": they count as sent now, as
    recorded on Amazon's.
    """
    reset = tx.settings.compat == "aws"
    for found in exhausted:
        message_id, group_id = unreadable.group_of(tx, found.id)
        if group_id is None:
            raise Corrupt(unreadable.line(found.id, source.name, "its message group can't be read"))
        row = {
            "id": found.id,
            "dead_letter_epoch_id": target.epoch_id,
            "group_key": groups.join_anywhere(tx, target, group_id, found.id),
            "sent_at": tx.now_ms if reset else found.sent_at,
            "deduplication_id": None if message_id is None else str(UUID(bytes=message_id)),
        }
        tx.execute(fifo_sql.MOVE_TO_FIFO_DEAD_LETTER_QUEUE, row)
        _note(tx, source, target, found.id, found.receive_count)
    _count(tx, source, target, len(exhausted), sum(found.hidden for found in exhausted))


def _note(tx: "Transaction", source: Queue, target: Queue, lease_id: int, receive_count: int) -> None:
    row = {
        "id": lease_id,
        "epoch_id": target.epoch_id,
        "source_queue_id": source.id,
        "source_arn": queue_arn(tx.settings.region, source.account_id, source.name),
        "receive_count": receive_count,
        "now_ms": tx.now_ms,
    }
    tx.execute(sql.INSERT_DEAD_LETTER, row)


def _count(tx: "Transaction", source: Queue, target: Queue, count: int, in_flight: int) -> None:
    if not target.holds_dead_letters:
        tx.execute(sql.MARK_DEAD_LETTERS, {"id": target.id})
    left = tx.delta(source.epoch_id)
    left.messages -= count
    left.in_flight -= in_flight
    left.dead_lettered += count
    tx.delta(target.epoch_id).messages += count
    tx.wake(target.id, 0)


def sources(tx: "Transaction", claims: Sequence[Claim]) -> dict[int, str]:
    """Lease id -> ARN of the queue the message was moved from, for those that were."""
    found = {}
    for claim in claims:
        row = tx.execute(sql.SELECT_DEAD_LETTER, (claim.id,)).fetchone()
        if row is not None:
            found[claim.id] = row[0]
    return found
