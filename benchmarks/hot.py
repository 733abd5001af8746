# SPDX-License-Identifier: Apache-2.0
"""A quick look at the hot paths: the client against bare and full, one thread, ratios only.

    python benchmarks/hot.py [NORMAL] [FULL] [--messages 2000] [--rounds 5] [--body-bytes 200] [--folder DIRECTORY]

About ten seconds a level. For working on the code; docs/speed.md shows results of run.py.
"""

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers import baseline, doors

from sqsqlite.store.driver import dbapi

CONTENDERS: dict[str, Callable[[Path, str], Any]] = {
    "bare": baseline.Bare,
    "full": baseline.Full,
    "client": doors.Client,
}
WORKLOADS = ("send", "receive+delete", "send, batches of ten", "receive+delete, batches of ten")


def timed(queue: Any, workload: str, bodies: list[str]) -> float:
    """Seconds for all the bodies. A receive must return exactly the bodies that were sent."""
    tens = [bodies[start : start + 10] for start in range(0, len(bodies), 10)]
    received: list[str] = []
    gc.collect()
    started = time.perf_counter()
    if workload == "send":
        for body in bodies:
            queue.send(body)
    elif workload == "send, batches of ten":
        for ten in tens:
            queue.send_ten(ten)
    elif workload == "receive+delete":
        received += [queue.receive_and_delete() for _ in bodies]
    else:
        for _ in tens:
            received += queue.receive_and_delete_ten()
    seconds = time.perf_counter() - started
    if received and sorted(received) != sorted(bodies):
        raise AssertionError(f"{workload}: not every message was received exactly once")
    return seconds


def level(synchronous: str, folder: Path, messages: int, rounds: int, body_bytes: int) -> None:
    bodies = [f"{number:08d}".ljust(body_bytes, "x") for number in range(messages)]
    queues = {
        name: make(folder / f"{synchronous}-{name}.db", synchronous) for name, make in CONTENDERS.items()
    }
    seconds: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for workload in WORKLOADS:
            for name, queue in queues.items():
                seconds.setdefault((workload, name), []).append(timed(queue, workload, bodies))
    for queue in queues.values():
        queue.close()
    print(f"{synchronous:<7}{'us a message':>48}{'client to':>24}")
    print(f"{'':<32}{'bare':>8}{'full':>8}{'client':>8}{'bare':>12}{'full':>8}{'low - high to bare':>22}")
    for workload in WORKLOADS:
        by_name = {name: seconds[workload, name] for name in queues}
        micros = [statistics.median(by_name[name]) / messages * 1e6 for name in queues]
        to_bare = sorted(b / c for b, c in zip(by_name["bare"], by_name["client"], strict=True))
        to_full = sorted(f / c for f, c in zip(by_name["full"], by_name["client"], strict=True))
        print(
            f"{workload:<32}{micros[0]:8.1f}{micros[1]:8.1f}{micros[2]:8.1f}{statistics.median(to_bare):12.2f}"
            f"{statistics.median(to_full):8.2f}{to_bare[0]:14.2f} - {to_bare[-1]:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="The client against bare and full SQL, one thread.")
    parser.add_argument("levels", nargs="*", default=["NORMAL", "FULL"], metavar="LEVEL")
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--body-bytes", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="where the files go: the disk that is measured")
    options = parser.parse_args()
    print(
        f"SQLite {dbapi.sqlite_version}, {options.body_bytes}-byte bodies, medians of {options.rounds} rounds"
    )
    for synchronous in options.levels:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            level(synchronous, Path(folder), options.messages, options.rounds, options.body_bytes)


if __name__ == "__main__":
    main()
