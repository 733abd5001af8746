# SPDX-License-Identifier: Apache-2.0
"""The engine as a walk uses it: a file opened twice at once, by our client and by boto3's."""

import re
from functools import cache
from unittest.mock import patch

import boto3
from botocore.exceptions import ClientError

import sqsqlite
from sqsqlite import SQS, ManualClock, Queue, boto
from sqsqlite.actions.moving import move_chunk, next_move_at
from sqsqlite.actions.sweep import sweep_chunk
from sqsqlite.errors import SQSError
from sqsqlite.store.upkeep import Upkeep

WORKER = b"the walk"


class StillClock(ManualClock):
    """No send comes while a walk waits for an answer, so a wait would never end."""

    def wait(self, event, until_ms):
        raise AssertionError("a receive waits although it was not to")


class Engine:
    """A new file at `path`, open by both doors.

    Args:
        in_flight_limits: of a standard and of a FIFO queue, in place of SQS's own.
    """

    def __init__(self, path, now, *, compat="docs", in_flight_limits=None):
        self._path = path
        self._clock = StillClock(now)
        self._compat = compat
        self._in_flight_limits = in_flight_limits
        self._open()

    def _open(self):
        options = {"clock": self._clock, "synchronous": "OFF", "compat": self._compat}
        # Upkeep is a step of its own, not a thread, so that a history is the same each time it is walked.
        with patch.object(Upkeep, "_start", lambda _: None):
            self._client = sqsqlite.client(self._path, **options)
            self._attachment = boto.attach(_boto3_client(), self._path, **options)
        for store in (self._client._store, self._attachment._store):
            store.upkeep._start = lambda: None
            if self._in_flight_limits is not None:
                standard, fifo = self._in_flight_limits
                limits = store.settings.limits._replace(
                    standard_in_flight_count=standard,
                    fifo_in_flight_count=fifo,
                    fifo_in_flight_aws_count=fifo,
                )
                store.file.settings = store.settings._replace(limits=limits)

    def close(self):
        self._attachment.close()
        self._client.close()

    def reopen(self):
        self.close()
        self._open()

    def advance(self, milliseconds):
        self._clock.advance(ms=milliseconds)

    def upkeep(self):
        """All work of the upkeep thread."""
        store = self._client._store
        place: int | None = 0
        while place is not None:
            place = store.write(sweep_chunk, place)
        while self._is_move_due(store):
            store.write(move_chunk, WORKER)

    def _is_move_due(self, store):
        with store.reading() as connection:
            due_at = next_move_at(connection, WORKER)
        return due_at is not None and due_at <= self._clock.now_ms()

    def transaction(self):
        """The caller's own transaction on this thread: calls through our client join it."""
        return SQS(self._client._store).transaction()

    def accept_unsettled(self):
        return SQS(self._client._store).accept_unsettled()

    def call_in_block(self, action, params):
        """The answer without its metadata. Raises SQSError: what the block is about."""
        if action == "delete_many":
            queue = Queue(self._client._store, params["QueueUrl"].rpartition("/")[2])
            queue.delete_many(params["Handles"], missing_ok=params["MissingOk"])
            return {}
        answer = getattr(self._client, method(action))(**params)
        del answer["ResponseMetadata"]
        return answer

    def call(self, door, action, params):
        """The answer without its metadata, or (code, text) of an error."""
        client = _boto3_client() if door else self._client
        try:
            answer = getattr(client, method(action))(**params)
        except (SQSError, ClientError) as error:
            found = error.response["Error"]
            return found["Code"], found["Message"]
        del answer["ResponseMetadata"]
        return answer


@cache
def _boto3_client():
    """One client for all files: its creation takes longer than a short history."""
    keys = {"aws_access_key_id": "unused", "aws_secret_access_key": "unused"}
    return boto3.client("sqs", region_name="us-east-1", endpoint_url="http://localhost:9324", **keys)


@cache
def method(action):
    """CreateQueue -> create_queue."""
    return re.sub("(?<!^)([A-Z])", r"_\1", action).lower()
