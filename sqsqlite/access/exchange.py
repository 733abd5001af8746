"""One HTTP request and its answer, as the protocols see them."""

from dataclasses import dataclass
from urllib.parse import unquote

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
