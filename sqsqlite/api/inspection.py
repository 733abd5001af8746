# SPDX-License-Identifier: Apache-2.0
"""A queue for operators: looking without receiving, its dead letters, and sending them back."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.api import move_task as _move_task
from sqsqlite.api.move_task import MoveTask
from sqsqlite.api.settings import arn_of
from sqsqlite.contract.limits import LOOKED_AT, Range
from sqsqlite.contract.move_filter import HasArn, MoveFilter
from sqsqlite.contract.names import queue_arn, queue_url
from sqsqlite.errors import QueueDoesNotExist, ResourceNotFoundException
from sqsqlite.operators import inspect, metrics
from sqsqlite.store.store import Store

# Loaded when it is used: a program that sends and receives does not need it.
if TYPE_CHECKING:
    from sqsqlite.operators.dead_letters import DeadLetter, PlannedMove

# Dead letters are read page by page, so a program may ask for all of them.
_LISTED = Range(1, 2**31 - 1)


class QueueInspection:
    """A queue by name, without SQS's actions on messages, which `Queue` adds. Every call reads the file."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Queue can't be pickled or copied: open the file in the other process, with sqsqlite.connect(path), "
            f"and take sqs.queue({self.name!r}) there"
        )

    @property
    def url(self) -> str:
        """The URL that SQS's clients name the queue by."""
        return queue_url(LOCAL.base_url, LOCAL.account_id, self.name)

    @property
    def arn(self) -> str:
        """The ARN that policies name the queue by."""
        return queue_arn(self._store.settings.region, LOCAL.account_id, self.name)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Say in QueueDoesNotExist which queue is missing."""
        try:
            yield
        except QueueDoesNotExist as error:
            name_missing_queue(error, self.name, self._store)
            raise

    def __len__(self) -> int:
        """Messages in the queue: visible, in flight and delayed."""
        with self._named():
            return inspect.count_messages(self._store, LOCAL, self.name)

    def __bool__(self) -> bool:
        """A queue is a queue, even an empty one."""
        return True

    def peek(self, max_messages: int = 10, *, hidden: bool = False) -> list[inspect.Peeked]:
        """Look at messages without receiving them: no lease, no count, no write.

        Args:
            max_messages: 1 to 10,000.
            hidden: those delayed or in flight instead of the visible ones.

        Raises:
            QueueDoesNotExist: the queue was deleted.
            ValueError: `max_messages` is another number.
        """
        _check_number(max_messages)
        with self._named():
            return inspect.peek(self._store, self.name, LOCAL, max_messages, hidden=hidden)

    def tail(self, max_messages: int = 10) -> list[inspect.Peeked]:
        """Look at the messages sent last, in any state, oldest first.

        Args:
            max_messages: 1 to 10,000.

        Raises:
            QueueDoesNotExist: the queue was deleted.
            ValueError: `max_messages` is another number.
        """
        _check_number(max_messages)
        with self._named():
            return inspect.last_messages(self._store, self.name, LOCAL, max_messages)

    def follow(self, max_messages: int = 10, *, interval: float = 0.25) -> Iterator[inspect.Peeked]:
        """Yield the messages sent last, then each new message as it is sent, without end.

        A message that is sent and deleted within the interval may be missed. A message that moves to a dead-letter
        queue keeps its send time, so following that queue does not show it.

        Args:
            max_messages: 1 to 10,000: how many of the queue's present messages.
            interval: seconds between two looks at the file.

        Raises:
            QueueDoesNotExist: the queue was deleted.
            ValueError: `max_messages` is another number.
        """
        after = (self._store.clock.now_ms(), 0)
        for message in self.tail(max_messages):
            after = (message.sent_at, message.row_id)
            yield message
        with self._named():
            while True:
                for message in inspect.messages(self._store, self.name, LOCAL, after):
                    after = (message.sent_at, message.row_id)
                    yield message
                time.sleep(interval)

    def messages(self) -> Iterator[inspect.Peeked]:
        """Yield all messages in order of sending, in any state. Each page of 500 is one instant.

        Raises:
            QueueDoesNotExist: the queue was deleted.
        """
        with self._named():
            yield from inspect.messages(self._store, self.name, LOCAL)

    def metrics(self) -> metrics.QueueMetrics:
        """CloudWatch's metrics of the queue: ages, counts by state and group, the last two minutes' activity.

        If a tenant is noisy, the whole queue is read: about a second for a million messages.

        Raises:
            QueueDoesNotExist: the queue was deleted.
        """
        with self._named():
            return metrics.metrics_of(self._store, self.name, LOCAL)

    # --- dead letters

    def dead_letters(
        self, max_messages: int = 10, *, source: "HasArn | str | None" = None
    ) -> "list[DeadLetter]":
        """Look at the messages that were moved here as dead letters, in any state, the latest first.

        Args:
            max_messages: 1 to 2**31 - 1.
            source: only those from this queue: a queue, or its name, URL or ARN. It may be deleted.

        Raises:
            QueueDoesNotExist: this queue was deleted, or `source` can be no queue's name.
            ValueError: `max_messages` is another number.
        """
        from sqsqlite.operators.dead_letters import dead_letters

        _check_number(max_messages, _LISTED)
        arn = None if source is None else arn_of(self._store, source)
        with self._named():
            return dead_letters(self._store, self.name, LOCAL, max_messages, source=arn)

    def plan_redrive(
        self, destination: "HasArn | str | None" = None, *, only: MoveFilter | None = None
    ) -> "list[PlannedMove]":
        """Count what `redrive` would move from where to where, and what would stay. Writes nothing.

        Args: as `start_move_task`.

        Raises:
            as `start_move_task`: a task that could not start has no plan.
        """
        from sqsqlite.operators.dead_letters import plan

        request, only = _move_task.asked(self._store, self._moving(destination, None), only)
        return plan(self._store, request, LOCAL, only)

    def redrive(
        self,
        destination: "HasArn | str | None" = None,
        *,
        max_messages_per_second: int | None = None,
        only: MoveFilter | None = None,
        progress: Callable[[MoveTask], None] | None = None,
    ) -> MoveTask:
        """Move dead letters back to the queues they came from, and return when it is done.

        The same as `start_move_task(...).follow(progress)`, except that an interrupt (Ctrl-C) cancels the task.

        Args: as `start_move_task` and `MoveTask.follow`.

        Returns:
            The finished task. Its status says whether all messages were moved.

        Raises:
            as `start_move_task` and `MoveTask.follow`.
        """
        task = self.start_move_task(destination, max_messages_per_second=max_messages_per_second, only=only)
        try:
            return task.follow(progress)
        except KeyboardInterrupt:
            with suppress(ResourceNotFoundException):  # the task has ended meanwhile
                task.cancel()
            raise

    def start_move_task(
        self,
        destination: "HasArn | str | None" = None,
        *,
        max_messages_per_second: int | None = None,
        only: MoveFilter | None = None,
    ) -> MoveTask:
        """Begin to move this dead-letter queue's visible messages back to the queues they came from.

        Messages sent later stay. Any process that has the file open goes on with the task. Messages become new ones.

        Args:
            destination: one queue for all of them instead: a queue, its name, URL or ARN.
            max_messages_per_second: 1 to 500. Default: as fast as the file takes them.
            only: which messages; SQS itself moves all.

        Raises:
            TypeError: `only` is not a MoveFilter.
            QueueDoesNotExist: a text that should name a queue is neither name nor URL nor ARN.
            InvalidParameterValue: no queue's dead letters come here, a task is running already, or not as SQS allows.
            ResourceNotFoundException: this queue or the destination does not exist.
            OverLimit: 100 tasks are active.
        Source: API_StartMessageMoveTask.
        """
        return _move_task.start(self._store, self._moving(destination, max_messages_per_second), only)

    def move_tasks(self, max_results: int = 10) -> list[MoveTask]:
        """The latest 1 to 10 tasks from this queue, the newest first. Source: API_ListMessageMoveTasks.

        Raises:
            ResourceNotFoundException: this queue was deleted.
        """
        return _move_task.listed(self._store, self.arn, max_results)

    def _moving(self, destination: "HasArn | str | None", rate: int | None) -> dict[str, object]:
        return {
            "SourceArn": self.arn,
            "DestinationArn": None if destination is None else arn_of(self._store, destination),
            "MaxNumberOfMessagesPerSecond": rate,
        }


def name_missing_queue(error: QueueDoesNotExist, name: str, store: Store) -> None:
    """Note which queue is missing in which file. SQS's sentence, which stays as it is, names neither."""
    error.add_note(f"No queue {name!r} in {store.path}")


def _check_number(max_messages: object, allowed: Range = LOOKED_AT) -> None:
    if not isinstance(max_messages, int) or max_messages not in allowed:
        raise ValueError(f"max_messages={max_messages!r}: {allowed.low} to {allowed.high:,} are allowed")
