"""A move task of `sqsqlite redrive`: planned, begun, watched to its end, or cancelled."""

import time
from typing import TYPE_CHECKING

from sqsqlite.cli.progress import Progress
from sqsqlite.errors import ResourceNotFoundException, StoreError

if TYPE_CHECKING:
    from sqsqlite import Queue
    from sqsqlite.cli.command_line import CommandLine
    from sqsqlite.contract.move_filter import MoveFilter
    from sqsqlite.contract.responses import ListMessageMoveTasksResultEntry as State
    from sqsqlite.operators.redrive import Part

RUNNING, COMPLETED, CANCELLED = "RUNNING", "COMPLETED", "CANCELLED"
_LOOK_SECONDS = 0.1
# Without a message moved for so long, something may be in the way. The lowest rate moves one a second.
_STILL_SECONDS = 5.0


class MoveTask:
    """One move task of a dead-letter queue.

    Args:
        source: the dead-letter queue.
        destination: None: each message goes to the queue it came from.
        rate: messages a second; None: all there is.
        conditions: which messages.

    Raises:
        SQSError: it is none that could start now.
    """

    def __init__(
        self,
        line: "CommandLine",
        source: "Queue",
        destination: "Queue | None",
        rate: int | None,
        conditions: "MoveFilter",
    ) -> None:
        from sqsqlite.contract import requests, shapes

        self._store = line.open()
        self._line = line
        self._source = source
        self._conditions = conditions
        self._handle = ""
        given = {"SourceArn": source.arn}
        if destination is not None:
            given["DestinationArn"] = destination.arn
        parameters = given if rate is None else {**given, "MaxNumberOfMessagesPerSecond": rate}
        self._request = shapes.parse(requests.StartMessageMoveTask, parameters, self._store.settings.limits)

    def plan(self) -> "list[Part]":
        """What it would move, and what would stay."""
        from sqsqlite.actions.caller import LOCAL
        from sqsqlite.operators.redrive import plan

        return plan(self._store, self._request, LOCAL, self._conditions)

    def start(self) -> None:
        """Begin it: this process's upkeep works on it from here on, or another's."""
        from sqsqlite.actions.caller import LOCAL
        from sqsqlite.actions.move_tasks import start_message_move_task

        started = self._store.write(start_message_move_task, self._request, LOCAL, self._conditions)
        self._handle = started.task_handle

    def latest(self) -> "State | None":
        """The latest task of the dead-letter queue, this one or another."""
        from sqsqlite.actions.dispatch import call
        from sqsqlite.contract import requests

        listed = call(self._store, requests.ListMessageMoveTasks, {"SourceArn": self._source.arn})
        state: State | None = next(iter(listed.results), None)
        return state

    def state(self) -> "State":
        """How far it is, once it was started."""
        found = self.latest()
        assert found is not None
        return found

    def watch(self, count: int) -> "State":
        """Show how far it is until it is over. Ctrl-C and SIGTERM cancel it.

        Args:
            count: messages that it is to move.

        Raises:
            DiskFull, Busy: it can't go on now. Whoever has the file open goes on when it can.
        """
        progress = Progress("moved", total=count, **self._line.progress_options)
        moved_at = time.monotonic()
        try:
            while (state := self.state()).status == RUNNING:
                moved = state.approximate_number_of_messages_moved - progress.count
                progress.advance(moved)
                if moved:
                    moved_at = time.monotonic()
                elif time.monotonic() - moved_at > _STILL_SECONDS:
                    self._ask_what_is_in_the_way()
                    moved_at = time.monotonic()
                time.sleep(_LOOK_SECONDS)
        except KeyboardInterrupt:
            progress.clear()
            self._cancel(count)
            raise
        finally:
            progress.clear()
        return state

    def _ask_what_is_in_the_way(self) -> None:
        """Upkeep tries again and again in silence; a transaction of this thread's own meets the same, and tells."""
        from sqsqlite.operators.redrive import require_room

        try:
            self._store.write(require_room)
        except StoreError:
            self._line.say(f"{self._source.name}: the task stays, and goes on when it can")
            raise

    def _cancel(self, count: int) -> None:
        from sqsqlite.actions.dispatch import call
        from sqsqlite.contract import requests

        try:
            answer = call(self._store, requests.CancelMessageMoveTask, {"TaskHandle": self._handle})
        except ResourceNotFoundException:  # it was over by then
            self._line.say(f"{self._source.name}: the task had ended")
            return
        moved = answer.approximate_number_of_messages_moved
        self._line.say(f"{self._source.name}: cancelled; {moved:,} of {count:,} moved, the others stay")
