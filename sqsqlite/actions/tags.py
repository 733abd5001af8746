# SPDX-License-Identifier: Apache-2.0
"""Tags of queues.

Permissions: statements of the queue's Policy that a label names.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import queue_rows
from sqsqlite.contract.limits import Limits
from sqsqlite.contract.names import queue_arn
from sqsqlite.contract.policy_permissions import with_permission, without_permission
from sqsqlite.contract.responses import Empty, ListQueueTagsResponse
from sqsqlite.errors import InvalidParameterValue
from sqsqlite.sql import queues as sql
from sqsqlite.store.transaction import Snapshot, Transaction

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract import requests


def check_count(count: int, limits: Limits, name: str) -> None:
    """Refuse more tags than a queue may have; what a tag may look like its request has checked.

    Raises:
        InvalidParameterValue: more than 50.
    Source: developer guide, "Amazon SQS cost allocation tags".
    """
    if count > limits.tag_count:
        raise InvalidParameterValue(f"Too many tags added for queue {name}.")


def write_tags(tx: Transaction, queue_id: int, tags: Mapping[str, str]) -> None:
    """Set the tags; a key that is there already gets the new value."""
    for key, value in tags.items():
        tx.execute(sql.SET_TAG, {"queue_id": queue_id, "key": key, "value": value})


def tag_queue(tx: Transaction, request: "requests.TagQueue", caller: "Caller") -> Empty:
    """Add tags or give them other values. Source: API_TagQueue."""
    queue = queue_rows.find(tx, request.queue_url, caller)
    present = {row[0] for row in tx.execute(sql.SELECT_TAGS, {"queue_id": queue.id})}
    check_count(len(present | set(request.tags)), tx.settings.limits, queue.name)
    write_tags(tx, queue.id, request.tags)
    return Empty()


def untag_queue(tx: Transaction, request: "requests.UntagQueue", caller: "Caller") -> Empty:
    """Remove tags; keys that are not there are ignored. Source: API_UntagQueue."""
    queue = queue_rows.find(tx, request.queue_url, caller)
    for key in request.tag_keys:
        tx.execute(sql.DELETE_TAG, {"queue_id": queue.id, "key": key})
    return Empty()


def list_queue_tags(
    snapshot: Snapshot, request: "requests.ListQueueTags", caller: "Caller"
) -> ListQueueTagsResponse:
    """All tags of the queue. Source: API_ListQueueTags."""
    queue = queue_rows.find(snapshot, request.queue_url, caller)
    rows = snapshot.execute(sql.SELECT_TAGS, {"queue_id": queue.id}).fetchall()
    return ListQueueTagsResponse(tags=dict(rows) or None)


def add_permission(tx: Transaction, request: "requests.AddPermission", caller: "Caller") -> Empty:
    """Append a statement that lets other accounts do what the request names.

    Raises:
        InvalidParameterValue: the label exists.
        OverLimit: one more statement is beyond a quota of policies.
        InvalidAttributeValue: the queue's Policy can't be read.
    Source: API_AddPermission.
    """
    row = queue_rows.find_row(tx, request.queue_url, caller)
    arn = queue_arn(tx.settings.region, row["account_id"], row["name"])
    document = with_permission(
        row["policy"], request.label, request.aws_account_ids, request.actions, arn, tx.settings.limits
    )
    return _write(tx, row, document)


def remove_permission(tx: Transaction, request: "requests.RemovePermission", caller: "Caller") -> Empty:
    """Take the statement of this label away, and with the last one the Policy.

    Raises:
        InvalidParameterValue: no statement has the label.
        InvalidAttributeValue: the queue's Policy can't be read.
    Source: API_RemovePermission.
    """
    row = queue_rows.find_row(tx, request.queue_url, caller)
    return _write(tx, row, without_permission(row["policy"], request.label))


def _write(tx: Transaction, row: dict[str, Any], document: str | None) -> Empty:
    tx.execute(sql.UPDATE_QUEUE_ATTRIBUTES, {**row, "policy": document, "now_ms": tx.now_ms})
    return Empty()
