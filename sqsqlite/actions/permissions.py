"""Permissions: statements of the queue's Policy that a label names."""

from typing import TYPE_CHECKING, Any

from sqsqlite.actions import lookup
from sqsqlite.contract.names import queue_arn
from sqsqlite.contract.policy_permissions import with_permission, without_permission
from sqsqlite.contract.responses import Empty
from sqsqlite.sql import queues as sql

if TYPE_CHECKING:
    from sqsqlite.actions.caller import Caller
    from sqsqlite.contract import requests
    from sqsqlite.store.transaction import Transaction


def add_permission(tx: "Transaction", request: "requests.AddPermission", caller: "Caller") -> Empty:
    """Append a statement that lets other accounts do what the request names.

    Raises:
        InvalidParameterValue: the label exists.
        OverLimit: one more statement is beyond a quota of policies.
        InvalidAttributeValue: the queue's Policy can't be read.
    Source: API_AddPermission.
    """
    row = lookup.find_row(tx.execute, request.queue_url, caller)
    arn = queue_arn(tx.settings.region, row["account_id"], row["name"])
    document = with_permission(
        row["policy"], request.label, request.aws_account_ids, request.actions, arn, tx.settings.limits
    )
    return _write(tx, row, document)


def remove_permission(tx: "Transaction", request: "requests.RemovePermission", caller: "Caller") -> Empty:
    """Take the statement of this label away, and with the last one the Policy.

    Raises:
        InvalidParameterValue: no statement has the label.
        InvalidAttributeValue: the queue's Policy can't be read.
    Source: API_RemovePermission.
    """
    row = lookup.find_row(tx.execute, request.queue_url, caller)
    return _write(tx, row, without_permission(row["policy"], request.label))


def _write(tx: "Transaction", row: dict[str, Any], document: str | None) -> Empty:
    tx.execute(sql.UPDATE_QUEUE_ATTRIBUTES, {**row, "policy": document, "now_ms": tx.now_ms})
    return Empty()
