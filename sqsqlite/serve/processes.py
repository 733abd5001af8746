# SPDX-License-Identifier: Apache-2.0
"""Several processes that serve one port. A parent starts them, replaces dead ones and ends them.

They share one listening socket, so a connection that waits to be accepted survives the death of a process. Each process
opens the queues' file after the fork.
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
"""The pause before replacing a process that could not start. It doubles with each further failure."""
LONGEST_PAUSE_SECONDS = 5.0
STEADY_SECONDS = 5.0
"""A process that ends sooner than this after it was ready counts as one that could not start."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Ready = Callable[[Callable[[], object]], None]
"""The function that the work calls once it can serve. Its argument is a function that ends the work."""


def supervise(
    count: int, work: Callable[[int, Ready], int], serving: Callable[[], object], say: Callable[[str], object]
) -> int:
    """Run `work` in `count` processes until SIGINT or SIGTERM. Each process then gets a SIGTERM.

    Args:
        count: number of processes, at least 1.
        work: serves, and returns an exit code. It must handle SIGTERM. Its arguments are the number of its place, from
            0, and the function to call when it can serve. A replacement gets the number of the dead process.
        serving: called once, when the first process is ready.
        say: called with a sentence about each process that ended by itself.

    Returns:
        An exit code: 0 after a signal; that of a process which ended before any was ready.
    """
    return _Parent(count, work, serving, say).run()


@dataclass(slots=True)
class _Place:
    """A place for one process. Instants are those of `time.monotonic`.

    Attributes:
        number: from 0.
        pid: of its process. None: the place is empty.
        reports: reads a pipe from the process: a byte when it is ready, end of file when it ends.
        ready_at: None: not ready yet.
        pause_seconds: how long the place was empty the last time.
        due_at: when to fill an empty place.
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
        # The children read the lifeline. It ends when the parent ends, even if the parent is killed.
        self._lifeline, self._lifeline_end = os.pipe()
        # A signal writes to this pipe, which ends a pause at once.
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
                os.kill(
                    place.pid, signal.SIGTERM
                )  # not waited for yet, so the pid cannot belong to another process
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
                        f"could not start a process ({error.strerror}): trying again{self._pause(place)}"
                    )

    def _reported(self, filled: list[_Place]) -> list[_Place]:
        """Wait for a report, a signal, or the time to fill an empty place."""
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
        # Block signals: a child that still has the parent's handler would pass a signal on instead of ending.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            # A signal may have come since the last check.
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
        self._say(f"process {pid} {what} ({how}): replacing it{self._pause(place)}")

    def _pause(self, place: _Place) -> str:
        """Leave the place empty for a while if its process did not serve for long.

        Returns:
            The pause for a sentence, such as " in 0.1 s". Empty: no pause.
        """
        now = time.monotonic()
        if place.ready_at is not None and now - place.ready_at >= STEADY_SECONDS:
            place.pause_seconds = 0.0
            return ""
        place.pause_seconds = min(max(2 * place.pause_seconds, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        place.due_at = now + place.pause_seconds
        return f" in {place.pause_seconds:g} s"


def _run_and_exit(work: Callable[[Ready], int], lifeline: int, lifeline_end: int, reports_end: int) -> None:
    """Run the child process. Never returns."""
    code = 1
    try:
        # Ctrl-C reaches all processes of the terminal. The children wait for the parent's SIGTERM.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(lifeline_end)

        def ready(end: Callable[[], object]) -> None:
            threading.Thread(target=_end_with_parent, args=(lifeline, end), daemon=True).start()
            os.write(reports_end, b".")

        code = work(ready)
    except BaseException:  # noqa: BLE001 - the parent's code above must not run in the child
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_with_parent(lifeline: int, end: Callable[[], object]) -> None:
    os.read(lifeline, 1)
    end()
