"""Who a request is from, and whether they may do what they ask."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqsqlite.names import DEFAULT_ACCOUNT_ID

if TYPE_CHECKING:
    from sqsqlite.requests import Request
    from sqsqlite.service.caller import Caller
    from sqsqlite.wire.exchange import Exchange


class Identity(NamedTuple):
    """Whose request it is. `sender_id`: what its messages carry as SenderId; None: the account."""

    account_id: str
    sender_id: str | None = None


class Access(Protocol):
    """What the application asks before it carries a request out."""

    def authenticate(self, exchange: "Exchange") -> Identity:
        """Who it is from. Raises an SQSError if that can't be told, or isn't true."""

    def allow(self, request: "Request", caller: "Caller") -> None:
        """Raise AccessDenied if the caller may not do this."""


class OpenAccess:
    """Without keys: whoever can reach the address is the one account, signed or not."""

    def authenticate(self, exchange: "Exchange") -> Identity:  # noqa: ARG002 - nothing about it matters
        """The account of a file that is used without a server."""
        return Identity(DEFAULT_ACCOUNT_ID)

    def allow(self, request: "Request", caller: "Caller") -> None:
        """Everything."""
