# SPDX-License-Identifier: Apache-2.0
"""A transfer: receive, send to the other end, and delete what the other end has taken.

A message is deleted at its source only after the target has answered that it has it. So whatever is killed or breaks,
nothing is lost. What was sent and not yet deleted is sent again: a duplicate, as at-least-once delivery has it. A FIFO
queue drops it by its deduplication id within five minutes.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqsqlite.api.client_errors import code_of, is_in_doubt, passes, words_of
from sqsqlite.api.connect import SQS
from sqsqlite.contract.limits import SQS as LIMITS
from sqsqlite.transfer.ends import End, TransferError
from sqsqlite.transfer.entries import Carried, Ids, carried, waves

VISIBILITY_TIMEOUT = 60
"""Seconds for which a received message stays hidden at its source; it is hidden again while it waits."""
FIRST_PAUSE_SECONDS = 0.2
"""The pause after the first failed attempt. It doubles, up to the longest one, and a random part is added."""
LONGEST_PAUSE_SECONDS = 20.0
_EMPTY_LOOKS = 3  # of a distant queue: one look asks a part of its servers
_ISSUED_KEPT = 1_000  # of the first messages: they come back if both ends are one queue
_WAIT_SECONDS = 5  # a long poll, short enough to end soon after a signal
_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class Refused(NamedTuple):
    """A message that the target does not take. It stays in its queue."""

    message_id: str
    reason: str


@dataclass
class TransferResult:
    """What a transfer did.

    Attributes:
        moved: messages that the target has, and that are gone from the source.
        refused: messages that the target does not take, each once.
        retried: messages that were sent once more, because the target refused them for the moment.
        throttled: answers and connections that failed for the moment, at either end.
        in_doubt: messages that were sent although an earlier attempt may have succeeded, or that may be sent again
            because their deletion failed: possible duplicates.
        renamed: FIFO messages with a new deduplication id, because another message had theirs within five minutes.
        visible, in_flight, delayed: messages left at the source, as it counts them. None: it could not be asked.
    """

    moved: int = 0
    refused: list[Refused] = field(default_factory=list)
    retried: int = 0
    throttled: int = 0
    in_doubt: int = 0
    renamed: int = 0
    visible: int | None = None
    in_flight: int | None = None
    delayed: int | None = None


class Transfer:
    """Moves the messages of one queue to another.

    Args:
        source, target: the two queues.
        limit: how many messages to move at most. None: all.
        follow: go on when the queue is empty, until `stop`.
        give_up_after: seconds for which one message may be refused for the moment. None: no end.
        visibility_timeout: 1 to 43,200 s for which a received message stays hidden at the source, unless it is hidden
            again. After a kill, what was under way comes back when it ends.
        progress: called with the number of messages moved, and with each refused one.
        is_local: the source is a file: one empty receive says that it is empty.
    """

    def __init__(
        self,
        source: End,
        target: End,
        *,
        limit: int | None = None,
        follow: bool = False,
        give_up_after: float | None = None,
        visibility_timeout: int = VISIBILITY_TIMEOUT,
        progress: Callable[[int, Refused | None], object] = lambda _count, _refused: None,
        is_local: bool = False,
    ) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"limit={limit!r}: 1 or more is allowed")
        if give_up_after is not None and not give_up_after >= 0:
            raise ValueError(f"give_up_after={give_up_after!r}: seconds, 0 or more, are allowed")
        allowed = LIMITS.visibility_timeout_seconds
        if not max(1, allowed.low) <= visibility_timeout <= allowed.high:
            raise ValueError(
                f"visibility_timeout={visibility_timeout!r}: 1 to {allowed.high:,} seconds are allowed"
            )
        self._visibility_timeout = visibility_timeout
        self._source = source
        self._target = target
        self._limit = limit
        self._follow = follow
        self._give_up_after = give_up_after
        self._progress = progress
        self._is_local = is_local
        self._stopping = threading.Event()
        self._hidden_at = 0.0
        self._ids = Ids(by_group=False)
        self._refused: dict[str, str] = {}  # message ids at the source, with the latest receipt handles
        self._issued: set[str] = set()
        self.result = TransferResult()

    def stop(self) -> None:
        """End `run` after the batch under way. For a signal handler or another thread."""
        self._stopping.set()

    def check(self) -> None:
        """Look at both queues before anything is received.

        Raises:
            TransferError: one can't be reached or does not exist, or one alone is a FIFO queue.
        """
        self._source.look()
        target = self._target.look()
        if self._source.is_fifo != self._target.is_fifo:
            kinds = [
                "a FIFO queue" if end.is_fifo else "a standard queue" for end in (self._source, self._target)
            ]
            raise TransferError(
                f"{self._source.url} is {kinds[0]} and {self._target.url} {kinds[1]}: both must be of one kind"
            )
        self._ids = Ids(by_group=target.get("DeduplicationScope") == "messageGroup")

    def run(self) -> TransferResult:
        """Move messages until the queue is empty, the limit is reached, or `stop` was called.

        Raises:
            TransferError: the transfer can't go on: see `check`; the target refuses everything, such as for missing
                rights; or `give_up_after` is over. Then what was received is visible again.
        """
        self.check()
        try:
            self._move()
        finally:
            self._show_refused()
        self._count_what_is_left()
        return self.result

    def _move(self) -> None:
        empty = 0
        while not self._stopping.is_set() and (number := self._wanted()):
            messages = [carried(message, fifo=self._source.is_fifo) for message in self._receive(number)]
            if any(one.message_id in self._issued for one in messages):
                self._show(messages)
                raise TransferError(
                    f"{self._source.url} and {self._target.url} are one queue: a message that was sent came back"
                )
            is_new = any(one.message_id not in self._refused for one in messages)
            self._carry(messages)
            empty = 0 if is_new else empty + 1
            if empty and not self._follow and (self._is_local or empty >= _EMPTY_LOOKS):
                break

    def _wanted(self) -> int:
        """How many messages to receive at once; 0: the limit is reached."""
        most = LIMITS.max_number_of_messages.high
        return most if self._limit is None else min(most, self._limit - self.result.moved)

    def _receive(self, number: int) -> list[dict[str, Any]]:
        wait = _WAIT_SECONDS if self._follow else 0 if self._is_local else 1
        answer = self._insist(
            "receive_message",
            MaxNumberOfMessages=number,
            VisibilityTimeout=self._visibility_timeout,
            WaitTimeSeconds=wait,
            AttributeNames=["All"],  # its newer name is unknown to older clients
            MessageAttributeNames=["All"],
        )
        self._hidden_at = time.monotonic()
        found: list[dict[str, Any]] = answer.get("Messages", [])
        return found

    def _carry(self, messages: list[Carried]) -> None:
        """Send a batch, and delete what the target took; the rest becomes visible again."""
        stuck: set[str | None] = set()  # groups behind a message that was not sent
        done: list[Carried] = []
        try:
            for wave in waves(messages, fifo=self._source.is_fifo):
                sendable = [one for one in wave if not (self._source.is_fifo and one.group_id in stuck)]
                taken, left = self._send(sendable, [one for one in messages if one not in done])
                stuck |= {one.group_id for one in left}
                self._delete(taken)
                done += taken
                self._progress(len(taken), None)
        finally:
            self._show([one for one in messages if one not in done])

    def _send(self, wave: list[Carried], held: Sequence[Carried]) -> tuple[list[Carried], list[Carried]]:
        """Send one request's messages until each is taken or refused for good, or the run stops.

        Args:
            held: all messages that must stay hidden at the source meanwhile.

        Returns:
            Those that the target has, and the others.
        """
        taken: list[Carried] = []
        waiting = list(wave)
        pause = FIRST_PAUSE_SECONDS
        started = time.monotonic()
        if self._target.is_fifo:
            self.result.renamed += sum(self._ids.choose(one, started) for one in wave)
        while waiting:
            failed, reason = self._attempt(waiting, taken)
            waiting = failed
            if not waiting:
                break
            if self._give_up_after is not None and time.monotonic() - started >= self._give_up_after:
                self._delete(taken)
                raise TransferError(f"{self._target.name} {self._target.url}: gave up: {reason}")
            self.result.retried += len(waiting)
            # The random part keeps many senders from coming back at the same moment.
            if self._stopping.wait(pause * random.uniform(0.5, 1.5)):  # not for secrets
                break
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            self._hide(held)
        return taken, [one for one in wave if one not in taken]

    def _attempt(self, waiting: list[Carried], taken: list[Carried]) -> tuple[list[Carried], str]:
        """Send once. Returns the messages to send again, and why."""
        entries = [{**one.entry, "Id": str(place)} for place, one in enumerate(waiting)]
        self.result.in_doubt += sum(one.may_be_sent for one in waiting)
        try:
            answer = self._target.client.send_message_batch(QueueUrl=self._target.url, Entries=entries)
        except Exception as error:
            if not passes(error):
                self._delete(taken)
                raise TransferError(f"{self._target.name} {self._target.url}: {words_of(error)}") from error
            self.result.throttled += 1
            for one in waiting:
                one.may_be_sent = is_in_doubt(error)
            return waiting, words_of(error)
        for entry in answer.get("Successful", []):
            taken.append(waiting[int(entry["Id"])])
            if len(self._issued) < _ISSUED_KEPT:
                self._issued.add(entry["MessageId"])
        again = []
        reason = ""
        for entry in answer.get("Failed", []):
            one = waiting[int(entry["Id"])]
            one.may_be_sent = False
            said = f"{entry.get('Code')}: {entry.get('Message', '')}"
            if entry.get("SenderFault"):
                self._refuse(one, said)
            else:
                again.append(one)
                reason = said
        return again, reason

    def _refuse(self, one: Carried, reason: str) -> None:
        is_new = one.message_id not in self._refused
        self._refused[one.message_id] = one.handle
        if is_new:
            refused = Refused(one.message_id, reason)
            self.result.refused.append(refused)
            self._progress(0, refused)

    # --- the source

    def _insist(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the source until it answers, or the run stops.

        Raises:
            TransferError: it refuses.
        """
        pause = FIRST_PAUSE_SECONDS
        started = time.monotonic()
        while True:
            try:
                answer: dict[str, Any] = getattr(self._source.client, method)(
                    QueueUrl=self._source.url, **parameters
                )
                return answer
            except Exception as error:
                over = self._give_up_after is not None and time.monotonic() - started >= self._give_up_after
                if over or not passes(error):
                    raise TransferError(
                        f"{self._source.name} {self._source.url}: {words_of(error)}"
                    ) from error
                self.result.throttled += 1
            if self._stopping.wait(pause * random.uniform(0.5, 1.5)):
                return {}
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _delete(self, taken: Sequence[Carried]) -> None:
        """Delete what the target has. Where that fails the message comes back, and is sent a second time."""
        if not taken:
            return
        entries = [{"Id": str(place), "ReceiptHandle": one.handle} for place, one in enumerate(taken)]
        answer = self._insist("delete_message_batch", Entries=entries)
        deleted = len(answer.get("Successful", []))
        self.result.moved += deleted
        self.result.in_doubt += len(taken) - deleted

    def _hide(self, held: Sequence[Carried]) -> None:
        """Hide the messages for longer, once half of their time is over."""
        if time.monotonic() - self._hidden_at < self._visibility_timeout / 2:
            return
        self._change_visibility([one.handle for one in held], self._visibility_timeout)
        self._hidden_at = time.monotonic()

    def _show(self, left: Sequence[Carried]) -> None:
        """Make messages visible again that were not sent, except refused ones: they would come back at once."""
        self._change_visibility([one.handle for one in left if one.message_id not in self._refused], 0)

    def _show_refused(self) -> None:
        handles = list(self._refused.values())
        most = LIMITS.batch_entry_count
        for first in range(0, len(handles), most):
            self._change_visibility(handles[first : first + most], 0)

    def _change_visibility(self, handles: Sequence[str], seconds: int) -> None:
        if not handles:
            return
        entries = [
            {"Id": str(place), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
            for place, handle in enumerate(handles)
        ]
        try:
            self._source.client.change_message_visibility_batch(QueueUrl=self._source.url, Entries=entries)
        except Exception as error:
            # Their time ends by itself: then they are visible, at worst sent twice.
            if not passes(error):
                raise TransferError(
                    f"{self._source.name} {self._source.url}: {code_of(error)}: {error}"
                ) from error
            self.result.throttled += 1

    def _count_what_is_left(self) -> None:
        try:
            found = self._source.look()
        except TransferError:
            return
        visible, in_flight, delayed = (int(found[name]) for name in _COUNTS)
        self.result.visible, self.result.in_flight, self.result.delayed = visible, in_flight, delayed


def forward(sqs: SQS, queue: str, target_client: Any, target_url: str, **options: Any) -> TransferResult:
    """Move the messages of a file's queue to a queue of any SQS endpoint.

    Args:
        queue: the queue's name.
        target_client: a client with boto3's methods; `client_for(url)` makes one.
        target_url: the other queue's URL.
        options: `limit`, `follow`, `give_up_after`, `visibility_timeout`, `progress` of `Transfer`.

    Raises:
        TransferError: see `Transfer.run`.
        QueueDoesNotExist: no queue of the file has this name.
    """
    source = End(sqs.client, sqs.queue(queue).name, "the queue")
    return Transfer(source, End(target_client, target_url, "the target"), is_local=True, **options).run()


def fetch(sqs: SQS, queue: str, source_client: Any, source_url: str, **options: Any) -> TransferResult:
    """Move the messages of a queue of any SQS endpoint to a file's queue. Each batch is one transaction of the file.

    Args, Raises: as `forward`.
    """
    target = End(sqs.client, sqs.queue(queue).name, "the queue")
    return Transfer(End(source_client, source_url, "the source"), target, **options).run()
