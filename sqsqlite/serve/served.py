"""What the log and the metrics hear of each request, after it was answered."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Served:
    """One request that is over. No body, no receipt handle, no signature: what is here may be written down.

    Attributes:
        action: SQS's name of it, empty if it was none, or stood in a form that was refused before it was read.
        queue: the queue's name, empty where none was named or the request could not be read.
        account_id: whose request it was, empty if nobody was told. If the signature was refused: whose key it named.
        code: the error's Query code; empty: it was carried out.
        seconds: from the end of its body to the last byte of the answer, waiting for messages included.
        user, access_key_id: those of the signature, as far as they are known; empty without.
        cause: what went wrong inside the server, for whoever runs it; the client was not told.
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
