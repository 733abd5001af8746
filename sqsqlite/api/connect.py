# SPDX-License-Identifier: Apache-2.0
"""The Python API: `connect()`, and the `SQS` it returns, which leads to `Queue` and `Message`."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from sqsqlite.actions.opening import OpenOptions, check_names, open_store
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.api.file import OpenFile
from sqsqlite.contract.names import queue_name
from sqsqlite.errors import (
    InvalidAttributeName,
    InvalidParameterValue,
    ParamValidationError,
    QueueDoesNotExist,
    SQSError,
    StoreError,
)
from sqsqlite.store.used_up import raise_used_up

# Loaded by `connect`, or by the method that needs it after `SQS.open`.
if TYPE_CHECKING:
    from sqlalchemy import Engine

    from sqsqlite.api.client import Client
    from sqsqlite.api.message import SentMessage
    from sqsqlite.api.queue import Queue
    from sqsqlite.operators.dead_letters import DeadLetterCount
    from sqsqlite.operators.metrics import QueueMetrics
    from sqsqlite.operators.statistics import QueueStatistics


def connect(path: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> "SQS":
    """Open a file of queues, or create it. Any number of threads and processes may use it at once.

    Args:
        path: the file. Next to it are `-wal` and `-shm` (SQLite's) and a folder `-sqs` (locks and wake-ups).
        synchronous: what survives when a call has returned. "FULL" (the default): everything, power loss included.
            "NORMAL": everything if the process is killed; the last commits may be lost at power loss; much faster one
            by one. "OFF": for tests: nothing is synced, and a power loss can destroy the file. "EXTRA": the same as
            "FULL", since the file is in WAL mode.
        compat: "docs" (the default): an expired or replaced receipt handle is an error. "aws": as softly as Amazon's
            standard queues treat it today.
        limits: "sqs" (the default): Amazon's. "native": without the limits that exist for Amazon's sake (delay over 15
            minutes, body size, batches over 10).
        busy_timeout: 0 to 86,400 s (a day) to wait for other writers before `errors.Busy`. Default: 30.
        adopt: put the queue's tables into a SQLite file that holds the application's own; those stay as they are.
            Default: False, such a file is refused.
        clock: for tests: an object with `now_ms()` and `wait(event, until_ms)`, such as `sqsqlite.ManualClock`.
        region: what ARNs say: lower-case letters, digits and hyphens. Default: "us-east-1".
        cooldowns: False, for tests: a queue may be purged again, and its name used again after a deletion, without
            SQS's 60 s between.

    Raises:
        StoreError: its subclass says what is wrong with the file.
        TypeError: an option does not exist.
        ValueError: an option has a value that is not allowed.
    """
    check_names("connect", options)
    # A program that gives up its rights or its descriptors after this imports nothing later.
    try:
        import socket  # noqa: F401

        import sqsqlite.api.queue
        import sqsqlite.operators.statistics  # noqa: F401
    except OSError as error:
        raise_used_up(error, Path(path))
        raise
    return SQS.open(path, **options)


class SQS(OpenFile):
    """An open file of queues. A context manager; `close()` ends its waits and closes its connections."""

    @classmethod
    def open(cls, path: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> Self:
        """Open a file as `connect` does, and load the code of each call when it is first used.

        For programs that make one or two calls and end, such as commands.

        Raises:
            StoreError, TypeError, ValueError: as `connect`.
        """
        check_names("open", options)
        return cls(open_store(path, **options))

    def send(
        self,
        queue: str,
        body: str,
        *,
        delay: int | None = None,
        attributes: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        deduplication_id: str | None = None,
    ) -> "SentMessage":
        """Send one message to a queue by its name, URL or ARN: `queue(queue).send(body, ...)` with less code to load.

        Args: as `Queue.send`.

        Raises:
            QueueDoesNotExist: no queue has this name. A note on the error names queue and file.
            InvalidMessageContents, InvalidParameterValue, MissingParameter: not as SQS allows.
            DiskFull, Busy, CommitInDoubt: see `errors`.
        """
        from sqsqlite.actions.send import send_message
        from sqsqlite.api.message import SentMessage, to_attributes
        from sqsqlite.contract import requests, shapes

        if "/" in queue or ":" in queue:
            queue = self.queue(queue).name
        if self._store.observers:
            return self.queue(queue).send(
                body,
                delay=delay,
                attributes=attributes,
                group_id=group_id,
                deduplication_id=deduplication_id,
            )
        given = {
            "QueueUrl": queue,
            "MessageBody": body,
            "DelaySeconds": delay,
            "MessageAttributes": to_attributes(attributes),
            "MessageGroupId": group_id,
            "MessageDeduplicationId": deduplication_id,
        }
        parameters = {name: value for name, value in given.items() if value is not None}
        try:
            request = shapes.parse(requests.SendMessage, parameters, self._store.settings.limits)
            sent = self._store.write(send_message, request, LOCAL)
        except (SQSError, ParamValidationError):
            self.queue(queue)  # a missing queue is reported first
            raise
        return SentMessage(sent.message_id, sent.md5_of_message_body, sent.sequence_number)

    def create_queue(
        self,
        name: str,
        *,
        fifo: bool = False,
        delay_seconds: int | None = None,
        maximum_message_size: int | None = None,
        message_retention_period: int | None = None,
        receive_message_wait_time_seconds: int | None = None,
        visibility_timeout: int | None = None,
        redrive_policy: Mapping[str, Any] | str | None = None,
        redrive_allow_policy: Mapping[str, Any] | str | None = None,
        policy: Mapping[str, Any] | str | None = None,
        kms_master_key_id: str | None = None,
        kms_data_key_reuse_period_seconds: int | None = None,
        sqs_managed_sse_enabled: bool | None = None,
        content_based_deduplication: bool | None = None,
        deduplication_scope: str | None = None,
        fifo_throughput_limit: str | None = None,
        dead_letter_queue: "Queue | str | None" = None,
        max_receive_count: int | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> "Queue":
        """Create a queue, or find the one of this name: the attributes given must then equal its own.

        Args:
            name: 1 to 80 letters, digits, `-` and `_`; a FIFO queue's ends in `.fifo`.
            fifo: whether it delivers each message group in the order of sending, and each message sent once.
            delay_seconds: 0 to 900, before a message becomes visible.
            maximum_message_size: 1,024 to 1,048,576 bytes.
            message_retention_period: 60 to 1,209,600 s (14 days); Default: 4 days.
            receive_message_wait_time_seconds: 0 to 20, how long a receive waits that has no `wait` of its own.
            visibility_timeout: 0 to 43,200 s (12 h), how long a received message stays hidden. Default: 30.
            content_based_deduplication: FIFO: a message without a deduplication id gets its body's SHA-256 as one.
            deduplication_scope: FIFO: "queue", or "messageGroup" for a memory of ids in each group.
            fifo_throughput_limit: FIFO: "perQueue", or "perMessageGroupId" with scope "messageGroup"; only kept.
            dead_letter_queue: where messages go that were received `max_receive_count` (1 to 1,000) times: a queue,
                or its name, URL or ARN. Both together are the short form of `redrive_policy`.

        Raises:
            ValueError: one of `dead_letter_queue` and `max_receive_count` alone, or with `redrive_policy`.
            QueueNameExists: the queue exists with another value of an attribute given here.
            QueueDeletedRecently: a queue of this name was deleted within the last 60 s.
            InvalidParameterValue, InvalidAttributeValue, InvalidAttributeName: not as SQS allows. Where `fifo=True` is
                what is missing, a note on the error says so.
        Source: API_CreateQueue.
        """
        from sqsqlite.actions.dispatch import call
        from sqsqlite.api.queue import Queue
        from sqsqlite.api.settings import attribute_texts, attributes_of
        from sqsqlite.contract import requests
        from sqsqlite.contract.fifo_only import asks_for_fifo

        settings = {
            "delay_seconds": delay_seconds,
            "maximum_message_size": maximum_message_size,
            "message_retention_period": message_retention_period,
            "receive_message_wait_time_seconds": receive_message_wait_time_seconds,
            "visibility_timeout": visibility_timeout,
            "redrive_policy": redrive_policy,
            "redrive_allow_policy": redrive_allow_policy,
            "policy": policy,
            "kms_master_key_id": kms_master_key_id,
            "kms_data_key_reuse_period_seconds": kms_data_key_reuse_period_seconds,
            "sqs_managed_sse_enabled": sqs_managed_sse_enabled,
            "content_based_deduplication": content_based_deduplication,
            "deduplication_scope": deduplication_scope,
            "fifo_throughput_limit": fifo_throughput_limit,
            "dead_letter_queue": dead_letter_queue,
            "max_receive_count": max_receive_count,
        }
        given = {"FifoQueue": True if fifo else None, **attributes_of(self._store, settings)}
        parameters: dict[str, Any] = {"QueueName": name, "Attributes": attribute_texts(given)}
        if tags is not None:
            parameters["tags"] = dict(tags)
        try:
            call(self._store, requests.CreateQueue, parameters)
        except (InvalidParameterValue, InvalidAttributeName) as error:
            why = asks_for_fifo(name, parameters["Attributes"])
            if why is not None:
                error.add_note(f"{why}: fifo=True makes one")
            raise
        return Queue(self._store, name)

    def queue(self, name: str) -> "Queue":
        """An existing queue by name, URL or ARN. It is one of account 000000000000; `client` reaches the others.

        Raises:
            QueueDoesNotExist: no queue has this name, or the URL or ARN names another account. A note on the error
                names queue and file.
            ParamValidationError: `name` is not a text.
        """
        from sqsqlite.actions.dispatch import call
        from sqsqlite.api.inspection import name_missing_queue
        from sqsqlite.api.queue import Queue
        from sqsqlite.contract import requests

        try:
            account_id, plain = _account_and_name(name)
            call(
                self._store, requests.GetQueueUrl, {"QueueName": plain, "QueueOwnerAWSAccountId": account_id}
            )
        except QueueDoesNotExist as error:
            name_missing_queue(error, name, self._store)
            raise
        if account_id != LOCAL.account_id:
            raise QueueDoesNotExist(f"{name!r} is a queue of account {account_id}: use `client` for it.")
        return Queue(self._store, plain)

    def queues(self, prefix: str = "") -> "list[Queue]":
        """All queues whose names begin with `prefix`, by name."""
        from sqsqlite.api.queue import Queue
        from sqsqlite.operators import inspect

        return [Queue(self._store, name) for name in inspect.queue_names(self._store, LOCAL, prefix)]

    def stats(self, prefix: str = "", *, since: int | None = None) -> "list[QueueStatistics]":
        """Counts, ages and recent activity of all queues (whose names begin with `prefix`), at one instant.

        Args:
            since: milliseconds since 1970 UTC: count activity from the beginning of this instant's minute. Default: the
                running minute and the one before it.
        """
        from sqsqlite.operators.statistics import statistics

        return statistics(self._store, LOCAL, prefix, since_ms=since)

    def metrics(self, prefix: str = "") -> "list[QueueMetrics]":
        """CloudWatch's metrics of all queues (whose names begin with `prefix`), at one instant."""
        from sqsqlite.operators.metrics import metrics

        return metrics(self._store, LOCAL, prefix)

    def dead_letters(self) -> "list[DeadLetterCount]":
        """All queues that hold dead letters or that a redrive policy names, with counts by the queue they came from."""
        from sqsqlite.operators.dead_letters import dead_letter_queues

        return dead_letter_queues(self._store, LOCAL)

    @contextmanager
    def transaction(self) -> "Iterator[Any]":
        """One transaction for the application's rows and the queue's messages, in this thread and this task.

        Yields the raw connection (DB-API) for the application's statements; every operation of this object's queues
        and messages inside the block joins. It commits at the end, and rolls back when the block raises: then nothing
        was sent, received or deleted.

        Inside it a delete or change_visibility succeeds only if it settles, whatever `compat` is: else it raises
        `LeaseLost`. A client's batch answers `Failed` instead; then the block does not commit, unless the caller has
        looked at the answer and called `accept_unsettled()`.

        Raises:
            TransactionInProgress: this thread, or another task of it, is in one already.
            LeaseLost: a batch in the block left entries unsettled: rolled back.
            Busy, CommitInDoubt, DiskFull: see `errors`.
        """
        with self._store.transaction() as tx:
            yield tx.connection

    def accept_unsettled(self) -> "list[SQSError]":
        """Let this thread's `transaction()` commit although batches in it left entries unsettled so far.

        Call it after you have looked at the `Failed` of delete_message_batch or change_message_visibility_batch in the
        block, and have undone, or want to keep, the rows that belong to those messages.

        Returns:
            The error of each such entry, in order; LeaseLost where the lease was lost.

        Raises:
            StoreError: this thread is in no `transaction()`.
        """
        tx = self._store.transaction_of_thread
        if tx is None:
            raise StoreError(
                "accept_unsettled() belongs inside `with sqs.transaction()`, after the batch that failed"
            )
        accepted, tx.unsettled = tx.unsettled, ()
        return list(accepted)

    @property
    def engine(self) -> "Engine":
        """A SQLAlchemy engine on the same file whose transactions may write: BEGIN IMMEDIATE, in turn.

        Pass its Connection, or a Session on it, as `connection=` to send, receive and delete within its transaction.
        """
        return self._store.application.engine

    @property
    def read_engine(self) -> "Engine":
        """A SQLAlchemy engine for reading: never waits for writers, refuses to write."""
        return self._store.application.read_engine

    @property
    def client(self) -> "Client":
        """A boto3-shaped client on the same open file."""
        from sqsqlite.api.client import Client

        return Client(self._store)


def _account_and_name(given: Any) -> tuple[str, Any]:
    """Any value but a text stays as it is: the request refuses it, as CreateQueue's does."""
    account_id, name = queue_name(given) if isinstance(given, str) else (None, given)
    return account_id or LOCAL.account_id, name
