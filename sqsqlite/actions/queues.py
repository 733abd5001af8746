# SPDX-License-Identifier: Apache-2.0
"""Queues: create, delete, find, list, purge, attributes."""

from typing import TYPE_CHECKING, Any

from sqsqlite.actions import dead_letters, fifo_send, paging, queue_rows, tags
from sqsqlite.contract import queue_attributes as attributes
from sqsqlite.contract.names import NO_SUCH_QUEUE, queue_arn, queue_url
from sqsqlite.contract.responses import (
    CreateQueueResponse,
    Empty,
    GetQueueAttributesResponse,
    GetQueueUrlResponse,
    ListDeadLetterSourceQueuesResponse,
    ListQueuesResponse,
)
from sqsqlite.errors import (
    PurgeQueueInProgress,
    QueueDeletedRecently,
    QueueDoesNotExist,
    QueueNameExists,
)
from sqsqlite.sql import queues as sql
from sqsqlite.store.transaction import MINUTE_MS, Snapshot, Transaction, close_minute

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract import requests


def create_queue(tx: Transaction, request: "requests.CreateQueue", caller: "Caller") -> CreateQueueResponse:
    """Make a queue, or find the one of the same name whose attributes equal every one supplied.

    Raises:
        QueueNameExists: it exists with another value of a supplied attribute.
        QueueDeletedRecently: one of this name was deleted within 60 s.
        InvalidAttributeName, InvalidAttributeValue, InvalidParameterValue: section by section in the API reference.
    Source: API_CreateQueue.
    """
    supplied = request.attributes or {}
    fifo = request.fifo
    where = {"account_id": caller.account_id, "name": request.queue_name}
    exists = tx.execute(sql.SELECT_QUEUE, (caller.account_id, request.queue_name)).fetchone() is not None
    current = queue_rows.find_row(tx, request.queue_name, caller) if exists else None
    columns = attributes.parse_attributes(
        supplied, fifo=fifo, creating=True, limits=tx.settings.limits, current=current
    )
    if current is not None:
        different = attributes.different_attribute(current, columns)
        if different is not None:
            raise QueueNameExists(
                f"A queue already exists with the same name and a different value for attribute {different}"
            )
        return CreateQueueResponse(
            queue_url=queue_url(caller.base_url, caller.account_id, request.queue_name)
        )
    tombstone = tx.execute(sql.SELECT_TOMBSTONE, where).fetchone()
    wait_ms = tx.settings.limits.deleted_name_seconds * 1000
    if tombstone is not None and tombstone[0] > tx.now_ms - wait_ms:
        raise QueueDeletedRecently(
            "You must wait 60 seconds after deleting a queue before you can create another with the same name."
        )
    dead_letters.check(tx, columns, supplied, fifo=fifo, name=request.queue_name, caller=caller)
    tags.check_count(len(request.tags or {}), tx.settings.limits, request.queue_name)
    defaults = attributes.FIFO_DEFAULTS if fifo else attributes.DEFAULTS
    row = {**defaults, **columns, **where, "now_ms": tx.now_ms}
    queue_id = tx.execute(sql.INSERT_QUEUE, row).lastrowid
    _new_epoch(tx, queue_id, purged_at=None)
    tags.write_tags(tx, queue_id, request.tags or {})
    return CreateQueueResponse(queue_url=queue_url(caller.base_url, caller.account_id, request.queue_name))


def _new_epoch(tx: Transaction, queue_id: int, purged_at: int | None) -> int:
    epoch_id: int = tx.execute(sql.INSERT_EPOCH, {"queue_id": queue_id, "now_ms": tx.now_ms}).lastrowid
    tx.execute(sql.SET_QUEUE_EPOCH, {"id": queue_id, "epoch_id": epoch_id, "purged_at": purged_at})
    minute_at = tx.now_ms - tx.now_ms % MINUTE_MS
    tx.execute(sql.INSERT_COUNTS, {"epoch_id": epoch_id, "minute_at": minute_at})
    return epoch_id


