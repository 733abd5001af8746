"""One worker process of the demo: receive, parse, write the results and delete the messages in one transaction.

Run as `python -m sqsqlite.demo.worker FILE NAME`. Tells on stdout, one JSON object a line, what it received and what
became of it, so that the parent knows what a worker held when it was killed. Ends when the queue is empty.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sqsqlite
from sqsqlite import SQS, Message
from sqsqlite.demo import ledger, sources
from sqsqlite.errors import LeaseLost

QUEUE = "source-files"
DEAD_LETTER_QUEUE = "source-files-dead"
BATCH = 5  # messages a receive and a commit: few, so that they are done within the visibility timeout
WAIT_SECONDS = 1  # how long a receive waits, so also how long an idle worker needs to see that all is done
LONGER_SECONDS = 3600  # for a message that came back: its timeout may have been too short for this machine

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
            for message_id, outcome in settle(sqs, name, batch, received_at).items():
                tell({"event": outcome, "message_id": message_id})


def settle(sqs: SQS, name: str, batch: Sequence[Message], received_at: int) -> dict[str, str]:
    """Parse the files of a batch; what became of each message, by its id.

    "parsed": its row is in and the message is gone, by one commit. "refused": the file does not parse, and is tried
    again until the queue's maxReceiveCount. "late": the visibility timeout ended before, so the message is somebody
    else's by now, and the row was rolled back with the delete.
    """
    outcomes = {}
    rows: dict[Message, ledger.Parsed] = {}
    for message in [message for message in batch if _takes_its_time(message)]:
        try:
            rows[message] = _parse(name, message, received_at)
        except sources.Unparsable:
            outcomes[message.message_id] = "refused" if _hides(message, 0) else "late"
    outcomes |= _commit(sqs, rows)
    return {message.message_id: outcomes.get(message.message_id, "late") for message in batch}


def _takes_its_time(message: Message) -> bool:
    return message.receive_count == 1 or _hides(message, LONGER_SECONDS)


def _hides(message: Message, seconds: int) -> bool:
    try:
        message.change_visibility(seconds)
    except LeaseLost:
        return False
    return True


def _parse(name: str, message: Message, received_at: int) -> ledger.Parsed:
    counts = sources.count(Path(message.body))
    return ledger.Parsed(
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


def _commit(sqs: SQS, rows: dict[Message, ledger.Parsed]) -> dict[str, str]:
    """All rows and deletes at once; one by one if a message of them has been lost, as then all are rolled back."""
    try:
        with sqs.transaction() as connection:
            for row in rows.values():
                ledger.enter_parsed(connection, row)
            sqs.queue(QUEUE).delete_many(rows)
    except LeaseLost:
        if len(rows) == 1:
            return {}
        parts = [_commit(sqs, {message: row}) for message, row in rows.items()]
        return {message_id: outcome for part in parts for message_id, outcome in part.items()}
    return {message.message_id: "parsed" for message in rows}


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
