# SPDX-License-Identifier: Apache-2.0
"""An HTTP request as the protocols see it, its sender, and the errors that only an endpoint raises.

Source of the errors: "Common errors" of the API reference.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from urllib.parse import unquote

from sqsqlite.errors import AccessDenied, SQSError

TRACE_ID = b"x-amzn-trace-id"
"""The header that becomes a message's AWSTraceHeader."""

TARGET = b"x-amz-target"
"""The header that names the action of a JSON request."""


class Identity(NamedTuple):
    """The account and user that a request comes from.

    Attributes:
        user_name: for policies that name a user; empty: the account itself.
    """

    account_id: str
    user_name: str = ""

    @property
    def arn(self) -> str:
        """The principal's ARN, as policies write it."""
        return f"arn:aws:iam::{self.account_id}:{f'user/{self.user_name}' if self.user_name else 'root'}"


@dataclass(slots=True)
class Exchange:
    """A complete HTTP request and the id that its answer carries.

    Attributes:
        headers: by names in lower case; values of a repeated header are joined by commas.
        path: as sent, percent-encoded.
        query: the text after the question mark, as sent.
        digest: the body's SHA-256 in hexadecimal; empty until it is computed.
        fields: the parameters of the Query protocol; None until they are read.
        client_address: the address that the connection comes from; None if it has none.
        key_id: the key whose removal makes the signature invalid, for a session its parent's; empty without keys.
        action, account_id, user, access_key_id, queue, code, cause: for the log and the metrics.
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
        """Return a header's value; empty if the request lacks the header."""
        return self.headers.get(name, b"").decode("latin-1")

    @property
    def decoded_path(self) -> str:
        """The path, percent-decoded."""
        return unquote(self.path.decode("latin-1"), errors="replace")


class EndpointError(SQSError):
    """An error that AWS's framework raises, not SQS: the root of the errors below."""

    json_namespace: ClassVar[str] = AccessDenied.json_namespace


class IncompleteSignature(EndpointError):
    """The signature lacks a part, or a part is malformed."""

    query_code: ClassVar[str] = "IncompleteSignature"


class InvalidClientTokenId(EndpointError):
    """The endpoint has no such access key."""

    query_code: ClassVar[str] = "InvalidClientTokenId"
    http_status: ClassVar[int] = 403


class ExpiredToken(EndpointError):
    """The temporary credentials have expired."""

    query_code: ClassVar[str] = "ExpiredToken"
    http_status: ClassVar[int] = 403


class RequestExpired(EndpointError):
    """The request was signed too long ago, or the signer's clock is wrong."""

    query_code: ClassVar[str] = "RequestExpired"


class SignatureDoesNotMatch(EndpointError):
    """The request was changed after it was signed, or signed with another secret."""

    query_code: ClassVar[str] = "SignatureDoesNotMatch"
    http_status: ClassVar[int] = 403


class InternalFailure(EndpointError):
    """The request may or may not have been carried out."""

    query_code: ClassVar[str] = "InternalFailure"
    http_status: ClassVar[int] = 500
    fault: ClassVar[str] = "Receiver"


class ServiceUnavailable(EndpointError):
    """The endpoint did nothing: the same request may succeed later."""

    query_code: ClassVar[str] = "ServiceUnavailable"
    http_status: ClassVar[int] = 503
    fault: ClassVar[str] = "Receiver"
