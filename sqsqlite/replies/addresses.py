# SPDX-License-Identifier: Apache-2.0
"""How a request says where its reply goes, in the form of Amazon's client for temporary queues (Java).

The reply's address is the URL of a host queue, `#`, and the name of one waiter: a virtual queue. A reply goes to the
host queue with the waiter's name as an attribute. So thousands of waiters need one queue, and one receive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sqsqlite.api.connect import SQS
from sqsqlite.errors import SQSQLiteError

ADDRESS = "ResponseQueueUrl"
"""The message attribute of a request that names the reply's address."""
WAITER = "__AmazonSQSVirtualQueuesClient.QueueName"
"""The message attribute of a reply that names the waiter."""
HOST_PREFIX = "sqsqlite-replies-"
"""How the names of host queues begin."""
# The tags by which Amazon's client tells queues of dead processes from others.
LAST_SIGN = "__AmazonSQSIdleQueueDeletingClient.LastHeartbeatTimestamp"
RETENTION = "__IdleQueueRetentionPeriodSeconds"


class ReplyTimeout(SQSQLiteError, TimeoutError):
    """No reply came in time. The request may still be worked on, or wait in its queue."""


class RequesterClosed(SQSQLiteError):
    """The requester was closed, its queue of replies is gone, or it can't be received from: no reply can arrive."""


class RequesterGone(SQSQLiteError):
    """Nobody waits for the reply: the requester has ended, and its queue with it."""


@dataclass(frozen=True)
class Reply:
    """An answer.

    Attributes:
        body: the text.
        attributes: str, int, Decimal or bytes by name.
        message_id: the reply's own.
    """

    body: str
    attributes: dict[str, Any] = field(default_factory=dict)
    message_id: str = ""


def client_of(sqs_or_client: Any) -> Any:
    """The client with boto3's methods behind an open file; any other client stays as it is."""
    return sqs_or_client.client if isinstance(sqs_or_client, SQS) else sqs_or_client


def python_values(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A reply's attributes as Python values, without the one that names the waiter."""
    return {name: _value(typed) for name, typed in attributes.items() if name != WAITER}


def _value(typed: Mapping[str, Any]) -> Any:
    kind = typed["DataType"]
    if kind.startswith("Binary"):
        return typed["BinaryValue"]
    if not kind.startswith("Number"):
        return typed["StringValue"]
    number = Decimal(typed["StringValue"])
    return int(number) if number == number.to_integral_value() and number.as_tuple().exponent == 0 else number
