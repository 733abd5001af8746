# SPDX-License-Identifier: Apache-2.0
"""Processes and threads that work on one queue at the same time, and the clock around them.

Each contestant runs in processes of its own, which stay for all rounds: the imports, garbage and background threads of
one do not disturb another, and their start is outside the clock.
"""

import gc
import multiprocessing
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from peers.contestants import BY_NAME, Session

# seconds until a team counts as stuck in a round
PATIENCE = 300


@dataclass(frozen=True)
class Stretch:
    """The work of one thread between two looks at the clock.

    Attributes:
        sends: send; else receive and delete.
        batch: 1 or 10 messages a call.
        first, messages: the numbers that the bodies carry, or how many messages to receive.
    """

    sends: bool
    batch: int
    first: int
    messages: int
    body_bytes: int

    def bodies(self) -> list[str]:
        numbers = range(self.first, self.first + self.messages)
        return [f"{number:010d}".ljust(self.body_bytes, "x") for number in numbers]


@dataclass
class Outcome:
    """One thread's stretch, or several put together. Times in seconds by the machine's monotonic clock."""

    started: float
    ended: float
    latencies: list[float]
    received: list[int] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.ended - self.started


def run(session: Session, stretch: Stretch) -> Outcome:
    """Run the stretch, one call after the other, and time each of them."""
    clock = time.monotonic
    bodies = stretch.bodies() if stretch.sends else []
    tens = [bodies[start : start + 10] for start in range(0, len(bodies), 10)]
    calls = stretch.messages // stretch.batch
    received: list[str] = []
    keep: Callable[[Any], object] = received.append if stretch.batch == 1 else received.extend
    receive: Callable[[], Any] = (
        session.receive_and_delete if stretch.batch == 1 else session.receive_and_delete_ten
    )
    send: Callable[[Any], None] = session.send if stretch.batch == 1 else session.send_ten
    latencies: list[float] = []
    gc.collect()
    started = before = clock()
    if stretch.sends:
        for given in bodies if stretch.batch == 1 else tens:
            send(given)
            after = clock()
            latencies.append(after - before)
            before = after
    else:
        for _ in range(calls):
            keep(receive())
            after = clock()
            latencies.append(after - before)
            before = after
    return Outcome(started, before, latencies, [int(body[:10]) for body in received])


class _Crew:
    """The threads of one process, and their sessions."""

    def __init__(self, name: str, path: Path, synchronous: str, threads: int) -> None:
        contestant = BY_NAME[name]
        opened = 1 if contestant.shared else threads
        self._own = [contestant.open(path, synchronous) for _ in range(opened)]
        self._sessions = self._own * (threads // opened)

    @property
    def sqlite_version(self) -> str:
        from sqsqlite.store.driver import dbapi

        return str(getattr(self._own[0], "sqlite_version", dbapi.sqlite_version))

    def work(self, stretches: list[Stretch], gate: Barrier) -> list[Outcome]:
        if len(stretches) == 1:
            gate.wait(PATIENCE)
            return [run(self._sessions[0], stretches[0])]
        outcomes: list[Outcome] = []
        errors: list[BaseException] = []
        ready = threading.Barrier(len(stretches) + 1)

        def one(session: Session, stretch: Stretch) -> None:
            ready.wait(PATIENCE)
            try:
                outcomes.append(run(session, stretch))
            except BaseException as error:  # noqa: BLE001 - raised below, in the thread that answers
                errors.append(error)

        threads = [
            threading.Thread(target=one, args=pair) for pair in zip(self._sessions, stretches, strict=True)
        ]
        for thread in threads:
            thread.start()
        gate.wait(PATIENCE)
        ready.wait(PATIENCE)
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return outcomes

    def tidy(self) -> None:
        for session in self._own:
            getattr(session, "tidy", lambda: None)()

    def close(self) -> None:
        for session in self._own:
            session.close()


def _process(pipe: Connection, gate: Barrier, name: str, path: Path, synchronous: str, threads: int) -> None:
    try:
        crew = _Crew(name, path, synchronous, threads)
        pipe.send(crew.sqlite_version)
        while (stretches := pipe.recv()) is not None:
            outcomes = crew.work(stretches, gate)
            if not stretches[0].sends:
                crew.tidy()
            pipe.send(outcomes)
        crew.close()
    except EOFError:
        return  # the waiting process is gone
    except Exception:  # noqa: BLE001 - told to the process that waits, which raises
        gate.abort()
        pipe.send(traceback.format_exc())


class Team:
    """One contestant's processes on one file. A context manager."""

    def __init__(
        self, name: str, path: Path, synchronous: str, *, processes: int = 1, threads: int = 1
    ) -> None:
        self.name = name
        self._members = processes * threads
        self._threads = threads
        context = multiprocessing.get_context("spawn")
        gate = context.Barrier(processes)
        self._pipes: list[Connection] = []
        self._processes = []
        for _ in range(processes):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_process, args=(theirs, gate, name, path, synchronous, threads), daemon=True
            )
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
            # One after the other: two processes that both create the file are not part of any measurement.
            self.sqlite_version: str = self._answer(ours)

    def _answer(self, pipe: Connection) -> Any:
        if not pipe.poll(PATIENCE):
            raise TimeoutError(f"{self.name}: no answer within {PATIENCE} s")
        answer = pipe.recv()
        if isinstance(answer, str) and answer.startswith("Traceback"):
            raise RuntimeError(f"{self.name} failed:\n{answer}")
        return answer

    def work(self, *, sends: bool, batch: int, first: int, messages: int, body_bytes: int) -> Outcome:
        """All members do an equal share at the same time.

        The time runs from the first one's start to the last one's end.
        """
        share = messages // self._members
        stretches = [
            Stretch(sends, batch, first + member * share, share, body_bytes)
            for member in range(self._members)
        ]
        for place, pipe in enumerate(self._pipes):
            pipe.send(stretches[place * self._threads : (place + 1) * self._threads])
        outcomes: list[Outcome] = [outcome for pipe in self._pipes for outcome in self._answer(pipe)]
        return Outcome(
            min(outcome.started for outcome in outcomes),
            max(outcome.ended for outcome in outcomes),
            [latency for outcome in outcomes for latency in outcome.latencies],
            [number for outcome in outcomes for number in outcome.received],
        )

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            try:
                pipe.send(None)
            except BrokenPipeError:
                continue  # it failed, and has printed why
        for process in self._processes:
            process.join(10)
            if process.is_alive():
                process.kill()
