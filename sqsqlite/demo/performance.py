"""The demo from beginning to end: send, start the workers, kill one at work, wait for the others, look at the sum."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import sqsqlite
from sqsqlite import SQS, Queue
from sqsqlite.demo import ledger, sources
from sqsqlite.demo.audit import DeadLetter, Evidence, find_faults
from sqsqlite.demo.crew import Crew
from sqsqlite.demo.journal import Journal, Kill
from sqsqlite.demo.worker import DEAD_LETTER_QUEUE, QUEUE
from sqsqlite.operators.statistics import QueueStatistics

VISIBILITY_TIMEOUT = 3  # seconds: what the killed worker held is back that much later
MAX_RECEIVE_COUNT = 3
MOST_LOOKED_AT = 10_000  # messages: a look shows no more

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that has ended.

    Attributes:
        seconds: from the first worker's start to the last one's end.
        faults: what does not add up; empty when everything does.
        queues: what `sqs.stats()` says in the end.
    """

    path: Path
    worker_count: int
    seconds: float
    journal: Journal
    evidence: Evidence
    faults: list[str]
    queues: list[QueueStatistics]


def perform(path: Path, *, worker_count: int = 4, limit: int | None = None, say: Say) -> Outcome:
    """Run the demo on a new file, and leave the file.

    Args:
        path: where no file is yet; its folder is made.
        worker_count: 2 or more, as one is killed.
        limit: how many files at most, spread over the library; all unless said.
        say: takes the lines that tell how it goes.

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
        queue = send(sqs, files)
        say(
            f"Sent {len(files):,} messages, one for each file, in one transaction with their rows in source_files."
        )
        started = time.monotonic()
        journal = _run_crew(path, worker_count, sqs, queue, len(files), say)
        seconds = time.monotonic() - started
        evidence = gather(sqs, journal)
        return Outcome(path, worker_count, seconds, journal, evidence, find_faults(evidence), sqs.stats())


def choose(path: Path, limit: int | None, say: Say) -> list[Path]:
    """The files to send. Where none of them is unparsable, the last one is a truncated copy beside `path`."""
    root = sources.standard_library()
    files = sources.sample(sources.find(root), limit)
    say(f"Found {len(files):,} source files in {root}.")
    if not sources.ships_unparsable(files):
        truncated = path.with_name(f"{path.name}-truncated.py")  # nobody else's file, as `path` is new
        sources.write_truncated(Path(sources.__file__), truncated)
        say(f"None of them is known to be unparsable: {truncated} is, a copy cut in two.")
        files[-1:] = [files[-1], truncated] if limit is None else [truncated]
    return files


def send(sqs: SQS, files: list[Path]) -> Queue:
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
        ledger.create(connection)
        sent = queue.send_many(paths)
        ledger.enter_sent(
            connection, [(message.message_id, path) for message, path in zip(sent, paths, strict=True)]
        )
    return queue


def _run_crew(path: Path, worker_count: int, sqs: SQS, queue: Queue, sent_count: int, say: Say) -> Journal:
    journal = Journal()
    said_tenths = 0
    with Crew(path, worker_count) as crew:
        for worker, event in crew.events():
            for back in journal.enter(worker, event):
                assert journal.kill is not None
                say(
                    f"{worker} received {back.message_id} again, receive count {back.receive_count}, "
                    f"{(back.at - journal.kill.at) / 1000:.1f} s after the kill."
                )
            if (
                journal.kill is None
                and journal.totals["parsed"] >= sent_count // 10
                and any(journal.at_work.values())
            ):
                journal.kill = kill_at_work(crew, sqs, queue, journal)
                if journal.kill is not None:
                    _say_kill(journal.kill, crew, say)
            parsed_count = journal.totals["parsed"]
            if 10 * parsed_count // sent_count > said_tenths:
                said_tenths = 10 * parsed_count // sent_count
                say(f"{parsed_count:,} of {sent_count:,} files are parsed.")
    return journal


def kill_at_work(crew: Crew, sqs: SQS, queue: Queue, journal: Journal) -> Kill | None:
    """Kill a worker that certainly holds messages, all at their first receive; None if there is no such worker yet.

    In a transaction: no commit of the worker's can be under way, so what it holds is not finished. A message's second
    receive is for long, so nobody would see it come back.
    """
    with sqs.transaction():
        looked_at = queue.peek(MOST_LOOKED_AT, hidden=True)
        in_flight = {one.message_id: one.receive_count for one in looked_at if one.state == "in flight"}
        for worker, batch in journal.at_work.items():
            held = [id_ for id_ in batch if in_flight.get(id_) == batch[id_] == 1]
            if held and set(batch.values()) == {1}:
                crew.kill(worker)
                return Kill(worker, time.time_ns() // 1_000_000, tuple(sorted(held)))
    return None


def _say_kill(kill: Kill, crew: Crew, say: Say) -> None:
    say(
        f"Killed {kill.worker} (process {crew.pid(kill.worker)}, SIGKILL) with {len(kill.held)} messages in its hands: "
        f"they are hidden until their visibility timeout of {VISIBILITY_TIMEOUT} s ends."
    )
    for message_id in kill.held:
        say(f"  {message_id}")


def gather(sqs: SQS, journal: Journal) -> Evidence:
    """Everything the audit asks for, from the file and from what was told."""
    dead_letters = [
        DeadLetter(
            message.message_id, message.body, message.receive_count, sources.parses(Path(message.body))
        )
        for message in sqs.queue(DEAD_LETTER_QUEUE).peek(MOST_LOOKED_AT)
    ]
    with sqs.transaction() as connection:
        integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
    return Evidence(
        sent=ledger.read_sent(sqs),
        parsed=ledger.read_parsed(sqs),
        acknowledged=journal.acknowledged,
        dead_letters=dead_letters,
        max_receive_count=MAX_RECEIVE_COUNT,
        left=len(sqs.queue(QUEUE)),
        kill=journal.kill,
        returns=journal.returns_of(journal.kill) if journal.kill else [],
        integrity=integrity,
    )
