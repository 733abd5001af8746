# SPDX-License-Identifier: Apache-2.0
"""An application with an engine of its own next to busy senders: how long each waits for the other.

The application is a process with a SQLAlchemy engine of `sqsqlite.dbapi` that begins with BEGIN IMMEDIATE. It inserts a
row and commits. It does so now and then (`PAUSE` between two transactions), or in a loop. Each way is measured twice:

- in line: the process has the file open as a queue's, so its BEGIN IMMEDIATE takes a turn;
- past the line: the same engine in a process that never opened the queue, so SQLite's busy handler alone waits for the
  lock, as with a connection of the driver itself.

The senders, a process each, send as fast as they can. Rounds last some seconds each, and alternate. A wait can't be
longer than its round: an application that never gets the lock shows the length of a round.
"""

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from rows import Figure, median, milliseconds, percentile

import sqsqlite

SENDERS = (1, 4, 8)
SECONDS = 3.0
ROUNDS = 3  # after one that does not count
PAUSE = 0.005  # s
# Seconds that any writer waits for the lock: longer than a round.
BUSY_TIMEOUT = 60.0
# Seconds until a process counts as stuck.
PATIENCE = 300
QUEUE = "orders"
BODY = "x" * 200
LINES = {"in line": True, "past the line": False}
PAUSES = {"now and then": PAUSE, "in a loop": 0.0}


@dataclass(frozen=True)
class Round:
    """What a process does in a round.

    Attributes:
        seconds: how long; 0 to stand aside.
        pause: seconds between two of its transactions.
    """

    seconds: float
    pause: float = 0.0


@dataclass
class Outcome:
    """Of one process, or of several, in one round or in several: seconds of each wait, and writes a second."""

    waits: list[float] = field(default_factory=list)
    per_second: float = 0.0


@dataclass
class Arm:
    """One way to run the application, with what was measured in its rounds."""

    waits: list[float] = field(default_factory=list)
    transactions: list[float] = field(default_factory=list)
    send_waits: list[float] = field(default_factory=list)
    sends: list[float] = field(default_factory=list)


def figures(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """The application's waits, the senders' waits, and the rates of both, for each level and number of senders."""
    for synchronous in ("FULL", "NORMAL"):
        for senders in SENDERS[:1] if quick else SENDERS:
            yield from _level(folder / f"{synchronous}-{senders}.db", synchronous, senders, quick=quick)


def _level(path: Path, synchronous: str, senders: int, *, quick: bool) -> Iterator[Figure]:
    seconds, rounds = (0.1, 1) if quick else (SECONDS, ROUNDS)
    arms: dict[tuple[str, str], Arm] = {("", ""): Arm()}
    arms |= {(line, pace): Arm() for pace in PAUSES for line in LINES}
    sqsqlite.connect(path).create_queue(QUEUE)
    with _Company(path, synchronous, senders) as company:
        for number in range(rounds + 1):
            for (line, pace), arm in arms.items():
                length = seconds if number else seconds / 10
                own, sent = company.work(line, length, PAUSES.get(pace, 0.0))
                if number:
                    _add(arm, own, sent)
        company.check()
        version = company.sqlite_version
    yield from _figures(arms, f"{senders} sender{'s' * (senders > 1)}", synchronous, version)


def _add(arm: Arm, own: Outcome, sent: Outcome) -> None:
    arm.waits += own.waits
    arm.transactions.append(own.per_second)
    arm.send_waits += sent.waits
    arm.sends.append(sent.per_second)


def _figures(
    arms: dict[tuple[str, str], Arm], senders: str, synchronous: str, version: str
) -> Iterator[Figure]:
    alone = arms["", ""]
    for pace in PAUSES:
        ours, past = (arms[line, pace] for line in LINES)
        in_line, beyond = (median(arm.transactions) for arm in (ours, past))
        sends, sends_past, sends_alone = (median(arm.sends) for arm in (ours, past, alone))
        where = f"{senders}, the application writes {pace}"
        waits_past, sends_waits_past = _all(past.waits), _all(past.send_waits)
        yield Figure(
            f"longest BEGIN IMMEDIATE: {where}",
            milliseconds(max(ours.waits)),
            "ms",
            synchronous,
            version,
            beside=f"{_rest(ours.waits)}; past the line: {waits_past}",
        )
        yield Figure(
            f"longest send: {where}",
            milliseconds(max(ours.send_waits)),
            "ms",
            synchronous,
            version,
            beside=f"{_rest(ours.send_waits)}; past the line: {sends_waits_past}; alone: {_all(alone.send_waits)}",
        )
        yield Figure(
            f"application's transactions/s: {where}",
            in_line,
            "/s",
            synchronous,
            version,
            beside=f"past the line: {beyond:,.0f}/s",
        )
        yield Figure(
            f"sends/s: {where}",
            sends,
            "/s",
            synchronous,
            version,
            beside=f"past the line: {sends_past:,.0f}/s; alone: {sends_alone:,.0f}/s",
        )


def _rest(waits: list[float]) -> str:
    p50, p99 = (milliseconds(percentile(waits, share)) for share in (0.5, 0.99))
    return f"p50 {p50:.2f}, p99 {p99:.2f} ms"


def _all(waits: list[float]) -> str:
    return f"{milliseconds(max(waits)):,.1f} ms ({_rest(waits)})"


# --- the processes


class _Company:
    """The senders and the two applications, and the clock that they share. A context manager."""

    def __init__(self, path: Path, synchronous: str, senders: int) -> None:
        self._path = path
        self._sent = self._stored = 0
        context = multiprocessing.get_context("spawn")
        self._gate = context.Barrier(senders + len(LINES))
        self._processes: list[Any] = []
        self._senders = [self._start(context, _send, synchronous) for _ in range(senders)]
        self._applications = {
            line: self._start(context, _apply, synchronous, is_in_line) for line, is_in_line in LINES.items()
        }
        self.sqlite_version = str(sqsqlite.dbapi.sqlite_version)

    def _start(self, context: Any, work: Callable[..., None], *arguments: object) -> Connection:
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_run, args=(work, theirs, self._gate, self._path, *arguments), daemon=True
        )
        process.start()
        self._processes.append(process)
        # One after the other: opening the file is no part of a measurement.
        _answer(ours)
        return ours  # type: ignore[no-any-return]

    def work(self, line: str, seconds: float, pause: float) -> tuple[Outcome, Outcome]:
        """One round. Returns the outcome of the application, if `line` names one, and of all senders together."""
        for pipe in self._senders:
            pipe.send(Round(seconds))
        for name, pipe in self._applications.items():
            pipe.send(Round(seconds if name == line else 0.0, pause))
        sent: list[Outcome] = [_answer(pipe) for pipe in self._senders]
        own: list[Outcome] = [_answer(pipe) for pipe in self._applications.values()]
        self._sent += sum(len(outcome.waits) for outcome in sent)
        self._stored += sum(len(outcome.waits) for outcome in own)
        return _together(own), _together(sent)

    def check(self) -> None:
        """Compare the file with what was counted.

        Raises:
            AssertionError: a message or a row is missing, or is there twice.
        """
        connection = sqsqlite.dbapi.connect(self._path)
        [rows] = connection.execute("SELECT count(*) FROM items").fetchone()
        connection.close()
        with sqsqlite.connect(self._path) as sqs:
            found = len(sqs.queue(QUEUE)), rows
        if found != (self._sent, self._stored):
            raise AssertionError(f"{found} messages and rows, not {(self._sent, self._stored)}")

    def __enter__(self) -> "_Company":
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for process in self._processes:
                stack.callback(_end, process)
            for pipe in (*self._senders, *self._applications.values()):
                try:
                    pipe.send(None)
                except BrokenPipeError:
                    continue  # it failed, and has said why


