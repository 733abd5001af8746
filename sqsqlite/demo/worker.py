"""One worker process of the demo: receive, parse, write the result and delete the message in one transaction.

Run as `python -m sqsqlite.demo.worker FILE NAME`. Tells on stdout, one JSON object a line, what it received and what
became of it, so that the parent knows what a worker held when it was killed. Ends when the queue is empty.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqsqlite
from sqsqlite import SQS, Message
from sqsqlite.demo import ledger, sources
from sqsqlite.errors import InvalidParameterValue, MessageNotInflight

QUEUE = "source-files"
DEAD_LETTER_QUEUE = "source-files-dead"
BATCH = 10  # messages a receive: SQS's limit
WAIT_SECONDS = 1  # how long a receive waits, so also how long an idle worker needs to see that all is done
PAUSE_SECONDS = 1  # until a file that could not be parsed is tried again

Tell = Callable[[dict[str, Any]], None]


def work(sqs: SQS, name: str, tell: Tell) -> None:
    """Receive until nothing is left: nothing visible, in flight or delayed."""
    queue = sqs.queue(QUEUE)
    while True:
        batch = queue.receive(BATCH, wait=WAIT_SECONDS)
        if not batch and not len(queue):
            return
        if batch:
            received_at = _now_ms()
            messages = [[message.message_id, message.receive_count] for message in batch]
            tell({"event": "received", "messages": messages, "at": received_at})
            for message in batch:
                outcome = settle(sqs, name, message, received_at)
                tell({"event": outcome, "message_id": message.message_id})


def settle(sqs: SQS, name: str, message: Message, received_at: int) -> str:
    """Parse a message's file. "parsed": its row is in and the message is gone, by one commit.

    "refused": it does not parse, and is tried again until the queue's maxReceiveCount. "late": the visibility timeout
    ended before, so the message is somebody else's by now, and the row was rolled back with the delete.
    """
    try:
        counts = sources.count(Path(message.body))
    except sources.Unparsable:
        return _give_back(message)
    row = ledger.Parsed(
        message.message_id,
        message.body,
        counts.functions,
        counts.classes,
        counts.lines,
        name,
        message.receive_count,
        received_at,
        _now_ms(),
    )
    try:
        with sqs.transaction() as connection:
            ledger.enter_parsed(connection, row)
            message.delete()
    except InvalidParameterValue:
        return "late"
    return "parsed"


def _give_back(message: Message) -> str:
    try:
        message.change_visibility(PAUSE_SECONDS)
    except MessageNotInflight:
        return "late"
    return "refused"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _tell_parent(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore", SyntaxWarning)  # the library's tests hold strange sources on purpose
    warnings.simplefilter("ignore", DeprecationWarning)
    with sqsqlite.connect(sys.argv[1]) as opened:
        work(opened, sys.argv[2], _tell_parent)
