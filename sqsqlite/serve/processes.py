"""Several processes that serve one port: a parent that starts them, puts another in a dead one's place, ends them.

They share one listening socket, so a connection that waits to be accepted is not lost with a process. Each opens the
file itself, after the fork.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FrameType

FIRST_PAUSE_SECONDS = 0.1
"""How long the place of a process that could not start stays empty; twice as long after each further one."""
LONGEST_PAUSE_SECONDS = 5.0
STEADY_SECONDS = 5.0
"""A process that ends sooner after it was ready counts as one that could not start."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Ready = Callable[[Callable[[], object]], None]
"""What the work calls once it can serve, with the function that ends it."""


def supervise(
    count: int, work: Callable[[int, Ready], int], serving: Callable[[], object], say: Callable[[str], object]
) -> int:
    """Run `work` in so many processes until SIGINT or SIGTERM, which each of them gets as a SIGTERM.

    Args:
        work: serves until it is told to end, and gives an exit code. SIGTERM is its own to handle. Its first
            argument is the number of its place, from 0; one that takes a dead process's place is given the same.
        serving: called once, when a process is ready.
        say: told of processes that ended by themselves.

    Returns:
        An exit code: 0 after a signal; a process's own if it ended before any was ready.
    """
    return _Parent(count, work, serving, say).run()


@dataclass(slots=True)
class _Place:
    """One of so many, and the process that fills it. Instants are those of `time.monotonic`.

    Attributes:
        number: from 0.
        pid: None: it is empty.
        reports: the end of a pipe: a byte comes from the process when it is ready, and the pipe's end with its own.
        ready_at: None: not yet.
        pause_seconds: how long it was left empty the last time.
        due_at: when an empty one is filled.
    """

    number: int
    pid: int | None = None
    reports: int = -1
    ready_at: float | None = None
    pause_seconds: float = 0.0
    due_at: float = 0.0


class _Parent:
    def __init__(
        self,
        count: int,
        work: Callable[[int, Ready], int],
        serving: Callable[[], object],
        say: Callable[[str], object],
    ) -> None:
        self._places = [_Place(number) for number in range(count)]
        self._work = work
        self._serving = serving
        self._say = say
        self._has_served = False
        self._is_stopping = False
        self._exit_code = 0
        # The children read the lifeline, whose end tells them that the parent is gone, however it went.
        self._lifeline, self._lifeline_end = os.pipe()
        # A signal writes to the other pipe, so that no pause is slept to its end.
        self._signals, self._signals_end = os.pipe()
        os.set_blocking(self._signals_end, False)

    def run(self) -> int:
        before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            return self._watch()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            for descriptor in (self._lifeline, self._lifeline_end, self._signals, self._signals_end):
                os.close(descriptor)

    def _stop(self, _number: int, _frame: FrameType | None = None) -> None:
        self._is_stopping = True
        for place in self._places:
            if place.pid is not None:
                os.kill(place.pid, signal.SIGTERM)  # not waited for yet, so the number is still its own
        with contextlib.suppress(BlockingIOError):
            os.write(self._signals_end, b".")

    def _watch(self) -> int:
        while True:
            self._fill_places()
            filled = [place for place in self._places if place.pid is not None]
            if self._is_stopping and not filled:
                return self._exit_code
            for place in self._reported(filled):
                if os.read(place.reports, 1):
                    self._is_ready(place)
                else:
                    self._has_ended(place)

    def _fill_places(self) -> None:
        for place in self._places:
            if place.pid is None and place.due_at <= time.monotonic() and not self._is_stopping:
                try:
                    self._start(place)
                except OSError as error:  # no more processes or open files, at the moment
                    if not self._has_served:
                        raise
                    self._say(
                        f"no process could be started ({error.strerror}): tried again{self._pause(place)}"
                    )

    def _reported(self, filled: list[_Place]) -> list[_Place]:
        """Wait for a report, a signal, or until an empty place is to be filled."""
        due = [place.due_at for place in self._places if place.pid is None and not self._is_stopping]
        seconds = max(0.0, min(due) - time.monotonic()) if due else None
        descriptors = [self._signals, *(place.reports for place in filled)]
        readable = select.select(descriptors, [], [], seconds)[0]
        if self._signals in readable:
            os.read(self._signals, select.PIPE_BUF)
        return [place for place in filled if place.reports in readable]

    def _start(self, place: _Place) -> None:
        sys.stderr.flush()
        place.ready_at = None
        place.reports, reports_end = os.pipe()
        # No signal in between: a child with its parent's handler would pass it on instead of ending.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            # A signal may have come since the last look.
            if not self._is_stopping:
                pid = os.fork()
                if pid == 0:
                    _run_and_exit(
                        partial(self._work, place.number), self._lifeline, self._lifeline_end, reports_end
                    )
                place.pid = pid
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(reports_end)
            if place.pid is None:
                os.close(place.reports)

    def _is_ready(self, place: _Place) -> None:
        place.ready_at = time.monotonic()
        if not self._has_served and not self._is_stopping:
            self._has_served = True
            self._serving()

    def _has_ended(self, place: _Place) -> None:
        assert place.pid is not None
        pid, place.pid = place.pid, None
        os.close(place.reports)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if self._is_stopping:
            return
        if not self._has_served:
            self._exit_code = code if code > 0 else 1
            self._stop(signal.SIGTERM)
            return
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        what = "ended" if place.ready_at is not None else "could not start"
        self._say(f"process {pid} {what} ({how}): another takes its place{self._pause(place)}")

    def _pause(self, place: _Place) -> str:
        """Leave the place empty for a while if its process was none that had served; in words."""
        now = time.monotonic()
        if place.ready_at is not None and now - place.ready_at >= STEADY_SECONDS:
            place.pause_seconds = 0.0
            return ""
        place.pause_seconds = min(max(2 * place.pause_seconds, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        place.due_at = now + place.pause_seconds
        return f" in {place.pause_seconds:g} s"


def _run_and_exit(work: Callable[[Ready], int], lifeline: int, lifeline_end: int, reports_end: int) -> None:
    """The child: never comes back."""
    code = 1
    try:
        # Ctrl-C reaches the whole group of the terminal: the parent passes it on.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(lifeline_end)

        def ready(end: Callable[[], object]) -> None:
            threading.Thread(target=_end_with_parent, args=(lifeline, end), daemon=True).start()
            os.write(reports_end, b".")

        code = work(ready)
    except BaseException:  # noqa: BLE001 - nothing above it may run twice
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_with_parent(lifeline: int, end: Callable[[], object]) -> None:
    os.read(lifeline, 1)
    end()
