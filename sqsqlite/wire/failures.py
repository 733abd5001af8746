"""What befalls the file, as SQS would tell it: the service's fault, status 500 or 503."""

from typing import ClassVar

from sqsqlite.errors import Busy, DiskFull, SQSError, StoreClosed, StoreError


class InternalFailure(SQSError):
    """The request may or may not have been carried out."""

    http_status: ClassVar[int] = 500
    fault: ClassVar[str] = "Receiver"


class ServiceUnavailable(SQSError):
    """Nothing was done: the same request may succeed later."""

    http_status: ClassVar[int] = 503
    fault: ClassVar[str] = "Receiver"


def failure_of(error: StoreError) -> SQSError:
    """503 where nothing was done and a retry makes sense, 500 otherwise."""
    if isinstance(error, Busy | DiskFull | StoreClosed):
        return ServiceUnavailable(str(error))
    return InternalFailure(str(error))
