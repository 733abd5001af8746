"""Errors that only an endpoint has: of signatures, and what befalls the file, as SQS would tell it.

Source: "Common errors" of the API reference.
"""

from typing import ClassVar

from sqsqlite.errors import Busy, DiskFull, SQSError, StoreClosed, StoreError


class IncompleteSignature(SQSError):
    """The signature lacks something, or is of a version that is not taken."""


class InvalidClientTokenId(SQSError):
    """The access key id is none of this endpoint's."""

    http_status: ClassVar[int] = 403


class RequestExpired(SQSError):
    """It was signed too long ago, or the signer's clock is wrong."""


class SignatureDoesNotMatch(SQSError):
    """The request is not what was signed, or the secret is another."""

    http_status: ClassVar[int] = 403


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
