"""What befalls the file, as SQS would tell it."""

from sqsqlite.access.failures import InternalFailure, ServiceUnavailable
from sqsqlite.errors import Busy, DiskFull, SQSError, StoreClosed, StoreError

FAILED = "The request failed within the server, whose log says why. It may or may not have been carried out."

_NOT_DONE: dict[type[StoreError], str] = {
    Busy: "Others were writing for too long.",
    DiskFull: "There is no room to write. Messages can be received and deleted.",
    StoreClosed: "The server is being stopped.",
}


def failure_of(error: StoreError) -> SQSError:
    """503 where nothing was done and a retry makes sense, 500 otherwise. The client is told no path."""
    reason = _NOT_DONE.get(type(error))
    if reason is None:
        return InternalFailure(FAILED)
    return ServiceUnavailable(f"{reason} Nothing was done: the same request may succeed later.")
