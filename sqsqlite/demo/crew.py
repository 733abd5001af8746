"""The demo's worker processes, and what they tell through their pipes."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class CrewFailed(Exception):
    """A worker ended with an error."""


class Crew:
    """Worker processes on one file. A context manager: who is still there at its end is killed."""

    def __init__(self, path: Path, worker_count: int) -> None:
        self._events: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._readers: list[threading.Thread] = []
        self._killed: set[str] = set()
        for number in range(1, worker_count + 1):
            self._start(f"worker-{number}", path)

    def _start(self, name: str, path: Path) -> None:
        process = subprocess.Popen(  # noqa: S603 # our own module
            [sys.executable, "-m", "sqsqlite.demo.worker", str(path), name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._processes[name] = process
        reader = threading.Thread(
            target=self._listen, args=(name, process), name=f"pipe of {name}", daemon=True
        )
        reader.start()
        self._readers.append(reader)

    def _listen(self, name: str, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):  # a kill may cut the last one
                self._events.put((name, json.loads(line)))
        self._events.put((name, {"event": "ended", "exit_code": process.wait()}))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
        for reader in self._readers:
            reader.join()
        for process in self._processes.values():
            assert process.stdout is not None
            process.stdout.close()

    def pid(self, name: str) -> int:
        """The worker's process id."""
        return self._processes[name].pid

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(worker, event) as they come, until all workers have ended.

        Raises:
            CrewFailed: one ended with an error that was not killed here.
        """
        at_work = set(self._processes)
        while at_work:
            name, event = self._events.get()
            if event["event"] == "ended":
                at_work.discard(name)
                if event["exit_code"] and name not in self._killed:
                    raise CrewFailed(f"{name} ended with exit code {event['exit_code']}")
            yield name, event

    def kill(self, name: str) -> None:
        """SIGKILL, and wait for the end: the process gets no chance to finish or give back anything."""
        self._killed.add(name)
        self._processes[name].kill()
        self._processes[name].wait()
