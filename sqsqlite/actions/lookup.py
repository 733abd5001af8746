"""Finding the queue that a request names: by name, URL or ARN, in each operation's own transaction."""

from typing import TYPE_CHECKING, Any

from sqsqlite.actions.rows import QUEUE_COLUMNS, Queue, Receivable
from sqsqlite.contract.names import NO_SUCH_QUEUE, queue_name
from sqsqlite.errors import QueueDoesNotExist
from sqsqlite.sql import queues as sql

if TYPE_CHECKING:
    from sqsqlite.actions.caller import Caller


def place(queue_url: str, caller: "Caller") -> tuple[str, str]:
    """(account, name) of a QueueUrl, as the statements' parameters."""
    account_id, name = queue_name(queue_url)
    return account_id or caller.account_id, name


def find(execute: Any, queue_url: str, caller: "Caller") -> Queue:
    """The queue's row.

    Args:
        execute: of the connection or transaction to read by.

    Raises:
        QueueDoesNotExist: no queue of this name in the account.
    """
    where = place(queue_url, caller)
    row = execute(sql.SELECT_QUEUE, where).fetchone()
    if row is None:
        raise QueueDoesNotExist(NO_SUCH_QUEUE)
    return Queue(*row + where)


def find_to_receive(execute: Any, queue_url: str, caller: "Caller") -> tuple[Queue, Receivable]:
    """The queue's row and what else a receive needs, by one statement. Raises as `find`."""
    where = place(queue_url, caller)
    row = execute(sql.SELECT_QUEUE_TO_RECEIVE, where).fetchone()
    if row is None:
        raise QueueDoesNotExist(NO_SUCH_QUEUE)
    return Queue(*row[:QUEUE_COLUMNS] + where), Receivable(*row[QUEUE_COLUMNS:])


def find_row(execute: Any, queue_url: str, caller: "Caller") -> dict[str, Any]:
    """The whole row, by column name. Raises as `find`."""
    cursor = execute(sql.SELECT_QUEUE_ATTRIBUTES, place(queue_url, caller))
    row = cursor.fetchone()
    if row is None:
        raise QueueDoesNotExist(NO_SUCH_QUEUE)
    return dict(zip((column[0] for column in cursor.description), row, strict=True))
