# SPDX-License-Identifier: Apache-2.0
"""Message move tasks in the Python API."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from sqsqlite.actions.dispatch import call
from sqsqlite.actions.move_tasks import find_task, list_tasks, start_message_move_task
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.api.settings import arn_of
from sqsqlite.contract import requests, shapes
from sqsqlite.contract.move_filter import MoveFilter
from sqsqlite.contract.names import is_queue_arn
from sqsqlite.errors import ResourceNotFoundException, TransactionInProgress
from sqsqlite.store.transaction import Transaction

if TYPE_CHECKING:
    from sqsqlite.contract.responses import ListMessageMoveTasksResultEntry
    from sqsqlite.store.store import Store

# Seconds between two looks of `wait`.
_LOOK_EVERY = 0.02
# Seconds between two reports of `follow`, and without a moved message until it asks why. The lowest rate moves one a
# second.
_REPORT_EVERY, _STILL = 0.1, 5.0


@dataclass(frozen=True)
class MoveTask:
    """A message move task at one instant; `refreshed()` is the same task later.

    Attributes:
        task_handle: what SQS calls it by.
        status: "RUNNING", "COMPLETED", "CANCELLED" or "FAILED".
        source_arn: the dead-letter queue.
        destination_arn: None: each message goes to the queue it came from.
        max_messages_per_second: None: as fast as the file takes them.
        moved_count: messages moved so far.
        to_move_count: messages that were visible when it started.
        failure_reason: of one that FAILED.
        started_at: milliseconds since 1970 UTC.
    """

    task_handle: str
    status: str
    source_arn: str
    destination_arn: str | None
    max_messages_per_second: int | None
    moved_count: int
    to_move_count: int
    failure_reason: str | None
    started_at: int
    _store: "Store" = field(repr=False, compare=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a MoveTask can't be pickled or copied: open the file in the other process, and find it among the "
            "move_tasks() of its queue there, by its task_handle"
        )

    def refreshed(self) -> "MoveTask":
        """The task as it is now.

        Raises:
            ResourceNotFoundException: it is over, and ten of its queue have begun since.
        """
        return read(self._store, self.task_handle)

    def wait(self, timeout: float | None = None) -> "MoveTask":
        """The task once it is over, or after `timeout` seconds as it is then.

        Raises:
            TransactionInProgress: this thread is in a transaction on the file, which keeps the task from going on.
            ResourceNotFoundException: as `refreshed`.
        """
        if self._store.file.turnstile.is_held_here:
            raise TransactionInProgress(
                "wait() inside a transaction would wait for ever: the task goes on when the transaction is over"
            )
        deadline = None if timeout is None else time.monotonic() + timeout
        task = self.refreshed()
        while task.status == "RUNNING" and (deadline is None or time.monotonic() < deadline):
            time.sleep(_LOOK_EVERY)
            task = task.refreshed()
        return task

    def follow(self, progress: "Callable[[MoveTask], None] | None" = None) -> "MoveTask":
        """The task once it is over. Unlike `wait`, it does not wait for what keeps the task from going on.

        Args:
            progress: called with the task as it is, ten times a second.

        Raises:
            DiskFull, Busy: the task can't go on now. It stays, and goes on when it can, in any process.
            TransactionInProgress, ResourceNotFoundException: as `wait`.
        """
        moved, moved_at = -1, time.monotonic()
        while (task := self.wait(_REPORT_EVERY)).status == "RUNNING":
            if progress is not None:
                progress(task)
            if task.moved_count != moved:
                moved, moved_at = task.moved_count, time.monotonic()
            elif time.monotonic() - moved_at > _STILL:
                # Upkeep tries again in silence. A transaction of this thread meets the same obstacle, and raises it.
                self._store.write(_require_room)
                moved_at = time.monotonic()
        if progress is not None:
            progress(task)
        return task

    def cancel(self) -> int:
        """Stop it. What was moved stays moved; gives how many messages that are.

        Raises:
            ResourceNotFoundException: it is over.
        Source: API_CancelMessageMoveTask.
        """
        answer = call(self._store, requests.CancelMessageMoveTask, {"TaskHandle": self.task_handle})
        return int(answer.approximate_number_of_messages_moved)


def read(store: "Store", handle: str) -> MoveTask:
    """The task of a handle, also when it is over.

    Raises:
        ResourceNotFoundException: the file no longer knows the task.
    """
    with store.reading() as snapshot:
        entry = find_task(snapshot, handle)
    if entry is None:
        raise ResourceNotFoundException("Task does not exist.")
    return _task(store, entry, handle)


def listed(store: "Store", arn: str, max_results: int) -> list[MoveTask]:
    """The latest tasks of a dead-letter queue, the newest first."""
    asked = {"SourceArn": arn, "MaxResults": max_results}
    request = shapes.parse(requests.ListMessageMoveTasks, asked, store.settings.limits)
    with store.reading() as snapshot:
        found = list_tasks(snapshot, request, LOCAL)
    return [_task(store, entry, handle) for handle, entry in found]


def start(store: "Store", parameters: Mapping[str, Any], only: MoveFilter | None) -> MoveTask:
    """Begin a task; the arguments and errors are those of `asked`."""
    request, only = asked(store, parameters, only)
    return read(store, store.write(start_message_move_task, request, LOCAL, only).task_handle)


def asked(
    store: "Store", parameters: Mapping[str, Any], only: MoveFilter | None
) -> tuple[requests.StartMessageMoveTask, MoveFilter | None]:
    """The request for a task, checked, and its filter.

    Args:
        parameters: members of StartMessageMoveTask, None where one is not given.

    Raises:
        TypeError: `only` is not a MoveFilter.
        QueueDoesNotExist: its source is neither a queue's name nor URL nor ARN.
        InvalidParameterValue: not as SQS allows.
    """
    if only is not None:
        only = _with_arn(store, only)
    given = {name: value for name, value in parameters.items() if value is not None}
    return shapes.parse(requests.StartMessageMoveTask, given, store.settings.limits), only


def _require_room(tx: Transaction) -> None:
    tx.require_room(1)


def _with_arn(store: "Store", only: Any) -> MoveFilter:
    """The filter with the ARN of a source that it has by name or URL."""
    if not isinstance(only, MoveFilter):
        raise TypeError(f"only={only!r}: a MoveFilter is allowed, such as MoveFilter(body='...')")
    if only.source_arn is None or (isinstance(only.source_arn, str) and is_queue_arn(only.source_arn)):
        return only
    return replace(only, source_arn=arn_of(store, only.source_arn))


def _task(store: "Store", entry: "ListMessageMoveTasksResultEntry", handle: str) -> MoveTask:
    return MoveTask(
        handle,
        entry.status,
        entry.source_arn,
        entry.destination_arn,
        entry.max_number_of_messages_per_second,
        entry.approximate_number_of_messages_moved,
        entry.approximate_number_of_messages_to_move or 0,
        entry.failure_reason,
        entry.started_timestamp,
        store,
    )
