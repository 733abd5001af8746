# SPDX-License-Identifier: Apache-2.0
"""Fair queues: the cost of tenants for receives and sends, and the effect of a noisy tenant on its quiet neighbours."""

import random
import time
from pathlib import Path

import neighbours
from big_file import Fill, make
from grouped_file import make_fair
from neighbours import Load, Waits
from receives import Compared, compare
from rows import Figure, median, milliseconds, percentile

import sqsqlite
from sqsqlite.store.driver import dbapi

MILLION = 1_000_000
TENANTS = 10_000
LEVEL = "NORMAL"  # the level of the single calls: the cheaper commit hides less
# The quiet tenants alone keep four workers busy for half of their time. With idle workers they would hardly wait, and
# next to any neighbour they would wait for the rest of the work in hand, however fair the queue is.
LOAD = Load(tenants=100, workers=4, work_seconds=0.02, rounds=30, warm_up=2)
QUICK_LOAD = Load(tenants=10, workers=2, work_seconds=0.005, rounds=1, warm_up=0)


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    scale = 100 if quick else 1
    return [
        *_calls(folder, TENANTS // scale, 2 if quick else 20),
        _neighbours(folder, MILLION // scale, QUICK_LOAD if quick else LOAD),
    ]


def _calls(folder: Path, tenants: int, blocks: int) -> list[Figure]:
    fair, plain = folder / "fair.db", folder / "plain.db"
    make_fair(fair, tenants, 10)
    make(plain, Fill(10 * tenants))
    one, ten = (
        compare(fair, plain, synchronous=LEVEL, max_messages=max_messages, blocks=blocks)
        for max_messages in (1, 10)
    )
    return [
        _ratio(f"fair receive, {tenants:,} tenants, to a plain one", one, "at most 1.5"),
        _ratio(f"fair receive of ten, {tenants:,} tenants, to a plain one", ten, "at most 1.5"),
        _ratio(f"fair send, {tenants:,} tenants, to a plain one", _sends(fair, plain, tenants, blocks), ""),
    ]


def _sends(fair: Path, plain: Path, tenants: int, blocks: int) -> Compared:
    """Blocks of sends, alternately to a file with tenants and to one without."""
    numbers = random.Random(1)
    latencies: dict[Path, list[float]] = {fair: [], plain: []}
    clients = {path: sqsqlite.client(path, synchronous=LEVEL) for path in latencies}
    for _ in range(blocks):
        for path, client in clients.items():
            url = client.get_queue_url(QueueName="orders")["QueueUrl"]
            for _ in range(25):
                message = {"QueueUrl": url, "MessageBody": "x" * 200}
                if path == fair:
                    message["MessageGroupId"] = f"tenant-{numbers.randrange(tenants)}"
                started = time.perf_counter()
                client.send_message(**message)
                latencies[path].append(time.perf_counter() - started)
    for client in clients.values():
        client.close()
    return Compared(median(latencies[fair]), median(latencies[plain]))


def _ratio(name: str, found: Compared, goal: str) -> Figure:
    return Figure(name, found.ratio, "times", LEVEL, dbapi.sqlite_version, goal, found.beside)


def _neighbours(folder: Path, waiting: int, load: Load) -> Figure:
    alone_file, beside_file = folder / "alone.db", folder / "beside.db"
    with sqsqlite.connect(alone_file) as sqs:
        sqs.create_queue(neighbours.QUEUE)
    make_fair(beside_file, 1, waiting)
    alone, beside = neighbours.run(alone_file, load), neighbours.run(beside_file, load)
    # All waiting messages come first in the order of sending.
    plain_seconds = waiting / beside.per_second
    return Figure(
        f"p95 wait of {load.tenants} quiet tenants, one with {waiting:,} waiting beside them, to alone",
        percentile(beside.seconds, 0.95) / percentile(alone.seconds, 0.95),
        "times",
        load.synchronous,
        dbapi.sqlite_version,
        "at most 3",
        f"{_p95(beside)} to {_p95(alone)}; medians {_median(beside)} to {_median(alone)}; {load.workers} workers at "
        f"{beside.per_second:,.0f}/s; in order of sending: {plain_seconds:,.0f} s",
    )


def _p95(waits: Waits) -> str:
    return f"{milliseconds(percentile(waits.seconds, 0.95)):.1f} ms"


def _median(waits: Waits) -> str:
    return f"{milliseconds(median(waits.seconds)):.1f} ms"
