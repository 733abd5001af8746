"""The queue that an ARN names, in the transaction at hand."""

from collections.abc import Callable
from typing import Any

from sqsqlite import statements_queues as sql
from sqsqlite.engine.rows import Queue
from sqsqlite.names import queue_name


def find_queue(execute: Callable[..., Any], arn: str) -> Queue | None:
    """The queue of that account and name: also one deleted and made again."""
    where = queue_name(arn)
    row = execute(sql.SELECT_QUEUE, where).fetchone()
    return None if row is None else Queue(*row + where)
