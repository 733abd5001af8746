# SPDX-License-Identifier: Apache-2.0
"""Rows as values, and the queue that a request names: by name, URL or ARN, in each operation's own transaction."""

from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID, DEFAULT_BASE_URL, NO_SUCH_QUEUE, queue_name
from sqsqlite.errors import QueueDoesNotExist
from sqsqlite.sql import queues as sql
from sqsqlite.store.transaction import Snapshot

if TYPE_CHECKING:
    from sqsqlite.contract.message_attributes import MessageAttributeValue


class Caller(NamedTuple):
    """The account whose queues a name means, and what URLs and SenderId (None: the account) are made of."""

    account_id: str = DEFAULT_ACCOUNT_ID
    sender_id: str | None = None
    base_url: str = DEFAULT_BASE_URL


LOCAL = Caller()
"""Everything inside this process: no server, no keys."""


class QueueRow(NamedTuple):
    """What every operation on messages needs of its queue's row."""

    id: int
    epoch_id: int
    fifo: int
    delay_seconds: int
    maximum_message_size_bytes: int
    message_retention_period_seconds: int
    holds_dead_letters: int
    has_tenants: int
    account_id: str
    name: str

    def expired_at(self, at: Snapshot) -> int:
        """Messages sent at or before this instant are beyond the queue's retention."""
        return at.expired_at(self.message_retention_period_seconds)


QUEUE_COLUMNS = 8
"""Columns at the front of SELECT_QUEUE and SELECT_QUEUE_TO_RECEIVE; the rest of a Queue is what it was found by."""


class Receivable(NamedTuple):
    """What a receive needs besides the queue: its settings, its counts, and the next instant of a hidden message."""

    receive_message_wait_time_seconds: int
    visibility_timeout_seconds: int
    dead_letter_target_arn: str | None
    max_receive_count: int | None
    messages: int
    in_flight: int
    delayed: int
    turn: int
    next_visible_at: int | None

    def is_due(self, now_ms: int) -> bool:
        """Whether a delay or timeout has ended that no claim has promoted yet."""
        return self.next_visible_at is not None and self.next_visible_at <= now_ms

    @property
    def next_at(self) -> int | None:
        """The instant from which a standard queue may have something to claim; None: not before the next send."""
        return 0 if self.messages > self.in_flight + self.delayed else self.next_visible_at


class Claim(NamedTuple):
    """A lease just claimed."""

    turn: int
    id: int
    token: bytes
    receive_count: int
    queue_receive_count: int
    sent_at: int
    first_received_at: int


class StoredMessage(NamedTuple):
    """A row of `sqs_messages`; the last four only where the request asks for attributes."""

    id: int
    message_id: bytes
    body_md5: bytes
    body: str
    sender_id: str | None = None
    group_id: str | None = None
    trace_header: str | None = None
    attributes: str | None = None


class Received(NamedTuple):
    """A message as a receive hands it out.

    Attributes:
        source_arn: the queue that it was moved from, if it was.
        attributes: its own, where the request asks for attributes and it has some.
        deduplication_id: of FIFO queues; their sequence is the row id.
        received_at: of the receive that is answered again; None: it is received now.
    """

    claim: Claim
    message: StoredMessage
    source_arn: str | None
    attributes: "dict[str, MessageAttributeValue] | None" = None
    deduplication_id: str | None = None
    received_at: int | None = None


def find_queue(at: Snapshot, arn: str) -> QueueRow | None:
    """The queue of that account and name: also one deleted and made again."""
    where = queue_name(arn)
    row = at.run(sql.SELECT_QUEUE, where).fetchone()
    return None if row is None else QueueRow(*row + where)


def place(queue_url: str, caller: "Caller") -> tuple[str, str]:
    """(account, name) of a QueueUrl, as the statements' parameters."""
    account_id, name = queue_name(queue_url)
    return account_id or caller.account_id, name


def find(at: Snapshot, queue_url: str, caller: "Caller") -> QueueRow:
    """The queue's row.

    Raises:
        QueueDoesNotExist: no queue of this name in the account.
    """
    where = place(queue_url, caller)
    row = at.run(sql.SELECT_QUEUE, where).fetchone()
    if row is None:
        raise QueueDoesNotExist(NO_SUCH_QUEUE)
    return QueueRow(*row + where)


def find_to_receive(at: Snapshot, queue_url: str, caller: "Caller") -> tuple[QueueRow, Receivable]:
    """The queue's row and what else a receive needs, by one statement. Raises as `find`."""
    where = place(queue_url, caller)
    row = at.run(sql.SELECT_QUEUE_TO_RECEIVE, where).fetchone()
    if row is None:
        raise QueueDoesNotExist(NO_SUCH_QUEUE)
    return QueueRow(*row[:QUEUE_COLUMNS] + where), Receivable(*row[QUEUE_COLUMNS:])


def find_row(at: Snapshot, queue_url: str, caller: "Caller") -> dict[str, Any]:
    """The whole row, by column name. Raises as `find`."""
    cursor = at.execute(sql.SELECT_QUEUE_ATTRIBUTES, place(queue_url, caller))
    row = cursor.fetchone()
    if row is None:
        raise QueueDoesNotExist(NO_SUCH_QUEUE)
    return dict(zip((column[0] for column in cursor.description), row, strict=True))
