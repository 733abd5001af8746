# SPDX-License-Identifier: Apache-2.0
"""A storm on a file that `sqsqlite serve` and Python programs use at once: server and programs are killed by SIGKILL.

Two clients of the server and two programs send, receive and delete on one queue. Run as a program, with the file, the
deaths of the server, those of programs, and a seed.
"""

import functools
import os
import random
import socket
import sys
import threading
import time

import sqsqlite
from sqsqlite.errors import InvalidParameterValue
from tests.durability.crew import Crew, now, tell
from tests.durability.endpoint import HOST, RemoteMessage, RemoteQueue, Unanswered
from tests.durability.storm import QUEUE, delete, receive_for_ever, send_for_ever

CLIENTS = PROGRAMS = 2
SOCKET, EMBEDDED = "socket", "embedded"  # the ways to the queue
SERVER, PROGRAM = "server", "program"  # which processes die
CALM = 0.5  # s, before the first death and after the last: time enough for messages to pass both ways
COMMAND = "import sys; from sqsqlite.cli import main; main(sys.argv[1:], 'sqsqlite')"
# Below the ports that systems give to clients: a client that tries to reach a dead server could be given this very
# port, and block the next server.
PORTS = range(20_000, 32_000)


def serve(path: str, _start: int, *, port: int) -> None:
    """Replace this process by the command."""
    command = [sys.executable, "-c", COMMAND, "serve", "--quiet", "--db", path, "--port", str(port)]
    os.execv(sys.executable, command)


def program(path: str, start: int) -> None:
    """One thread sends and another receives, so that group commits are torn too."""
    sqs = sqsqlite.connect(path)
    queue = sqs.queue(QUEUE)
    threading.Thread(target=_send_embedded, args=(queue, f"program{start}")).start()
    tell("door", EMBEDDED)
    chance = random.Random(start)
    receive_for_ever(queue, chance, functools.partial(delete, sqs, chance))


def _send_embedded(queue: sqsqlite.Queue, seed: str) -> None:
    tell("door", EMBEDDED)
    send_for_ever(queue, seed)


def client(_path: str, start: int, *, port: int) -> None:
    """The same by two connections. The client outlives the server, and continues with the next one."""
    threading.Thread(target=_send_by_socket, args=(port, f"client{start}")).start()
    tell("door", SOCKET)
    chance = random.Random(start)
    queue = RemoteQueue(port, QUEUE)
    while True:
        queue.until_served()
        try:
            receive_for_ever(queue, chance, functools.partial(_delete_by_socket, queue, chance))
        except Unanswered:
            tell("unanswered", SOCKET)


def _send_by_socket(port: int, seed: str) -> None:
    """A send without an answer is not repeated, because it may have succeeded."""
    tell("door", SOCKET)
    queue = RemoteQueue(port, QUEUE)
    servers = 0
    while True:
        queue.until_served()
        servers += 1
        try:
            send_for_ever(queue, f"{seed}.{servers}")
        except Unanswered:
            tell("unanswered", SOCKET)


def _delete_by_socket(queue: RemoteQueue, chance: random.Random, message: RemoteMessage) -> None:
    """Sometimes ask the next server again, as SDKs do: a second delete of a deleted message succeeds."""
    tell("delete-attempt", message.body, now())
    try:
        message.delete()
    except InvalidParameterValue:
        return  # too late: its visibility timeout has ended
    except Unanswered:
        if chance.random() < 0.5:
            raise
        queue.until_served()
        _delete_by_socket(queue, chance, message)
        return
    tell("delete-ack", message.body, now())


def _free_port(chance: random.Random) -> int:
    while True:
        port = chance.choice(PORTS)
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)):
                return port


def _is_answered(served: RemoteQueue, key: str) -> bool:
    """Send one more message. Returns whether it was acknowledged."""
    tell("send-attempt", key)
    try:
        served.send(key)
    except Unanswered:
        return False
    return True


def main(path: str, server_deaths: int, program_deaths: int, seed: int) -> None:
    chance = random.Random(seed)
    port = _free_port(chance)
    served = RemoteQueue(port, QUEUE)
    tell("door", SOCKET)
    with Crew(path, chance) as servers, Crew(path, chance) as programs, Crew(path, chance) as clients:
        servers.start(functools.partial(serve, port=port))
        for _ in range(CLIENTS):
            clients.start(functools.partial(client, port=port))
        for _ in range(PROGRAMS):
            programs.start(program)
        deaths = [(SERVER, servers)] * server_deaths + [(PROGRAM, programs)] * program_deaths
        chance.shuffle(deaths)
        served.until_served()
        time.sleep(CALM)
        for number, (name, crew) in enumerate(deaths):
            # Sometimes a server dies while it starts, or right after another.
            if chance.random() < 0.9:
                served.until_served()
                time.sleep(chance.uniform(0, 0.4))
            # Half of the servers die as soon as they have answered: an answer ahead of its commit would be seen.
            is_answered = name == SERVER and chance.random() < 0.5 and _is_answered(served, f"last{number}")
            for _ in range(crew.kill_some()):
                tell("death", name)
            if is_answered:
                tell("send-ack", f"last{number}")
        served.until_served()
        time.sleep(CALM)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