def _end(process: Any) -> None:
    process.join(10)
    if process.is_alive():
        process.kill()


def _answer(pipe: Connection) -> Any:
    if not pipe.poll(PATIENCE):
        raise TimeoutError(f"no answer within {PATIENCE} s")
    answer = pipe.recv()
    if isinstance(answer, str) and answer.startswith("Traceback"):
        raise RuntimeError(f"a process failed:\n{answer}")
    return answer


def _together(outcomes: list[Outcome]) -> Outcome:
    return Outcome(
        [wait for outcome in outcomes for wait in outcome.waits],
        sum(outcome.per_second for outcome in outcomes),
    )


def _run(work: Callable[..., None], pipe: Connection, gate: Barrier, *arguments: object) -> None:
    try:
        work(pipe, gate, *arguments)
    except EOFError:
        return  # the waiting process is gone
    except Exception:  # noqa: BLE001 - told to the process that waits, which raises
        gate.abort()
        pipe.send(traceback.format_exc())


def _send(pipe: Connection, gate: Barrier, path: Path, synchronous: str) -> None:
    with sqsqlite.client(path, synchronous=synchronous, busy_timeout=BUSY_TIMEOUT) as client:
        url = client.get_queue_url(QueueName=QUEUE)["QueueUrl"]

        def write() -> float:
            started = time.monotonic()
            client.send_message(QueueUrl=url, MessageBody=BODY)
            return time.monotonic() - started

        _rounds(pipe, gate, write)


def _apply(pipe: Connection, gate: Barrier, path: Path, synchronous: str, is_in_line: bool) -> None:
    from sqlalchemy import create_engine, event

    engine = create_engine(f"sqlite:///{path}", module=sqsqlite.dbapi, connect_args={"timeout": BUSY_TIMEOUT})

    @event.listens_for(engine, "connect")
    def _settle(connection: Any, _: object) -> None:
        connection.isolation_level = None  # SQLAlchemy begins, by the listener below
        connection.execute(f"PRAGMA synchronous = {synchronous}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def write() -> float:
        with engine.connect() as connection:
            started = time.monotonic()
            transaction = connection.begin()
            waited = time.monotonic() - started
            connection.exec_driver_sql("INSERT INTO items (name) VALUES (?)", (BODY,))
            transaction.commit()
        return waited

    with ExitStack() as stack:
        if is_in_line:
            stack.enter_context(sqsqlite.connect(path, synchronous=synchronous))
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS items (id INTEGER PRIMARY KEY, name TEXT)")
        _rounds(pipe, gate, write)
        engine.dispose()


def _rounds(pipe: Connection, gate: Barrier, write: Callable[[], float]) -> None:
    """Write, in each round that is asked for, for as long as it says. `write` returns the seconds that it waited."""
    pipe.send(Outcome())
    while (asked := pipe.recv()) is not None:
        gate.wait(PATIENCE)
        outcome = Outcome()
        started = now = time.monotonic()
        while now < started + asked.seconds:
            outcome.waits.append(write())
            if asked.pause:
                time.sleep(asked.pause)
            now = time.monotonic()
        outcome.per_second = len(outcome.waits) / (now - started) if outcome.waits else 0.0
        pipe.send(outcome)
