# SPDX-License-Identifier: Apache-2.0
"""The state of the model: queues with lists of messages, and the refusals that it answers with."""

import hashlib
import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

ACCOUNT = "000000000000"
REGION = "us-east-1"
BASE_URL = "http://localhost:9324"

SECOND = 1000
IN_FLIGHT_LONGEST = 43_200 * SECOND
FIVE_MINUTES = 300 * SECOND
MINUTE = 60 * SECOND


class Refusal(Exception):
    """An error as SQS answers it: the Query code that boto3 shows, and its text.

    `whole` False: the text only begins so. No text: the contract does not say how it is worded. `reason`: why a
    transaction of the caller's lost its lease, if that was it.
    """

    def __init__(self, code, text="", *, whole=True, reason=None):
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.whole = whole and bool(text)
        self.reason = reason

    def because(self, reason):
        self.reason = reason
        return self


def invalid(text, *, whole=True):
    return Refusal("InvalidParameterValue", text, whole=whole)


def bad_value(value, parameter, reason):
    return invalid(f"Value {value} for parameter {parameter} is invalid. Reason: {reason}")


def missing(parameter):
    return Refusal("MissingParameter", f"The request must contain the parameter {parameter}.")


@dataclass(eq=False)
class Message:
    """One message. Its place among the messages of all queues is `number`: the order of sending.

    `queue` is where it is now, None when it is gone; `receipt` is of the latest receive there, None before the first.
    `source_arns`: the queues it died in since it was sent, the latest last.
    """

    number: int
    queue: "Queue | None"
    message_id: str
    body: str
    attributes: dict[str, Any]
    trace: str | None
    group: str | None
    deduplication_id: str | None
    sequence: int | None
    sent_at: int
    visible_at: int
    turn: int = 0
    receive_count: int = 0
    receives_here: int = 0
    received_at: int | None = None
    first_received_at: int | None = None
    receipt: str | None = None
    source_arns: tuple[str, ...] = ()
    died_at: int = 0

    @property
    def source_arn(self):
        return self.source_arns[-1] if self.source_arns else None

    @property
    def order(self):
        return self.turn, self.number


@dataclass(eq=False)
class Group:
    """A message group of a FIFO queue, while it has messages. `since`: the instant from which it can be received."""

    number: int
    ready_at: int


@dataclass(eq=False)
class Tenant:
    """A message group of a standard queue: the last turn it drew."""

    last_turn: int
    last_sent_at: int


@dataclass(frozen=True)
class Sent:
    """The memory of an accepted send, for deduplication."""

    at: int
    message_id: str
    sequence: int


@dataclass(frozen=True)
class Attempt:
    """What a ReceiveRequestAttemptId got: each message, its receipt, and until when it was hidden."""

    at: int
    taken: list[tuple[Message, str, int]]


@dataclass(eq=False)
class Queue:
    name: str
    fifo: bool
    created_at: int
    modified_at: int
    attributes: dict[str, str]
    tags: dict[str, str] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    purged_at: int | None = None
    groups: dict[str, Group] = field(default_factory=dict)
    sent: dict[str, dict[str, Sent]] = field(default_factory=dict)  # by deduplication id, then by group
    attempts: dict[str, Attempt] = field(default_factory=dict)
    turn: int = 0  # fair queues: the highest turn that was received
    fair: bool = False  # a message of a group was sent since the last purge
    tenants: dict[str, Tenant] = field(default_factory=dict)

    @property
    def arn(self):
        return arn_of(self.name)

    @property
    def url(self):
        return f"{BASE_URL}/{ACCOUNT}/{self.name}"

    def __post_init__(self):
        self.first_scope = self.attributes.get("DeduplicationScope")

    def seconds(self, attribute):
        return int(self.attributes[attribute])

    def expired_at(self, now):
        """The latest time of sending whose messages are beyond the queue's retention."""
        return now - self.seconds("MessageRetentionPeriod") * SECOND

    def forget_messages(self):
        """Empty the queue as a purge does: no message, no group, no deduplication id stays."""
        for message in self.messages:
            message.queue = None
        for memory in (self.messages, self.groups, self.sent, self.attempts, self.tenants):
            memory.clear()
        self.turn = 0
        self.fair = False


@dataclass(frozen=True)
class Receipt:
    """The meaning of a receipt handle."""

    queue: Queue
    message: Message
    received_at: int


@dataclass
class State:
    """The state of an account, which every action gets. `happened` counts outcomes that answers alone do not show."""

    compat: str
    in_flight_limits: tuple[int, int]  # standard, FIFO
    now: int
    queues: dict[str, Queue] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    tasks: list[Any] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    numbers: itertools.count = field(default_factory=lambda: itertools.count(1))

    def number(self):
        return next(self.numbers)

    def queue(self, url):
        """The queue that a URL, an ARN or a bare name stands for."""
        if not url:
            raise missing("QueueUrl")
        name = url.rpartition(":" if url.startswith("arn:") else "/")[2]
        found = self.queues.get(name)
        if found is None:
            raise Refusal("AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
        return found

    def queue_of_arn(self, arn):
        """The queue of an ARN, or None."""
        return next((queue for queue in self.queues.values() if queue.arn == arn), None)


def arn_of(name):
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def md5(data):
    return hashlib.md5(data).hexdigest()


def md5_of_attributes(attributes):
    """The digest of section 5.4, over a dict of message attributes as boto3 has them."""
    buffer = b""
    for name, value in sorted(attributes.items()):
        kind = value["DataType"]
        binary = kind.startswith("Binary")
        content = value["BinaryValue"] if binary else value["StringValue"].encode()
        for part in (name.encode(), kind.encode()):
            buffer += len(part).to_bytes(4, "big") + part
        buffer += b"\2" if binary else b"\1"
        buffer += len(content).to_bytes(4, "big") + content
    return md5(buffer)


def is_expired(state, queue, message):
    return message.sent_at <= queue.expired_at(state.now)


def is_visible(state, message):
    return message.visible_at <= state.now


def counts(state, queue):
    """(visible, in flight, delayed): the parts of the live messages."""
    live = [message for message in queue.messages if not is_expired(state, queue, message)]
    hidden = [message for message in live if not is_visible(state, message)]
    in_flight = sum(message.receipt is not None for message in hidden)
    return len(live) - len(hidden), in_flight, len(hidden) - in_flight
