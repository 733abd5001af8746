"""Several processes that serve one port: a parent that starts them, puts another in a dead one's place, ends them.

They share one listening socket, so a connection that waits to be accepted is not lost with a process. Each opens the
file itself, after the fork.
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType

_PID_BYTES = 8
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Ready = Callable[[Callable[[], object]], None]
"""What the work calls once it can serve, with the function that ends it."""


def supervise(count: int, work: Callable[[Ready], int], say: Callable[[str], None]) -> int:
    """Run `work` in so many processes until SIGINT or SIGTERM, which each of them gets as a SIGTERM.

    Args:
        work: serves until it is told to end, and gives an exit code. SIGTERM is its own to handle.
        say: told of processes that ended by themselves.

    Returns:
        An exit code: 0 after a signal; a process's own if it ended before it was ready.
    """
    return _Parent(count, work, say).run()


class _Parent:
    def __init__(self, count: int, work: Callable[[Ready], int], say: Callable[[str], None]) -> None:
        self._count = count
        self._work = work
        self._say = say
        self._children: set[int] = set()
        self._ready: set[int] = set()
        self._is_stopping = False
        # The children read the lifeline, whose end tells them that the parent is gone, however it went.
        self._lifeline, self._lifeline_end = os.pipe()
        self._reports, self._reports_end = os.pipe()
        os.set_blocking(self._reports, False)

    def run(self) -> int:
        before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            for _ in range(self._count):
                self._start()
            return self._watch()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            for descriptor in (self._lifeline, self._lifeline_end, self._reports, self._reports_end):
                os.close(descriptor)

    def _stop(self, _number: int, _frame: FrameType | None = None) -> None:
        self._is_stopping = True
        for pid in list(self._children):
            os.kill(pid, signal.SIGTERM)  # not waited for yet, so the number is still its own

    def _start(self) -> None:
        sys.stderr.flush()
        # No signal in between: a child with its parent's handler would pass it on instead of ending.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            if not self._is_stopping:
                pid = os.fork()
                if pid == 0:
                    _run_and_exit(self._work, self._lifeline, self._lifeline_end, self._reports_end)
                self._children.add(pid)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _watch(self) -> int:
        exit_code = 0
        while self._children:
            pid, status = os.wait()
            self._children.discard(pid)
            self._read_reports()
            if self._is_stopping:
                continue
            code = os.waitstatus_to_exitcode(status)
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            if pid in self._ready:
                self._say(f"process {pid} ended ({how}): another takes its place")
                self._start()
            else:
                exit_code = code if code > 0 else 1
                self._stop(signal.SIGTERM)
        return exit_code

    def _read_reports(self) -> None:
        while True:
            try:
                report = os.read(self._reports, _PID_BYTES)
            except BlockingIOError:
                return
            self._ready.add(int.from_bytes(report))


def _run_and_exit(work: Callable[[Ready], int], lifeline: int, lifeline_end: int, reports: int) -> None:
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
            os.write(reports, os.getpid().to_bytes(_PID_BYTES))

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
