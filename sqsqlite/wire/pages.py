"""What the endpoint answers beside SQS's actions."""

from typing import TYPE_CHECKING

from sqsqlite.wire.exchange import Answer

if TYPE_CHECKING:
    from sqsqlite.store.store import Store
    from sqsqlite.wire.exchange import Exchange


class Pages:
    """GET /health."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    async def find(self, exchange: "Exchange") -> Answer | None:
        """The page that is asked for, None if it is none."""
        if exchange.method not in ("GET", "HEAD") or exchange.path != b"/health":
            return None
        body = b"" if exchange.method == "HEAD" else b"ok\n"
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
        return Answer(200, headers, body)
