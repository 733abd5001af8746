# SPDX-License-Identifier: Apache-2.0
"""The contestants: our APIs, the two baselines, and the other queues on SQLite."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol


class Session(Protocol):
    """An open queue, as every contestant offers it. Ten messages are one call if the contestant has such a call."""

    def close(self) -> None: ...

    def send(self, body: str) -> None: ...

    def send_ten(self, bodies: list[str]) -> None: ...

    def receive_and_delete(self) -> str: ...

    def receive_and_delete_ten(self) -> list[str]: ...


@dataclass(frozen=True)
class Contestant:
    """One contestant.

    Attributes:
        module, kind: the place of its class, imported only in the process that runs it.
        needs: the package that it requires; without it, it is left out.
        shared: one session serves all threads of a process; else each thread opens its own.
        levels: the values of `synchronous` it can run at.
        leaves_out: what a user of SQS would miss.
    """

    name: str
    module: str
    kind: str
    needs: str
    shared: bool = False
    levels: tuple[str, ...] = ("NORMAL", "FULL")
    leaves_out: str = ""

    def is_here(self) -> bool:
        return find_spec(self.needs) is not None

    def open(self, path: Path, synchronous: str) -> Session:
        make: Callable[[Path, str], Any] = getattr(importlib.import_module(self.module), self.kind)
        session: Session = make(path, synchronous)
        return session


OURS = (
    Contestant("client", "peers.doors", "Client", "sqsqlite", shared=True),
    Contestant("Queue", "peers.doors", "Queue", "sqsqlite", shared=True),
    Contestant("boto3", "peers.doors", "Boto3", "boto3", shared=True),
)
UNGROUPED = Contestant("client without group commit", "peers.doors", "Ungrouped", "sqsqlite")
FIFO = Contestant("FIFO", "peers.doors", "Fifo", "sqsqlite", shared=True)
FIFO_SINGLES = Contestant("FIFO, a group each", "peers.doors", "FifoSingles", "sqsqlite", shared=True)
BASELINES = (
    Contestant("bare", "peers.baseline", "Bare", "sqsqlite", leaves_out="all but a lease and its token"),
    Contestant(
        "full", "peers.baseline", "Full", "sqsqlite", leaves_out="checks, handles, answers, ended timeouts"
    ),
)
PEERS = (
    Contestant(
        "litequeue", "peers.queues", "LiteQueue", "litequeue",
        leaves_out="lease that ends by itself, token, receive count, delay; a finished message stays until pruned",
    ),
    Contestant(
        "persist-queue", "peers.queues", "PersistQueue", "persistqueue",
        leaves_out="several processes, lease that ends by itself, token, receive count, delay, batches; "
        "a finished message stays until cleared",
    ),
    Contestant(
        "huey", "peers.queues", "Huey", "huey",
        leaves_out="lease: a message is gone once it is received; token, receive count, batches",
    ),
    Contestant(
        "honker", "peers.queues", "Honker", "honker", levels=("NORMAL",),
        leaves_out="FULL, token of each receive, digests, counts",
    ),
    Contestant(
        "kombu", "peers.queues", "Kombu", "kombu",
        leaves_out="lease in the file: only the connection that received it can give a message back; token, receive "
        "count, delay, batches; a finished message stays until purged",
    ),
)  # fmt: skip
BY_NAME = {
    contestant.name: contestant for contestant in (*OURS, UNGROUPED, FIFO, FIFO_SINGLES, *BASELINES, *PEERS)
}
