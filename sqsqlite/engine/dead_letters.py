"""The move to the dead-letter queue: in the transaction of the receive that finds a message exhausted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqsqlite import statements as sql
from sqsqlite.engine.rows import Claim, Queue
from sqsqlite.names import queue_arn, queue_name

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


def find_target(tx: "Transaction", queue: Queue, target_arn: str | None) -> Queue | None:
    """The queue that the RedrivePolicy names, if it exists (a queue deleted and made again has the same name)."""
    if target_arn is None:
        return None
    account_id, name = queue_name(target_arn)
    where = (account_id or queue.account_id, name)
    row = tx.execute(sql.SELECT_QUEUE, where).fetchone()
    if row is None:
        return None
    target = Queue(*row + where)
    return target if target.id != queue.id else None


def move(
    tx: "Transaction", source: Queue, target: Queue, exhausted: Sequence[Claim], *, hidden: bool
) -> None:
    """Move claimed, exhausted messages: the same rows in another queue, receivable there at once.

    They keep their message ids, send times and receive counts; where they came from stands in `sqs_dead_letters`.
    """
    source_arn = queue_arn(tx.settings.region, source.account_id, source.name)
    for found in exhausted:
        tx.execute(sql.MOVE_TO_DEAD_LETTER_QUEUE, {"id": found.id, "dead_letter_epoch_id": target.epoch_id})
        tx.execute(
            sql.INSERT_DEAD_LETTER,
            {
                "id": found.id,
                "epoch_id": target.epoch_id,
                "source_queue_id": source.id,
                "source_arn": source_arn,
                "receive_count": found.receive_count - 1,
                "now_ms": tx.now_ms,
            },
        )
    if not target.holds_dead_letters:
        tx.execute(sql.MARK_DEAD_LETTERS, {"id": target.id})
    count = len(exhausted)
    left = tx.delta(source.epoch_id)
    left.messages -= count
    left.dead_lettered += count
    if hidden:
        left.in_flight -= count
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
