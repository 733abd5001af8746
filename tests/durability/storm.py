"""A storm: four producers and four consumers on one file, killed by SIGKILL at random and started again.

Run as a program, with the file, the number of kills and a seed.
"""

import random
import sys
import threading
import time

import sqsqlite
from sqsqlite.errors import InvalidParameterValue, MessageNotInflight
from tests.durability.crew import Crew, now, tell

VISIBILITY_TIMEOUT = 2  # s
PRODUCERS = CONSUMERS = 4
# Producers pause while more wait than this: what is left in the end is to be received in seconds.
BACKLOG = 300
FOLLOW_UP = "-and-more"


def produce(path: str, seed: int) -> None:
    """Two threads, so that group commits are torn, too."""
    queue = sqsqlite.connect(path).queue("storm")
    threads = [threading.Thread(target=_send_for_ever, args=(queue, seed * 2 + place)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _send_for_ever(queue: sqsqlite.Queue, seed: int) -> None:
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
    chance = random.Random(seed)
    sqs = sqsqlite.connect(path)
    queue = sqs.queue("storm")
    while True:
        called = now()
        messages = queue.receive(chance.randint(1, 10), wait=1)
        returned = now()
        for message in messages:
            tell("receive", message.body, called, returned, VISIBILITY_TIMEOUT * 1_000_000_000)
        for message in messages:
            fate = chance.random()
            if fate < 0.7:
                _delete(sqs, message, in_transaction=fate < 0.2)
            elif fate < 0.8:
                _give_back(message)


def _delete(sqs: sqsqlite.SQS, message: sqsqlite.Message, *, in_transaction: bool) -> None:
    key = message.body
    tell("delete-attempt", key, now())
    try:
        if in_transaction and not key.endswith(FOLLOW_UP):
            # One message in, one out, in one commit.
            tell("send-attempt", key + FOLLOW_UP)
            with sqs.transaction():
                message.delete()
                sqs.queue("storm").send(key + FOLLOW_UP)
            tell("send-ack", key + FOLLOW_UP)
        else:
            message.delete()
    except InvalidParameterValue:
        return  # too late: its visibility timeout has ended
    tell("delete-ack", key, now())


def _give_back(message: sqsqlite.Message) -> None:
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
        killed = 0
        while killed < kills:
            time.sleep(chance.uniform(0.005, 0.12))
            killed += crew.kill_some()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
