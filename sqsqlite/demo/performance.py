# SPDX-License-Identifier: Apache-2.0
"""The demo from beginning to end: send, start the workers, kill one at work, wait for the others, audit."""

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import sqsqlite
from sqsqlite import SQS
from sqsqlite.demo import ledger
from sqsqlite.demo.audit import DeadMessage, Evidence, Kill, find_faults, find_returns
from sqsqlite.demo.ledger import Parsed, Receive
from sqsqlite.demo.worker import DEAD_LETTER_QUEUE, QUEUE, count, now_ms

VISIBILITY_TIMEOUT = 3  # seconds, after which other workers receive the messages of the killed one
MAX_RECEIVE_COUNT = 3
PEEK_LIMIT = 10_000  # messages: the most that a peek shows
LOOK_SECONDS = (
    0.01  # between two looks at the tables: short, because with few files the workers are done soon
)
NOT_OF_THE_LIBRARY = {"site-packages", "dist-packages", "__pycache__"}

Say = Callable[[str], None]


class CrewFailed(Exception):
    """A worker ended with an error."""


class Crew:
    """Worker processes on one file. A context manager: its end kills the workers that are still there.

    Attributes:
        logs: the files that the workers print to, each to its own.
    """

    def __init__(self, path: Path, worker_count: int) -> None:
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self.logs: list[Path] = []
        for number in range(1, worker_count + 1):
            name = f"worker-{number}"
            command = [sys.executable, "-m", "sqsqlite.demo.worker", str(path), name]
            self.logs.append(path.with_name(f"{path.name}-{name}.log"))
            with self.logs[-1].open("wb") as log:
                self._workers[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log)  # noqa: S603 - ours

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._workers.values():
            process.kill()
            process.wait()

    def is_at_work(self) -> bool:
        """Whether a worker is still there.

        Raises:
            CrewFailed: a worker that was not killed here ended with an error.
        """
        codes = {name: process.poll() for name, process in self._workers.items()}
        for name, code in codes.items():
            if code:
                raise CrewFailed(f"{name} ended with exit code {code}")
        return None in codes.values()

    def kill(self, name: str) -> int:
        """SIGKILL a worker and return its process id. It has no chance to finish or to return its messages."""
        process = self._workers.pop(name)
        process.kill()
        process.wait()
        return process.pid


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that has ended. `seconds`: from the first worker's start to the last one's end."""

    path: Path
    worker_count: int
    seconds: float
    evidence: Evidence
    faults: list[str]


def perform(path: Path, *, worker_count: int = 4, limit: int | None = None, say: Say) -> Outcome:
    """Run the demo on a new file, and leave the file.

    Args:
        path: of the new file; the demo makes its folder.
        worker_count: 2 or more, because the demo kills one.
        limit: how many files at most, spread over the library; None is all of them.
        say: takes the lines that show the progress.

    Raises:
        FileExistsError: there is a file at `path`.
        CrewFailed: a worker ended with an error.
        SQSQLiteError: something is wrong with the file, or its disk.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists: the demo begins with a new file")
    path.parent.mkdir(parents=True, exist_ok=True)
    files = choose(path, limit, say)
    with sqsqlite.connect(path) as sqs:
        send(sqs, files)
        say(
            f"Sent {len(files):,} messages, one for each file, in one transaction with their rows in source_files."
        )
        started = time.monotonic()
        with Crew(path, worker_count) as crew:
            kill = watch(crew, sqs, len(files), say)
        seconds = time.monotonic() - started
        evidence = gather(sqs, kill, crew.logs)
    return Outcome(path, worker_count, seconds, evidence, find_faults(evidence))


