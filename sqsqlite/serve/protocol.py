# SPDX-License-Identifier: Apache-2.0
"""What the server and its two protocols share: HTTP answers, failures, and the facts about a finished request."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sqsqlite.access.exchange import InternalFailure, ServiceUnavailable
from sqsqlite.errors import Busy, DiskFull, SQSError, StoreClosed, StoreError

Headers = list[tuple[bytes, bytes]]

IS_GONE = "sqsqlite.is_gone"
"""An extension of the ASGI scope: a function that returns whether the client has closed the connection."""

WRITE_WHOLE = "sqsqlite.write_whole"
"""An extension of the ASGI scope: a function that writes an `Answer` in one piece.

It returns False if it wrote nothing. The answer then takes ASGI's way.
"""

UNTIL_READ = "sqsqlite.until_read"
"""An extension of the ASGI scope: a function that takes a function.

It calls that function when the client has read the written answer or has disconnected.
"""


class Answer(NamedTuple):
    """Status, headers and body of the HTTP response."""

    status: int
    headers: Headers
    body: bytes


FAILED = "The server failed; its log has the cause. The request may or may not have been carried out."

_NOT_DONE: dict[type[StoreError], str] = {
    Busy: "Other writers held the file for too long.",
    DiskFull: "The disk is full. Messages can still be received and deleted.",
    StoreClosed: "The server is stopping.",
}


def failure_of(error: StoreError) -> SQSError:
    """503 if nothing was done and a retry makes sense, else 500. The message names no path of the server."""
    reason = _NOT_DONE.get(type(error))
    if reason is None:
        return InternalFailure(FAILED)
    return ServiceUnavailable(f"{reason} Nothing was done. You can send the same request again later.")


@dataclass(frozen=True, slots=True)
class Served:
    """The facts about one answered request, for the log and the metrics.

    It holds no body, no receipt handle and no signature, so all of it may be logged.

    Attributes:
        action: SQS's name. Empty if the request named no action, or if its form was refused unread.
        queue: the queue's name. Empty if the request named no queue or could not be read.
        account_id: the account of the caller, or of the key if its signature was refused. Empty if unknown.
        code: the error's Query code. Empty: success.
        seconds: from the end of the request's body to the last byte of the answer, including waits for messages.
        user, access_key_id: from the signature, if there is one.
        cause: what failed inside the server. The client does not see it.
    """

    request_id: str
    action: str
    queue: str
    account_id: str
    client_address: str | None
    status: int
    code: str
    seconds: float
    request_bytes: int
    answer_bytes: int
    cause: str = ""
    user: str = ""
    access_key_id: str = ""


Observe = Callable[[Served], None]
