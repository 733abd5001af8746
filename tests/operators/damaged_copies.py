# SPDX-License-Identifier: Apache-2.0
"""Damaged copies of a file, each used in every way: what comes out that is no error of ours?

A program, so that a crash of the interpreter or a hang ends a child and not the tests:

    python -m tests.operators.damaged_copies FOLDER FIRST_SEED COUNT

Prints a line of JSON for each copy: its seed, its damage, how many messages dump saved, and what went wrong. A copy
that takes over a minute ends the program with a traceback.
"""

import faulthandler
import io
import json
import logging
import random
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqsqlite
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.cli.failures import EXIT_CODES
from sqsqlite.errors import SQSQLiteError
from sqsqlite.operators.check import check
from sqsqlite.operators.dump import dump
from sqsqlite.operators.dump_lines import DumpedMessage
from sqsqlite.operators.inspect import last_messages, messages
from sqsqlite.spark.facts import take_facts
from sqsqlite.store.create import PAGE_SIZE
from sqsqlite.store.driver import dbapi
from tests.cli.runs import runner_on

MESSAGES = 99
SECONDS_A_COPY = 60
# The number of copies of which one is also used by the command line.
COMMAND_EVERY = 3
QUEUES = ("orders", "dead", "steps.fifo", "tenants")
# Values that a row may hold although its column does not allow them.
ODD_VALUES = (
    "NULL",
    "-1",
    "0",
    "9223372036854775807",
    "1.5",
    "''",
    "x'ff00'",
    "'text'",
    "CAST(x'ff66' AS TEXT)",
)
START = 1_800_000_000_000


def make(path: Path) -> None:
    """Make a file with queues of every kind, every kind of row, and a WAL that has not been copied into it."""
    clock = sqsqlite.ManualClock()
    sqs = sqsqlite.connect(path, clock=clock, synchronous="OFF")
    dead = sqs.create_queue("dead", tags={"team": "a"})
    orders = sqs.create_queue(
        "orders",
        dead_letter_queue=dead,
        max_receive_count=2,
        redrive_allow_policy={"redrivePermission": "allowAll"},
    )
    orders.send_many(
        [{"body": f"{place} {'x' * (place * 13)}", "attributes": {"n": place}} for place in range(MESSAGES)]
    )
    steps = sqs.create_queue("steps.fifo", fifo=True, content_based_deduplication=True)
    steps.send_many([{"body": f"step {place}", "group_id": f"g{place % 5}"} for place in range(30)])
    steps.receive(3, attempt_id="once")
    tenants = sqs.create_queue("tenants")
    tenants.send_many([{"body": f"tenant {place}", "group_id": f"t{place % 3}"} for place in range(30)])
    for _ in range(3):
        orders.receive(10, visibility_timeout=1)
        tenants.receive(3, visibility_timeout=1)
        clock.advance(2)
    orders.receive(10)
    dead.start_move_task(max_messages_per_second=1)
    orders.send("late", delay=60)
    # The state after a kill: copied while it is open, with its WAL.
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{path}.copy{suffix}")
    sqs.close()


def damage(template: Path, path: Path, seed: int) -> str:
    """Make a damaged copy of the template. Returns the kind of damage."""
    chance = random.Random(seed)
    name, change = DAMAGES[seed % len(DAMAGES)]
    for suffix in ("", "-wal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
        shutil.copy(f"{template}.copy{suffix}", f"{path}{suffix}")
    shutil.rmtree(f"{path}-sqs", ignore_errors=True)
    Path(f"{path}-shm").unlink(missing_ok=True)
    change(path, chance)
    return name


def in_file(change: Callable[[bytearray, random.Random], None], suffix: str = "") -> Callable[..., None]:
    """Change bytes of the file. All is in the file itself then, unless the change is to the WAL."""

    def damaged(path: Path, chance: random.Random) -> None:
        if not suffix:
            with_sql(path, "PRAGMA journal_mode = DELETE", "PRAGMA journal_mode = WAL")
        file = Path(f"{path}{suffix}")
        data = bytearray(file.read_bytes())
        change(data, chance)
        file.write_bytes(data)

    return damaged


def with_sql(path: Path, *statements: str) -> None:
    connection = dbapi.connect(str(path), isolation_level=None)
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 4, 16, 64))):
        data[chance.randrange(100, len(data))] ^= 1 << chance.randrange(8)