def _discard_epoch(tx: Transaction, epoch_id: int) -> None:
    close_minute(tx, epoch_id, tx.now_ms - tx.now_ms % MINUTE_MS)
    tx.execute(sql.DISCARD_EPOCH, {"epoch_id": epoch_id, "now_ms": tx.now_ms})
    # What operations of the same commit counted for the epoch has no row to go to any more.
    tx.deltas.pop(epoch_id, None)
    tx.sweep = True


def delete_queue(tx: Transaction, request: "requests.DeleteQueue", caller: "Caller") -> Empty:
    """Delete the queue with all its messages; the name can be used again after 60 s.

    Raises:
        QueueDoesNotExist: no queue has this name or URL.
    Source: API_DeleteQueue.
    """
    queue = queue_rows.find(tx, request.queue_url, caller)
    _discard_epoch(tx, queue.epoch_id)
    tx.execute(sql.DELETE_TAGS, {"queue_id": queue.id})
    tx.execute(sql.DELETE_QUEUE, {"id": queue.id})
    tombstone = {"account_id": queue.account_id, "name": queue.name, "now_ms": tx.now_ms}
    tx.execute(sql.INSERT_TOMBSTONE, tombstone)
    tx.wake(queue.id, 0)
    return Empty()


def purge_queue(tx: Transaction, request: "requests.PurgeQueue", caller: "Caller") -> Empty:
    """Remove every message, in flight and delayed ones too: the queue gets a new epoch, whatever the backlog.

    Raises:
        PurgeQueueInProgress: purged within the last 60 s.
    Source: API_PurgeQueue.
    """
    row = queue_rows.find_row(tx, request.queue_url, caller)
    interval_ms = tx.settings.limits.purge_interval_seconds * 1000
    if row["purged_at"] is not None and row["purged_at"] > tx.now_ms - interval_ms:
        raise PurgeQueueInProgress(
            f"Only one PurgeQueue operation on {row['name']} is allowed every 60 seconds."
        )
    _discard_epoch(tx, row["epoch_id"])
    _new_epoch(tx, row["id"], purged_at=tx.now_ms)
    return Empty()


def get_queue_url(
    snapshot: Snapshot, request: "requests.GetQueueUrl", caller: "Caller"
) -> GetQueueUrlResponse:
    """The queue's URL. Source: API_GetQueueUrl."""
    account_id = request.queue_owner_aws_account_id or caller.account_id
    if snapshot.execute(sql.SELECT_QUEUE, (account_id, request.queue_name)).fetchone() is None:
        raise QueueDoesNotExist(NO_SUCH_QUEUE)
    return GetQueueUrlResponse(queue_url=queue_url(caller.base_url, account_id, request.queue_name))


def list_queues(snapshot: Snapshot, request: "requests.ListQueues", caller: "Caller") -> ListQueuesResponse:
    """The account's queues by name, a page at a time when MaxResults is given. Source: API_ListQueues."""
    prefix = request.queue_name_prefix or ""
    names, token = paging.page(
        snapshot,
        sql.LIST_QUEUES,
        {"account_id": caller.account_id, "prefix": prefix, "upper_name": prefix + "\U0010ffff"},
        request.max_results,
        request.next_token,
        snapshot.settings.limits,
    )
    urls = [queue_url(caller.base_url, caller.account_id, name) for name in names]
    return ListQueuesResponse(queue_urls=urls, next_token=token)


