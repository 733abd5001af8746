"""The queue that an ARN names, in the transaction at hand."""

from collections.abc import Callable
from typing import Any

from sqsqlite.actions.rows import Queue
from sqsqlite.contract.names import queue_name
from sqsqlite.sql import queues as sql


def find_queue(execute: Callable[..., Any], arn: str) -> Queue | None:
    """The queue of that account and name: also one deleted and made again."""
    where = queue_name(arn)
    row = execute(sql.SELECT_QUEUE, where).fetchone()
    return None if row is None else Queue(*row + where)