def zero(data: bytearray, chance: random.Random) -> None:
    size = chance.choice((4, 100, 512, PAGE_SIZE, 4 * PAGE_SIZE))
    place = chance.randrange(100, len(data) - size)
    data[place : place + size] = bytes(size)


def scramble(data: bytearray, chance: random.Random) -> None:
    page = chance.randrange(1, len(data) // PAGE_SIZE)
    data[page * PAGE_SIZE : (page + 1) * PAGE_SIZE] = chance.randbytes(PAGE_SIZE)


def swap(data: bytearray, chance: random.Random) -> None:
    one, other = (chance.randrange(1, len(data) // PAGE_SIZE) * PAGE_SIZE for _ in range(2))
    data[one : one + PAGE_SIZE], data[other : other + PAGE_SIZE] = (
        data[other : other + PAGE_SIZE],
        data[one : one + PAGE_SIZE],
    )


def truncate(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def change_rows(path: Path, chance: random.Random) -> None:
    """Change values of some rows to any type: the tables are not STRICT meanwhile."""
    connection = dbapi.connect(str(path), isolation_level=None)
    tables = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name LIKE 'sqs_%' AND sql LIKE '%STRICT%'"
    ).fetchall()
    connection.execute("PRAGMA writable_schema = ON")
    loose = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
    for name, sql in tables:
        text = sql.replace(" STRICT", "").replace("WITHOUT ROWID,", "WITHOUT ROWID").replace(" NOT NULL", "")
        connection.execute(loose, (text.rstrip(", "), name))
    connection.close()
    connection = dbapi.connect(str(path), isolation_level=None)
    connection.create_function("chance", 0, chance.random)
    # Bodies, leases and queues are damaged more often than the rest.
    weighted = [name for name, _ in tables] + [
        "sqs_messages",
        "sqs_leases",
        "sqs_queues",
        "sqs_queue_counts",
    ] * 3
    for _ in range(chance.choice((1, 1, 3))):
        table = chance.choice(weighted)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if not row[5]]
        if not columns:
            continue
        column, value = chance.choice(columns), chance.choice(ODD_VALUES)
        some = chance.choice(("1", "chance() < 0.5", "chance() < 0.1"))
        connection.execute(f"UPDATE OR IGNORE {table} SET {column} = {value} WHERE {some}")
    connection.execute("PRAGMA writable_schema = ON")
    for name, sql in tables:
        connection.execute(loose, (sql, name))
    connection.close()


def delete_rows(path: Path, chance: random.Random) -> None:
    connection = dbapi.connect(str(path), isolation_level=None)
    connection.create_function("chance", 0, chance.random)
    tables = [
        row[0]
        for row in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name LIKE 'sqs_%' OR name = 'sqlite_sequence')"
        )
    ]
    for _ in range(chance.choice((1, 2))):
        some = chance.choice(("1", "chance() < 0.5", "chance() < 0.1"))
        connection.execute(f"DELETE FROM {chance.choice(tables)} WHERE {some}")
    connection.close()


DAMAGES: tuple[tuple[str, Callable[[Path, random.Random], None]], ...] = (
    ("flipped bits", in_file(flip)),
    ("zeroed bytes", in_file(zero)),
    ("odd values", change_rows),
    ("a page of noise", in_file(scramble)),
    ("missing rows", delete_rows),
    ("swapped pages", in_file(swap)),
    ("flipped bits in the WAL", in_file(flip, "-wal")),
    ("odd values", change_rows),
    ("truncated", in_file(truncate)),
    ("zeroed bytes in the WAL", in_file(zero, "-wal")),
)