def list_dead_letter_source_queues(
    snapshot: Snapshot, request: "requests.ListDeadLetterSourceQueues", caller: "Caller"
) -> ListDeadLetterSourceQueuesResponse:
    """The queues whose RedrivePolicy names this one. Source: API_ListDeadLetterSourceQueues."""
    queue = queue_rows.find(snapshot, request.queue_url, caller)
    names, token = paging.page(
        snapshot,
        sql.LIST_DEAD_LETTER_SOURCE_QUEUES,
        {
            "account_id": queue.account_id,
            "target_arn": queue_arn(snapshot.settings.region, queue.account_id, queue.name),
        },
        request.max_results,
        request.next_token,
        snapshot.settings.limits,
    )
    urls = [queue_url(caller.base_url, queue.account_id, name) for name in names]
    return ListDeadLetterSourceQueuesResponse(queue_urls=urls, next_token=token)


def get_queue_attributes(
    snapshot: Snapshot, request: "requests.GetQueueAttributes", caller: "Caller"
) -> GetQueueAttributesResponse:
    """Configuration and exact counts, by name or `All`.

    Raises:
        InvalidAttributeName: a name SQS does not know, or a FIFO one on a standard queue.
    Source: API_GetQueueAttributes.
    """
    row = queue_rows.find_row(snapshot, request.queue_url, caller)
    names = request.attribute_names or []
    arn = queue_arn(snapshot.settings.region, row["account_id"], row["name"])
    wants_counts = any(name == "All" or name.startswith("Approximate") for name in names)
    counts = exact_counts(snapshot, row) if wants_counts else (0, 0, 0)
    return GetQueueAttributesResponse(attributes=attributes.render_attributes(row, names, counts, arn))


def exact_counts(snapshot: Snapshot, row: dict[str, Any]) -> tuple[int, int, int]:
    """(visible, in flight, delayed) at this instant.

    The kept counts, corrected by what has become due and not been promoted, and by what has expired and not been
    swept: both are usually nothing.
    """
    epoch_id = row["epoch_id"]
    messages, in_flight, delayed, _ = snapshot.execute(sql.SELECT_COUNTS, {"epoch_id": epoch_id}).fetchone()
    due = snapshot.execute(sql.COUNT_DUE, {"epoch_id": epoch_id, "now_ms": snapshot.now_ms}).fetchone()
    in_flight -= due[0]
    delayed -= due[1]
    expired_at = snapshot.expired_at(row["message_retention_period_seconds"])
    bounds = {"epoch_id": epoch_id, "expired_at": expired_at, "now_ms": snapshot.now_ms}
    if snapshot.execute(sql.FIND_EXPIRED, bounds).fetchone() is not None:
        gone, gone_in_flight, gone_delayed = snapshot.execute(sql.COUNT_EXPIRED, bounds).fetchone()
        messages -= gone
        in_flight -= gone_in_flight
        delayed -= gone_delayed
    return messages - in_flight - delayed, in_flight, delayed


def set_queue_attributes(tx: Transaction, request: "requests.SetQueueAttributes", caller: "Caller") -> Empty:
    """Set all the attributes or, when one is refused, none. They hold from the next request on.

    Raises:
        InvalidAttributeName, InvalidAttributeValue, InvalidParameterValue: as API_SetQueueAttributes has them.
    """
    row = queue_rows.find_row(tx, request.queue_url, caller)
    fifo = bool(row["fifo"])
    columns = attributes.parse_attributes(
        request.attributes, fifo=fifo, creating=False, limits=tx.settings.limits, current=row
    )
    dead_letters.check(tx, columns, request.attributes, fifo=fifo, name=row["name"], caller=caller)
    tx.execute(sql.UPDATE_QUEUE_ATTRIBUTES, {**row, **columns, "now_ms": tx.now_ms})
    delay_seconds = columns.get("delay_seconds")
    if fifo and isinstance(delay_seconds, int) and delay_seconds != row["delay_seconds"]:
        fifo_send.delay_again(tx, row["id"], row["epoch_id"], row["delay_seconds"], delay_seconds)
    # A shorter retention, a removed dead-letter queue: who sleeps until a message's instant looks again.
    tx.wake(row["id"], 0)
    return Empty()
