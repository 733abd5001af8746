# SPDX-License-Identifier: Apache-2.0
"""One HTTP request, whose it is, and the errors that only an endpoint has, of signatures for example.

Source: "Common errors" of the API reference.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from urllib.parse import unquote

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


class Identity(NamedTuple):
    """Whose request it is.

    Attributes:
        user_name: for policies that name a user; empty: the account itself.
    """

    account_id: str
    user_name: str = ""

    @property
    def arn(self) -> str:
        """As policies name it."""
        return f"arn:aws:iam::{self.account_id}:{f'user/{self.user_name}' if self.user_name else 'root'}"


TRACE_ID = b"x-amzn-trace-id"
"""The header that becomes a message's AWSTraceHeader."""

TARGET = b"x-amz-target"
"""The header that names the action where the body is JSON."""


@dataclass(slots=True)
class Exchange:
    """An HTTP request, read whole, and the id that its answer carries.

    Attributes:
        headers: names in lower case; those given twice joined by commas.
        path: as sent, percent-encoded.
        query: what stands behind the question mark, as sent.
        digest: the body's SHA-256 in hexadecimal, if it was made already; empty: not yet.
        fields: the Query protocol's parameters, once they were read.
        client_address: the address that the connection comes from, None if it has none.
        key_id: the key whose removal ends what it signed, of a session its parent's; empty: it was not asked for one.
        action, account_id, user, access_key_id, queue, code, cause: what became of it, as `served.Served` tells it.
    """

    method: str
    scheme: str
    path: bytes
    query: bytes
    headers: dict[bytes, bytes]
    body: bytes
    request_id: str
    digest: str = ""
    fields: dict[str, str] | None = None
    client_address: str | None = None
    key_id: str = ""
    action: str = ""
    account_id: str = ""
    user: str = ""
    access_key_id: str = ""
    queue: str = ""
    code: str = ""
    cause: str = ""

    def header(self, name: bytes) -> str:
        """A header's value, empty if it is not there."""
        return self.headers.get(name, b"").decode("latin-1")

    @property
    def decoded_path(self) -> str:
        """The path without its percent signs."""
        return unquote(self.path.decode("latin-1"), errors="replace")