class Used:
    """One copy and the results of its use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wrong: list[str] = []
        self.errors: list[str] = []
        self.dumped = 0

    def attempt(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Run a step. It may end in errors of ours only."""
        try:
            return step(*arguments)
        except SQSQLiteError as error:
            self.errors.append(type(error).__name__)
        except Exception:  # noqa: BLE001 - that is what is looked for
            self.wrong.append(traceback.format_exc())
        return None

    def use(self) -> None:
        clock = sqsqlite.ManualClock(START + 10_000)
        # Before the first write: what dump rescues from the file as it was found.
        sqs = self.attempt(self._open, clock)
        if sqs is None:
            return
        self.attempt(self._dump, sqs)
        self.attempt(check, sqs._store)
        self.attempt(lambda: check(sqs._store, quick=True, bodies=True))
        self.attempt(sqs.stats)
        self.attempt(sqs.metrics)
        self.attempt(sqs.queues)
        facts = Path(f"{self.path}.facts")
        facts.unlink(missing_ok=True)
        self.attempt(take_facts, [self.path], facts)
        for name in QUEUES:
            self._use_queue(sqs, name)
        clock.advance(600)
        for name in QUEUES:
            self._use_queue(sqs, name)
        self.attempt(self._dump, sqs)
        self.attempt(sqs.close)

    def command(self) -> None:
        """Run the command line: it ends with a documented exit code, and without a traceback."""
        aside = Path(f"{self.path}.aside")
        aside.unlink(missing_ok=True)
        run = runner_on(self.path)
        for words in (
            ("dump", "--quiet"),
            ("queues",),
            ("stats",),
            ("peek", "orders"),
            ("check", "--bodies"),
            ("check", "--set-aside", aside, "--yes"),
            ("receive", "orders", "-n", "10"),
            ("send", "orders", "new"),
        ):
            ran = self.attempt(run, *words)
            if ran is not None and ran.code not in EXIT_CODES:
                self.wrong.append(f"{words}: exit code {ran.code}: {ran.err}")

    def _open(self, clock: Any) -> Any:
        return sqsqlite.connect(self.path, clock=clock, synchronous="OFF", busy_timeout=5)

    def _dump(self, sqs: Any) -> None:
        self.dumped = max(
            self.dumped, sum(isinstance(line, DumpedMessage) for line in dump(sqs._store, (), LOCAL))
        )

    def _use_queue(self, sqs: Any, name: str) -> None:
        queue = self.attempt(sqs.queue, name)
        if queue is None:
            return
        for step in (self._receive, self._send, self._look, self._settle, self._attributes, self._client):
            self.attempt(step, queue)

    def _receive(self, queue: Any) -> None:
        for number in (1, 10, 10):
            for message in queue.receive(number):
                self.attempt(message.delete)

    def _send(self, queue: Any) -> None:
        more = {"group_id": "g1"} if queue.name.endswith(".fifo") else {}
        queue.send("new", **more)
        queue.send_many([{"body": f"new {place}", **more} for place in range(12)])

    def _look(self, queue: Any) -> None:
        self.attempt(queue.peek, 50)
        self.attempt(lambda: queue.peek(50, hidden=True))
        self.attempt(lambda: last_messages(queue._store, queue.name, LOCAL, 50))
        self.attempt(lambda: list(messages(queue._store, queue.name, LOCAL)))

    def _settle(self, queue: Any) -> None:
        for message in queue.receive(10):
            self.attempt(message.change_visibility, 0)
        if queue.name.endswith(".fifo"):
            self.attempt(lambda: queue.receive(3, attempt_id="once"))

    def _attributes(self, queue: Any) -> None:
        client = sqsqlite.Client(queue._store)
        self.attempt(lambda: client.get_queue_attributes(QueueUrl=queue.url, AttributeNames=["All"]))
        self.attempt(lambda: client.list_queue_tags(QueueUrl=queue.url))
        self.attempt(lambda: client.list_dead_letter_source_queues(QueueUrl=queue.url))
        self.attempt(lambda: client.list_message_move_tasks(SourceArn=queue.arn))

    def _client(self, queue: Any) -> None:
        self.attempt(lambda: queue.receive(10, wait=0))
        self.attempt(lambda: sqsqlite.Client(queue._store).receive_message(QueueUrl=queue.url))
        if queue.name == "tenants":
            self.attempt(queue.purge)


def main(folder: Path, first: int, count: int) -> None:
    logging.getLogger("sqsqlite").addHandler(logging.StreamHandler(io.StringIO()))
    template = folder / "template.db"
    for seed in range(first, first + count):
        faulthandler.dump_traceback_later(SECONDS_A_COPY, exit=True)
        path = folder / f"copy{first}.db"
        name = damage(template, path, seed)
        used = Used(path)
        used.use()
        if seed % COMMAND_EVERY == 0:
            # On the same damage again, because the first use may have changed the file.
            damage(template, path, seed)
            used.command()
        row = {
            "seed": seed,
            "damage": name,
            "dumped": used.dumped,
            "errors": used.errors,
            "wrong": used.wrong,
        }
        print(json.dumps(row), flush=True)
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
