# SPDX-License-Identifier: Apache-2.0
"""Dead letters: the target of a RedrivePolicy, the move to it, and where a message died before.

The move happens in the transaction of the receive that finds a message exhausted. In a chain of dead-letter queues a
message dies several times: the last move has columns of its own in `sqs_dead_letters`, the earlier ones share one, in
which most have NULL.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from sqsqlite.actions import damaged, groups, queue_rows
from sqsqlite.actions.messages import uuid_text
from sqsqlite.actions.queue_rows import Claim, QueueRow, find_queue
from sqsqlite.contract import queue_attributes as attributes
from sqsqlite.contract.names import queue_arn
from sqsqlite.errors import Corrupt, QueueDoesNotExist
from sqsqlite.sql import fifo as fifo_sql
from sqsqlite.sql import messages as sql

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.store.transaction import Transaction


def check(
    tx: "Transaction",
    columns: Mapping[str, object],
    supplied: Mapping[str, str],
    *,
    fifo: bool,
    name: str,
    caller: "Caller",
) -> None:
    """Refuse a RedrivePolicy whose target is missing, of the other type, this queue itself, or doesn't permit it.

    compat="aws" takes the queue itself, as Amazon does; what fails there stays receivable.

    Raises:
        InvalidParameterValue: with the policy and the reason.
    Source: developer guide, "Using dead-letter queues".
    """
    target_arn = columns.get("dead_letter_target_arn")
    if not isinstance(target_arn, str):
        return
    policy = supplied["RedrivePolicy"]
    try:
        target = queue_rows.find_row(tx, target_arn, caller)
    except QueueDoesNotExist:
        raise attributes.redrive_policy_error(policy, "Dead letter target does not exist.") from None
    # The whole ARN: its region and partition find no queue, but name one of somewhere else.
    if target_arn != queue_arn(tx.settings.region, caller.account_id, target["name"]):
        raise attributes.redrive_policy_error(policy, "Dead letter target does not exist.")
    if bool(target["fifo"]) != fifo:
        raise attributes.redrive_policy_error(
            policy, "Dead-letter queue must be same type of queue as the source."
        )
    if target["name"] == name and tx.settings.compat != "aws":
        raise attributes.redrive_policy_error(
            policy, "Dead letter target must not be the source queue itself."
        )
    allowed = target["redrive_allow_policy"]
    source_arn = queue_arn(tx.settings.region, caller.account_id, name)
    if allowed is not None and not attributes.redrive_allowed(allowed, source_arn):
        raise attributes.redrive_policy_error(
            policy,
            "QueueRow does not have permission to use the dead-letter queue: see its RedriveAllowPolicy.",
        )


def find_target(tx: "Transaction", queue: QueueRow, target_arn: str | None) -> QueueRow | None:
    """The queue that the RedrivePolicy names, if it exists (a queue deleted and made again has the same name).

    None where it names its own queue, as compat="aws" allows: what fails there has nowhere to go.
    """
    if target_arn is None:
        return None
    target = find_queue(tx, target_arn)
    if target is None:
        return None
    return target if target.id != queue.id else None


def move(
    tx: "Transaction", source: QueueRow, target: QueueRow, exhausted: Sequence[Claim], *, hidden: bool
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


def move_fifo(tx: "Transaction", source: QueueRow, target: QueueRow, exhausted: Sequence[Exhausted]) -> None:
    """Move messages that were not claimed, into the same groups of another FIFO queue.

    Their deduplication ids become their message ids, where those can be read. compat="aws": they count as sent now, as
    recorded on Amazon's.
    """
    reset = tx.settings.compat == "aws"
    for found in exhausted:
        message_id, group_id = damaged.group_of(tx, found.id)
        if group_id is None:
            raise Corrupt(damaged.line(found.id, source.name, "its message group can't be read"))
        row = {
            "id": found.id,
            "dead_letter_epoch_id": target.epoch_id,
            "group_key": groups.join_anywhere(tx, target, group_id, found.id),
            "sent_at": tx.now_ms if reset else found.sent_at,
            "deduplication_id": None if message_id is None else uuid_text(message_id),
        }
        tx.execute(fifo_sql.MOVE_TO_FIFO_DEAD_LETTER_QUEUE, row)
        _note(tx, source, target, found.id, found.receive_count)
    _count(tx, source, target, len(exhausted), sum(found.hidden for found in exhausted))


def _note(tx: "Transaction", source: QueueRow, target: QueueRow, lease_id: int, receive_count: int) -> None:
    row = {
        "id": lease_id,
        "epoch_id": target.epoch_id,
        "source_queue_id": source.id,
        "source_arn": queue_arn(tx.settings.region, source.account_id, source.name),
        "receive_count": receive_count,
        "now_ms": tx.now_ms,
    }
    tx.execute(sql.INSERT_DEAD_LETTER, row)


def _count(tx: "Transaction", source: QueueRow, target: QueueRow, count: int, in_flight: int) -> None:
    if not target.holds_dead_letters:
        tx.execute(sql.MARK_DEAD_LETTERS, {"id": target.id})
    left = tx.delta(source.epoch_id)
    left.messages -= count
    left.in_flight -= in_flight
    left.dead_lettered += count
    tx.delta(target.epoch_id).messages += count
    tx.wake(target.id, 0)


def sources(tx: "Transaction", claims: Sequence[Claim]) -> dict[int, str]:
    """Lease id -> ARN of the queue the message was moved from, for the moved ones."""
    found = {}
    for claim in claims:
        row = tx.execute(sql.SELECT_DEAD_LETTER, (claim.id,)).fetchone()
        if row is not None:
            found[claim.id] = row[0]
    return found


_Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Move(NamedTuple):
    """From which queue, after how many receives, and when (milliseconds since 1970 UTC)."""

    source_queue_id: _Number
    source_arn: str
    receive_count: _Number
    moved_at: _Number


_decode = msgspec.json.Decoder(Annotated[list[Move], msgspec.Meta(min_length=1)]).decode


def read(earlier: str) -> list[Move]:
    """The earlier moves, the latest last; at least one.

    Raises:
        ValueError: they are damaged.
    """
    moves: list[Move] = _decode(earlier)
    return moves


def write(moves: Sequence[Move]) -> str | None:
    """The column's text; None for no moves."""
    return json.dumps(moves, separators=(",", ":")) if moves else None
