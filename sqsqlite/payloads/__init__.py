# SPDX-License-Identifier: Apache-2.0
"""Big bodies in a folder or in S3, and pointers in the queue, in the format of Amazon's extended clients."""

from typing import Any, overload

from sqsqlite.api.queue import Queue
from sqsqlite.payloads.client import ExtendedClient
from sqsqlite.payloads.errors import PayloadError, PayloadMissing, PayloadStoreDown, PointerRefused
from sqsqlite.payloads.orphans import Swept, sweep
from sqsqlite.payloads.pointers import Pointer
from sqsqlite.payloads.queue import ExtendedQueue
from sqsqlite.payloads.store import Counts, PayloadStore

__all__ = [
    "Counts",
    "ExtendedClient",
    "ExtendedQueue",
    "PayloadError",
    "PayloadMissing",
    "PayloadStore",
    "PayloadStoreDown",
    "Pointer",
    "PointerRefused",
    "Swept",
    "extend",
    "sweep",
]


@overload
def extend(target: Queue, store: PayloadStore) -> ExtendedQueue: ...


@overload
def extend(target: Any, store: PayloadStore) -> ExtendedClient: ...


def extend(target: Any, store: PayloadStore) -> Any:
    """The same queue or client, which sends big bodies through a store.

    Args:
        target: a queue of an open file (`sqs.queue(...)`), or a client with boto3's methods: `sqsqlite.client`,
            `sqsqlite.boto.client`, boto3's own for an endpoint or for Amazon SQS. It stays as it is.

    Returns:
        An `ExtendedQueue` for a queue, else an `ExtendedClient`.

    Raises:
        TypeError: the target is neither, is extended already, or is a client of aiobotocore, whose methods are awaited.
    """
    if isinstance(target, (ExtendedQueue, ExtendedClient)):
        raise TypeError(f"{target!r} has a payload store already")
    if isinstance(target, Queue):
        return ExtendedQueue(target, store)
    if any(kind.__module__.startswith("aiobotocore") for kind in type(target).__mro__):
        raise TypeError(
            f"{target!r} is asynchronous: only clients whose methods return the answer can be extended"
        )
    if not hasattr(target, "receive_message"):
        raise TypeError(f"{target!r}: a Queue, or a client with boto3's methods, is allowed")
    return ExtendedClient(target, store)
