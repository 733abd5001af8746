# SPDX-License-Identifier: Apache-2.0
"""One worker process of the demo: it writes each result in the transaction that deletes the message.

`python -m sqsqlite.demo.worker FILE NAME` prints a line for each message that it has settled: outcome and message id.
"""

import ast
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import sqsqlite
from sqsqlite import SQS, Message
from sqsqlite.demo import ledger
from sqsqlite.errors import LeaseLost

QUEUE = "source-files"
DEAD_LETTER_QUEUE = "source-files-dead"
BATCH = 5  # messages a receive: few, so that the worker finishes them within the visibility timeout
WAIT_SECONDS = 1  # of a receive; an idle worker needs as long to see that the queue is empty
LONGER_SECONDS = 3600  # for a message that came back: its timeout may have been too short for this machine


def work(sqs: SQS, name: str, say: Callable[[str], None]) -> None:
    """Receive until the queue is empty: no message is visible, in flight or delayed."""
    queue = sqs.queue(QUEUE)
    while True:
        batch = queue.receive(BATCH, wait=WAIT_SECONDS)
        if not batch and not len(queue):
            return
        note(sqs, name, batch)
        for message in batch:
            say(f"{settle(sqs, name, message)} {message.message_id}")


def note(sqs: SQS, name: str, batch: list[Message]) -> None:
    """Write down who received the messages, then keep the returned ones for as long as they need."""
    received_at = now_ms()
    with sqs.transaction() as connection:
        rows = [(message.message_id, name, message.receive_count, received_at) for message in batch]
        connection.executemany(ledger.INSERT_RECEIVE, rows)
    for message in batch:
        if message.receive_count > 1:
            hide(message, LONGER_SECONDS)


def settle(sqs: SQS, name: str, message: Message) -> str:
    """Parse the file of a message and return the outcome.

    "parsed": one commit wrote its row and deleted it. "refused": the file does not parse, and is tried again until the
    queue's maxReceiveCount. "late": the visibility timeout ended before, so the row was rolled back with the delete,
    and another worker receives the message.
    """
    counts = count(Path(message.body))
    if counts is None:
        return "refused" if hide(message, 0) else "late"
    row = ledger.Parsed(message.message_id, message.body, name, message.receive_count, now_ms(), *counts)
    try:
        with sqs.transaction() as connection:
            connection.execute(ledger.INSERT_PARSED_FILE, row)
            message.delete()
    except LeaseLost:
        return "late"
    return "parsed"


def hide(message: Message, seconds: int) -> bool:
    """Whether the message was still this worker's, so that its visibility timeout could change."""
    try:
        message.change_visibility(seconds)
    except LeaseLost:
        return False
    return True


def count(path: Path) -> tuple[int, int, int] | None:
    """The functions (methods and inner functions too), classes and lines of a source file; None: it does not parse."""
    source = path.read_bytes()
    try:
        nodes = list(ast.walk(ast.parse(source, filename=str(path))))
    except (SyntaxError, ValueError, RecursionError):
        return None
    functions = sum(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) for node in nodes)
    return functions, sum(isinstance(node, ast.ClassDef) for node in nodes), len(source.splitlines())


def now_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    for category in (
        SyntaxWarning,
        DeprecationWarning,
    ):  # the library's tests hold strange sources on purpose
        warnings.simplefilter("ignore", category)
    with sqsqlite.connect(sys.argv[1]) as opened:
        work(opened, sys.argv[2], lambda line: print(line, flush=True))  # noqa: T201 - its report
