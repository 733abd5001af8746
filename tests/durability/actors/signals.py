# SPDX-License-Identifier: Apache-2.0
"""Time limits by signals: the handler raises wherever the main thread is at that moment."""

import random
import signal
import threading
import time
from collections import Counter
from types import FrameType

from sqlalchemy import text

import sqsqlite
from sqsqlite import SQS
from tests.durability.actors.actor import Actor, differences
from tests.durability.actors.late import drained

SOONEST, LATEST = 0.0005, 0.02  # s
AT_A_TIME = 40
# Python swallows the exception of a handler that runs within a finalizer: then the work continues to its end.
AT_MOST = 1_000


class TimeLimitExceeded(Exception):
    """The error that the handler raises."""


class Signals(Actor):
    """Reads, waits, openings, blocks and SQLAlchemy's transactions, each under a time limit that mostly comes too soon.

    A second thread reads all the time, and must not be hit by what the first one leaves behind.
    """

    name = "signals"
    processes = 2

    def prepare(self) -> None:
        with sqsqlite.connect(self.path()) as sqs:
            sqs.create_queue("jobs")
            with sqs.transaction() as connection:
                connection.execute("CREATE TABLE sent (body TEXT PRIMARY KEY)")

    def work(self, seed: int) -> None:
        chance = random.Random(seed)
        signal.signal(signal.SIGALRM, _raise)
        while not self.is_over:
            with sqsqlite.connect(self.path(), busy_timeout=600) as sqs:
                reader = _Reader(sqs)
                reader.start()
                for number in range(AT_A_TIME):
                    self._limited(sqs, chance, f"{seed}.{time.monotonic_ns()}.{number}")
                reader.stop()

    def _limited(self, sqs: SQS, chance: random.Random, key: str) -> None:
        what = chance.choice((self._send, self._send_by_engine, self._read, self._wait, self._open))
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(SOONEST, LATEST))
                what(sqs, key)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Exception as error:
            if not _is_by_limit(error):
                raise
            self.note("interrupted")
        else:
            self.note("in-time")

    def _send(self, sqs: SQS, key: str) -> None:
        with sqs.transaction() as connection:
            connection.execute("INSERT INTO sent VALUES (?)", (key,))
            sqs.queue("jobs").send(key)

    def _send_by_engine(self, sqs: SQS, key: str) -> None:
        with sqs.engine.begin() as connection:
            connection.execute(text("INSERT INTO sent VALUES (:key)"), {"key": key})
            sqs.queue("jobs").send(key, connection=connection)

    def _read(self, sqs: SQS, key: str) -> None:
        for _ in range(AT_MOST):
            sqs.queue("jobs").peek(10)
            sqs.stats()

    def _wait(self, sqs: SQS, key: str) -> None:
        sqs.queue("jobs").receive(1, wait=20, visibility_timeout=0)

    def _open(self, sqs: SQS, key: str) -> None:
        for _ in range(AT_MOST):
            sqsqlite.connect(self.path()).close()

    def judge(self) -> list[str]:
        with sqsqlite.connect(self.path()) as sqs:
            with sqs.transaction() as connection:
                rows = Counter(row[0] for row in connection.execute("SELECT body FROM sent").fetchall())
            found = Counter(message.body for message in drained(sqs.queue("jobs")))
        self.totals = Counter({"rows": rows.total(), "messages": found.total()})
        return differences("messages", rows, found)

    def figures(self) -> Counter[str]:
        return super().figures() + self.totals


class _Reader(threading.Thread):
    def __init__(self, sqs: SQS) -> None:
        super().__init__(daemon=True)
        self._sqs = sqs
        self._over = False
        self._failed: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._over:
                self._sqs.queue("jobs").peek(1)
                time.sleep(0.002)
        except BaseException as error:  # noqa: BLE001 - raised by the main thread
            self._failed = error

    def stop(self) -> None:
        self._over = True
        self.join()
        if self._failed is not None:
            raise self._failed


def _is_by_limit(error: BaseException | None) -> bool:
    """Whether the error comes from the handler. Some calls raise another when interrupted: `Thread.start`, for one."""
    while error is not None:
        if isinstance(error, TimeLimitExceeded):
            return True
        error = error.__cause__ or error.__context__
    return False


def _raise(number: int, frame: FrameType | None) -> None:
    raise TimeLimitExceeded