def choose(path: Path, limit: int | None, say: Say) -> list[Path]:
    """The files to send: those of Python's standard library, and a truncated one next to `path`."""
    root = Path(sysconfig.get_path("stdlib"))
    files = find(root)
    say(f"Found {len(files):,} source files in {root}.")
    truncated = path.with_name(f"{path.name}-truncated.py")
    truncated.write_bytes(Path(__file__).read_bytes()[:50])  # ends inside the docstring
    say(f"One more does not parse: {truncated}, the beginning of a file.")
    if limit is not None and limit <= len(files):
        files = [files[place * len(files) // (limit - 1)] for place in range(limit - 1)]
    return [*files, truncated]


def find(root: Path) -> list[Path]:
    """All source files below `root`, in the same order on every run, without installed packages."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - NOT_OF_THE_LIBRARY)
        found += [Path(folder, name) for name in sorted(names) if name.endswith(".py")]
    return found


def send(sqs: SQS, files: list[Path]) -> None:
    """Make the queues and the application's tables, and send a message for each file."""
    dead = sqs.create_queue(DEAD_LETTER_QUEUE)
    queue = sqs.create_queue(
        QUEUE,
        visibility_timeout=VISIBILITY_TIMEOUT,
        dead_letter_queue=dead,
        max_receive_count=MAX_RECEIVE_COUNT,
    )
    paths = [str(file) for file in files]
    with sqs.transaction() as connection:
        for table in ledger.TABLES:
            connection.execute(table)
        ids = [message.message_id for message in queue.send_many(paths)]
        connection.executemany(ledger.INSERT_SOURCE_FILE, zip(ids, paths, strict=True))


def watch(crew: Crew, sqs: SQS, sent_count: int, say: Say) -> Kill | None:
    """Wait for the workers, and kill one when a tenth of the files is parsed."""
    kill, said, tenths, at_work = None, 0, 0, True
    while at_work:
        at_work = crew.is_at_work()
        [[parsed_count]] = ledger.read(sqs, ledger.COUNT_PARSED_FILES)
        if kill is None and parsed_count >= sent_count // 10:
            kill = kill_at_work(crew, sqs, say)
        if kill is not None and said < len(kill.held):
            back = find_returns(kill, read_receives(sqs))
            for id_, name, receive_count, at in back[said:]:
                after = f"{(at - kill.at) / 1000:.1f} s after the kill"
                say(f"{name} received {id_} again, receive count {receive_count}, {after}.")
            said = len(back)
        if 10 * parsed_count // sent_count > tenths:
            tenths = 10 * parsed_count // sent_count
            say(f"{parsed_count:,} of {sent_count:,} files are parsed.")
        time.sleep(LOOK_SECONDS)
    return kill


def kill_at_work(crew: Crew, sqs: SQS, say: Say) -> Kill | None:
    """Kill a worker that certainly holds messages, all at their first receive; None before there is such a worker.

    The transaction keeps the worker from committing, so what it holds is unfinished. A second receive would hide a
    message for so long that the demo would not see it come back.
    """
    with sqs.transaction() as connection:
        peeked = sqs.queue(QUEUE).peek(PEEK_LIMIT, hidden=True)
        in_flight = {(one.message_id, one.receive_count) for one in peeked if one.state == "in flight"}
        at_work: dict[str, list[str]] = {}
        for id_, name, receive_count, _ in connection.execute(ledger.SELECT_RECEIVES):
            if (id_, receive_count) in in_flight:
                at_work.setdefault(name, []).append(id_)
        new = {name: ids for name, ids in at_work.items() if all((id_, 1) in in_flight for id_ in ids)}
        if not new:
            return None
        name = max(new, key=lambda name: len(new[name]))
        pid = crew.kill(name)
        kill = Kill(name, now_ms(), tuple(sorted(new[name])))
    say(
        f"Killed {name} (process {pid}, SIGKILL) with {len(kill.held)} messages in its hands: "
        f"they are hidden until their visibility timeout of {VISIBILITY_TIMEOUT} s ends."
    )
    for id_ in kill.held:
        say(f"  {id_}")
    return kill


def read_receives(sqs: SQS) -> list[Receive]:
    """All receives, in order."""
    return [Receive(*row) for row in ledger.read(sqs, ledger.SELECT_RECEIVES)]


def gather(sqs: SQS, kill: Kill | None, logs: list[Path]) -> Evidence:
    """Collect what the audit compares."""
    lines = [line for log in logs for line in log.read_text().splitlines(keepends=True)]
    outcomes = [line.split() for line in lines if line.endswith("\n")]  # a kill may cut the last one
    [[integrity]] = ledger.read(sqs, "PRAGMA integrity_check(1)")
    return Evidence(
        sent=dict(ledger.read(sqs, ledger.SELECT_SOURCE_FILES)),
        receives=read_receives(sqs),
        parsed=[Parsed(*row) for row in ledger.read(sqs, ledger.SELECT_PARSED_FILES)],
        acknowledged=[id_ for outcome, id_ in outcomes if outcome == "parsed"],
        late_count=sum(outcome == "late" for outcome, _ in outcomes),
        dead_letters=[
            DeadMessage(one.message_id, one.body, one.receive_count, count(Path(one.body)) is not None)
            for one in sqs.queue(DEAD_LETTER_QUEUE).peek(PEEK_LIMIT)
        ],
        max_receive_count=MAX_RECEIVE_COUNT,
        left=len(sqs.queue(QUEUE)),
        kill=kill,
        integrity=integrity,
    )
