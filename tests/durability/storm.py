# SPDX-License-Identifier: Apache-2.0
"""A storm: four producers and four consumers on one file, killed by SIGKILL at random and started again.

Run as a program, with the file, the number of kills and a seed.
"""

import functools
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import sqsqlite
from sqsqlite.errors import InvalidParameterValue, MessageNotInflight
from tests.durability.crew import Crew, now, slowness, tell

QUEUE = "storm"
VISIBILITY_TIMEOUT = 2  # s
PRODUCERS = CONSUMERS = 4
# Producers pause while more messages wait than this, so that the rest can be received in seconds.
BACKLOG = 300
FOLLOW_UP = "-and-more"


def produce(path: str, seed: int) -> None:
    """Two threads, so that group commits are torn too."""
    queue = sqsqlite.connect(path).queue(QUEUE)
    threads = [threading.Thread(target=send_for_ever, args=(queue, f"{seed}.{place}")) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def send_for_ever(queue: Any, seed: str) -> None:
    """Send keys that begin with the seed. The queue needs `send` and `send_many` as sqsqlite.Queue has them."""
    chance = random.Random(seed)
    number = 0
    while True:
        keys = [f"{seed}-{number + place}" for place in range(chance.choice((1, 1, 1, 3, 10)))]
        number += len(keys)
        for key in keys:
            tell("send-attempt", key)
        if len(keys) == 1:
            queue.send(keys[0], delay=chance.choice((None, None, None, 1)))
        else:
            queue.send_many(keys)
        for key in keys:
            tell("send-ack", key)
        while number % 7 == 0 and len(queue) > BACKLOG:
            time.sleep(0.02)


def consume(path: str, seed: int) -> None:
    sqs = sqsqlite.connect(path)
    chance = random.Random(seed)
    receive_for_ever(sqs.queue(QUEUE), chance, functools.partial(delete, sqs, chance))


def receive_for_ever(queue: Any, chance: random.Random, delete_one: Callable[[Any], None]) -> None:
    """Delete most messages, give some back, and abandon the rest."""
    while True:
        called = now()
        messages = queue.receive(chance.randint(1, 10), wait=1)
        returned = now()
        for message in messages:
            tell("receive", message.body, called, returned, VISIBILITY_TIMEOUT * 1_000_000_000)
        for message in messages:
            fate = chance.random()
            if fate < 0.7:
                delete_one(message)
            elif fate < 0.8:
                _give_back(message)


def delete(sqs: sqsqlite.SQS, chance: random.Random, message: sqsqlite.Message) -> None:
    key = message.body
    tell("delete-attempt", key, now())
    try:
        if chance.random() < 0.3 and not key.endswith(FOLLOW_UP):
            # One message in, one message out, in one commit.
            tell("send-attempt", key + FOLLOW_UP)
            with sqs.transaction():
                message.delete()
                sqs.queue(QUEUE).send(key + FOLLOW_UP)
            tell("send-ack", key + FOLLOW_UP)
        else:
            message.delete()
    except InvalidParameterValue:
        return  # too late: its visibility timeout has ended
    tell("delete-ack", key, now())


def _give_back(message: Any) -> None:
    tell("return-attempt", message.body, now())
    try:
        message.change_visibility(0)
    except (InvalidParameterValue, MessageNotInflight):
        return  # too late, as above


def main(path: str, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    with Crew(path, chance) as crew:
        for work in [produce] * PRODUCERS + [consume] * CONSUMERS:
            crew.start(work)
        killed, slower = 0, slowness()
        while killed < kills:
            time.sleep(chance.uniform(0.005, 0.12) * slower)
            killed += crew.kill_some()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
