"""Errors that only an endpoint has: of signatures, and what befalls the file, as SQS would tell it.

Source: "Common errors" of the API reference.
"""

from typing import ClassVar

from sqsqlite.errors import AccessDenied, SQSError


class EndpointError(SQSError):
    """Raised by AWS's framework, not by SQS: the root of those here."""

    json_namespace: ClassVar[str] = AccessDenied.json_namespace


class IncompleteSignature(EndpointError):
    """The signature lacks something, or is of a version that is not taken."""

    query_code: ClassVar[str] = "IncompleteSignature"


class InvalidClientTokenId(EndpointError):
    """The access key id is none of this endpoint's."""

    query_code: ClassVar[str] = "InvalidClientTokenId"
    http_status: ClassVar[int] = 403


class ExpiredToken(EndpointError):
    """The temporary credentials are over."""

    query_code: ClassVar[str] = "ExpiredToken"
    http_status: ClassVar[int] = 403


class RequestExpired(EndpointError):
    """It was signed too long ago, or the signer's clock is wrong."""

    query_code: ClassVar[str] = "RequestExpired"


class SignatureDoesNotMatch(EndpointError):
    """The request is not what was signed, or the secret is another."""

    query_code: ClassVar[str] = "SignatureDoesNotMatch"
    http_status: ClassVar[int] = 403


class InternalFailure(EndpointError):
    """The request may or may not have been carried out."""

    query_code: ClassVar[str] = "InternalFailure"
    http_status: ClassVar[int] = 500
    fault: ClassVar[str] = "Receiver"


class ServiceUnavailable(EndpointError):
    """Nothing was done: the same request may succeed later."""

    query_code: ClassVar[str] = "ServiceUnavailable"
    http_status: ClassVar[int] = 503
    fault: ClassVar[str] = "Receiver"
