# SPDX-License-Identifier: Apache-2.0
"""Sends and deletes, telling of each before and after: the program that test_power_loss.py records.

Run with the file and the `synchronous` level. It checkpoints more often than it would, so that a short recording holds
several, and ends without closing, as a loss of power does.
"""

import os
import random
import sys

import sqsqlite
from sqsqlite.store import upkeep

SENDS = 250


def tell(*words: str) -> None:
    os.write(1, " ".join(words).encode() + b"\n")


def main(path: str, synchronous: str) -> None:
    upkeep.CHECKPOINT_EVERY_COMMITS = 40
    chance = random.Random(4)
    sqs = sqsqlite.connect(path, synchronous=synchronous)
    queue = sqs.create_queue("orders")
    tell("ready")
    for number in range(SENDS):
        key = f"{number}-{'x' * chance.choice((10, 300, 5_000))}"
        tell("send-attempt", key)
        queue.send(key)
        tell("send-ack", key)
        if number % 3 == 0:
            [message] = queue.receive()
            tell("delete-attempt", message.body)
            message.delete()
            tell("delete-ack", message.body)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
