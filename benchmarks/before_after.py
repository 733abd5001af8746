# SPDX-License-Identifier: Apache-2.0
"""The CPU time of two checkouts, compared in one run: python benchmarks/before_after.py BEFORE AFTER

    python benchmarks/before_after.py BEFORE AFTER [--slices 100] [--messages 100] [--synchronous NORMAL] [--folder DIR]

Each checkout runs in one process of its own, on its own file, with the Python of its own .venv (without a .venv: this
Python, with the checkout on PYTHONPATH). A slice is one workload of some messages through `sqsqlite.client`. The two
processes alternate slice by slice, so a machine that gets slower slows both. The clock is `time.process_time`: the CPU
time of that process alone. The first tenth of the slices warms up and does not count.

A ratio is AFTER's time divided by BEFORE's: under 1, AFTER needs less. `ratio` is the median of the slices' ratios;
`quiet` divides the times that a tenth of the slices stay under, which other programs on the machine disturb least.
Compare a checkout with itself to see how much of a ratio is noise.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

BODY = "x" * 200


class Checkout:
    """A checkout of the project, measured in a process of its own. A context manager."""

    def __init__(self, path: Path, file: Path, synchronous: str, messages: int) -> None:
        python = path / ".venv" / "bin" / "python"
        settings = os.environ | {"PYTHONHASHSEED": "0"}
        if not python.exists():
            python, settings = Path(sys.executable), settings | {"PYTHONPATH": str(path)}
        command = [str(python), __file__, "--measure", str(file), synchronous, str(messages)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings
        )
        package = Path(self._answer())
        if not package.is_relative_to(path):
            self.__exit__()
            raise SystemExit(f"{path} is no checkout: its Python imports {package}")

    def slice(self, workload: str) -> float:
        """Run a workload once: CPU microseconds a message."""
        assert self._process.stdin is not None
        self._process.stdin.write(workload + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> "Checkout":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measure(file: str, synchronous: Any, messages: int) -> None:
    """Measure the installed package: one slice for each workload that standard input names."""
    import sqsqlite  # Imported here, because the other process imports that of the other checkout.

    print(json.dumps(sqsqlite.__file__), flush=True)
    with sqsqlite.client(file, synchronous=synchronous) as client:
        url = client.create_queue(QueueName="orders")["QueueUrl"]
        for line in sys.stdin:
            gc.collect()
            started = time.process_time()
            WORKLOADS[line.strip()](client, url, messages)
            print((time.process_time() - started) / messages * 1e6, flush=True)


def _send(client: Any, url: str, messages: int) -> None:
    for _ in range(messages):
        client.send_message(QueueUrl=url, MessageBody=BODY)


def _receive(client: Any, url: str, messages: int) -> None:
    for _ in range(messages):
        [message] = client.receive_message(QueueUrl=url)["Messages"]
        client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def _send_batches(client: Any, url: str, messages: int) -> None:
    for _ in range(messages // 10):
        entries = [{"Id": str(number), "MessageBody": BODY} for number in range(10)]
        client.send_message_batch(QueueUrl=url, Entries=entries)


def _receive_batches(client: Any, url: str, messages: int) -> None:
    for _ in range(messages // 10):
        received = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        entries = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
            for number, message in enumerate(received)
        ]
        deleted = client.delete_message_batch(QueueUrl=url, Entries=entries)
        if len(deleted["Successful"]) != 10:
            raise AssertionError("a batch of ten deleted less than ten messages")


WORKLOADS: dict[str, Callable[[Any, str, int], None]] = {
    "send": _send,
    "receive+delete": _receive,
    "send, batches of ten": _send_batches,
    "receive+delete, batches of ten": _receive_batches,
}


def compare(before: Checkout, after: Checkout, slices: int) -> dict[str, list[tuple[float, float]]]:
    """The figures of both checkouts, slice by slice, by workload. They alternate in going first."""
    pairs: dict[str, list[tuple[float, float]]] = {workload: [] for workload in WORKLOADS}
    warm_up = max(1, slices // 10)
    for number in range(warm_up + slices):
        for workload, found in pairs.items():
            if number % 2:
                second = after.slice(workload)
                found.append((before.slice(workload), second))
            else:
                found.append((before.slice(workload), after.slice(workload)))
    return {workload: found[warm_up:] for workload, found in pairs.items()}


def lines(pairs: dict[str, list[tuple[float, float]]]) -> list[str]:
    """A table: the median of each checkout, and their ratio with its spread."""
    heading = f"{'CPU us a message':<32}{'before':>8}{'after':>8}{'ratio':>8}{'quiet':>8}"
    table = [f"{heading}{'middle half':>16}{'all':>16}"]
    for workload, found in pairs.items():
        before, after = (statistics.median(side) for side in zip(*found, strict=True))
        quiet = [sorted(side)[len(found) // 10] for side in zip(*found, strict=True)]
        ratios = sorted(own / other for other, own in found)
        quarter = len(ratios) // 4
        table.append(
            f"{workload:<32}{before:>8.1f}{after:>8.1f}{statistics.median(ratios):>8.2f}{quiet[1] / quiet[0]:>8.2f}"
            f"{f'{ratios[quarter]:.2f} - {ratios[-1 - quarter]:.2f}':>16}"
            f"{f'{ratios[0]:.2f} - {ratios[-1]:.2f}':>16}"
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the CPU time of two checkouts in one run.")
    parser.add_argument("before", type=Path, help="the checkout to compare with")
    parser.add_argument("after", type=Path, help="the checkout whose change is measured")
    parser.add_argument("--slices", type=int, default=100, help="of each workload (100)")
    parser.add_argument("--messages", type=int, default=100, help="of a slice (100)")
    parser.add_argument("--synchronous", choices=("OFF", "NORMAL", "FULL", "EXTRA"), default="NORMAL")
    parser.add_argument("--folder", type=Path, help="where the files go: the disk that is measured")
    options = parser.parse_args()
    if options.slices < 1 or options.messages < 10 or options.messages % 10:
        parser.error("--slices must be at least 1, and --messages a multiple of ten")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, ExitStack() as stack:
        before, after = (
            stack.enter_context(
                Checkout(path.resolve(), Path(folder, name), options.synchronous, options.messages)
            )
            for name, path in (("before.db", options.before), ("after.db", options.after))
        )
        pairs = compare(before, after, options.slices)
    print(f"{options.slices} slices of {options.messages} messages, synchronous={options.synchronous}")
    print("\n".join(lines(pairs)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
