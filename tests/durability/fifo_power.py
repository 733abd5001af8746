# SPDX-License-Identifier: Apache-2.0
"""Sends to a FIFO queue and deletes, telling of each before and after: what test_fifo_power_loss.py records.

Run with the file and the `synchronous` level. As power.py, it checkpoints often and ends without closing.
"""

import os
import random
import sys

import sqsqlite
from sqsqlite.store import upkeep

SENDS = 200
GROUPS = 7


def say(*words: str) -> None:
    os.write(1, " ".join(words).encode() + b"\n")


def main(path: str, synchronous: str) -> None:
    upkeep.CHECKPOINT_EVERY_COMMITS = 40
    chance = random.Random(5)
    sqs = sqsqlite.connect(path, synchronous=synchronous)
    queue = sqs.create_queue("orders.fifo", fifo=True)
    say("ready")
    for number in range(SENDS):
        key = str(number)
        say("send-attempt", key)
        body = f"{key} {'x' * chance.choice((10, 300, 3_000))}"
        sent = queue.send(body, group_id=str(number % GROUPS), deduplication_id=key)
        say("send-ack", key, sent.message_id)
        if number % 10 == 0:
            # As if the answer had been lost.
            queue.send(body, group_id=str(number % GROUPS), deduplication_id=key)
        if number % 3 == 0:
            [message] = queue.receive()
            key = message.body.partition(" ")[0]
            if number % 6:
                message.change_visibility(0)
                continue
            say("delete-attempt", key)
            message.delete()
            say("delete-ack", key)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
