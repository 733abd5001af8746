# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a payload. In every case the message stays in its queue."""

from sqsqlite.errors import SQSQLiteError
from sqsqlite.payloads.pointers import Pointer


class PayloadError(SQSQLiteError):
    """A payload that can't be stored, read or removed.

    Attributes:
        pointer: where the payload should be. None: the message's body is no pointer, or nothing was stored.
        message_id, receipt_handle: of the message that was received; None while sending. Delete the message by the
            handle if its payload is lost for good.
    """

    pointer: Pointer | None = None
    message_id: str | None = None
    receipt_handle: str | None = None


class PayloadMissing(PayloadError):
    """The store has no such object, or one that is not the payload that was sent."""


class PayloadStoreDown(PayloadError):
    """The store can't be reached, or refuses. Its own error is the cause (`__cause__`)."""


class PointerRefused(PayloadError):
    """The message claims to have a payload, but its pointer can't be read or leads out of the store."""
