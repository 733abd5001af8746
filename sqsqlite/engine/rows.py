"""Rows as values."""

from typing import NamedTuple


class Queue(NamedTuple):
    """What an operation on messages needs of its queue's row."""

    id: int
    epoch_id: int
    fifo: int
    account_id: str
    name: str
    delay_seconds: int
    maximum_message_size_bytes: int
    message_retention_period_seconds: int
    receive_message_wait_time_seconds: int
    visibility_timeout_seconds: int
    dead_letter_target_arn: str | None
    max_receive_count: int | None
    holds_dead_letters: int

    def expired_at(self, now_ms: int) -> int:
        """Messages sent at or before this instant are beyond the queue's retention."""
        return now_ms - self.message_retention_period_seconds * 1000


QUEUE_COLUMNS = len(Queue._fields)


class Counts(NamedTuple):
    """What `sqs_queue_counts` and the hidden index say beside a queue's row, before a receive."""

    messages: int
    in_flight: int
    delayed: int
    turn: int
    next_visible_at: int | None


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
    """A row of `sqs_messages`."""

    id: int
    message_id: bytes
    body_md5: bytes
    sender_id: str | None
    group_id: str | None
    trace_header: str | None
    attributes: str | None
    body: str


class Received(NamedTuple):
    """A message as a receive hands it out."""

    claim: Claim
    message: StoredMessage
    source_arn: str | None
