# SPDX-License-Identifier: Apache-2.0
"""Messages move from one queue file to another: after a kill in between one may arrive twice, but never not at all."""

import threading
from collections import Counter

import sqsqlite
from sqsqlite import SQS
from sqsqlite.errors import LeaseLost
from tests.durability.actors.actor import Actor

THREADS = 2
BACKLOG = 500


class Hops(Actor):
    """Each process: two threads that receive from in.db, send to out.db and delete, and send more to in.db."""

    name = "hops"
    processes = 2
    files = ("in.db", "out.db")

    def prepare(self) -> None:
        for file in self.files:
            with sqsqlite.connect(self.path(file)) as sqs:
                sqs.create_queue("jobs", visibility_timeout=5)

    def work(self, seed: int) -> None:
        with (
            sqsqlite.connect(self.path("in.db"), busy_timeout=600) as source,
            sqsqlite.connect(self.path("out.db"), busy_timeout=600) as target,
        ):
            threads = [
                threading.Thread(target=self._hop, args=(source, target, f"{seed}.{place}"))
                for place in range(THREADS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if self._failed:
                raise self._failed[0]

    _failed: tuple[BaseException, ...] = ()

    def _hop(self, source: SQS, target: SQS, who: str) -> None:
        try:
            number = 0
            while not self.is_over:
                if len(source.queue("jobs")) < BACKLOG:
                    keys = [f"{who}.{number + place}" for place in range(10)]
                    source.queue("jobs").send_many(keys)
                    self.note("sent", *keys)
                    number += len(keys)
                self._pass_on(source, target)
        except BaseException as error:  # noqa: BLE001 - raised again by the main thread
            self._failed = (*self._failed, error)

    def _pass_on(self, source: SQS, target: SQS) -> None:
        for message in source.queue("jobs").receive(10, wait=1):
            self.note("hop")
            target.queue("jobs").send(message.body)
            try:
                message.delete()
            except LeaseLost as error:
                self.note("late", error.reason)

    def judge(self) -> list[str]:
        with sqsqlite.connect(self.path("in.db")) as source, sqsqlite.connect(self.path("out.db")) as target:
            while len(source.queue("jobs")):
                self._pass_on(source, target)
            arrived: Counter[str] = Counter()
            while messages := target.queue("jobs").receive(10, visibility_timeout=600):
                arrived.update(message.body for message in messages)
                target.queue("jobs").delete_many(messages)
        sent = {key for keys in self.notes("sent") for key in keys}
        twice = arrived.total() - len(arrived)
        hops = sum(1 for _ in self.notes("hop"))
        self.totals = Counter({"messages": len(sent), "arrived": arrived.total(), "arrived twice": twice})
        faults = [f"{len(lost):,} lost, such as {min(lost)}"] if (lost := sent - arrived.keys()) else []
        if arrived.total() > hops:
            faults.append(f"{arrived.total():,} arrived by {hops:,} hops")
        return faults

    def figures(self) -> Counter[str]:
        return super().figures() + self.totals
