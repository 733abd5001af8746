# SPDX-License-Identifier: Apache-2.0
"""Who a request is from, whether they may do what they ask, and the names by which a server without keys is asked.

Any site can let its own name lead to 127.0.0.1 (DNS rebinding). A page of that site then reaches the server as a page
of its own, and only the Host header tells: a browser puts there the name that stands in the page's address.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from sqsqlite.access.authorization import authorize, place_of
from sqsqlite.access.exchange import TARGET, Identity
from sqsqlite.access.keys import find_policy
from sqsqlite.contract import requests
from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID, NO_SUCH_QUEUE
from sqsqlite.errors import AccessDenied, QueueDoesNotExist

if TYPE_CHECKING:
    from sqsqlite.access.exchange import Exchange
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract.requests import Request, StartMessageMoveTask
    from sqsqlite.store.store import Store


_is_loopback = re.compile(r"(?:.+\.)?localhost|127(?:\.[0-9]{1,3}){3}|::1").fullmatch
_host_of_header = re.compile(r"(\[[^]]*\]|[^:]*)(?::[0-9]*)?").fullmatch
_host_of_origin = re.compile(r"https?://(\[[^]]*\]|[^:/]*)(?::[0-9]*)?", re.IGNORECASE).fullmatch


class Hosts:
    """The names of loopback, which lead nowhere else, and the names that the server's operator vouches for.

    Args:
        names: names and addresses, without ports.
        base_url: its host is one more; None: no base URL is set.
    """

    def __init__(self, names: Iterable[str] = (), base_url: str | None = None) -> None:
        self._names = {_bare(name) for name in names}
        if base_url is not None:
            self._names.add(urlsplit(base_url).hostname or "")
        self._names.discard("")

    def knows(self, host: str) -> bool:
        """Whether a Host header has one of them; a request of HTTP/1.0 without one is not a browser's."""
        found = _host_of_header(host)
        return not host or (found is not None and self._has(found[1]))

    def knows_origin(self, origin: str) -> bool:
        """Whether an Origin header does: `null` has none."""
        found = _host_of_origin(origin)
        return found is not None and self._has(found[1])

    def _has(self, name: str) -> bool:
        name = _bare(name)
        return _is_loopback(name) is not None or name in self._names


def leads_off_loopback(host: str) -> bool:
    """Whether a Host header has a name other than loopback's.

    Over plain HTTP browsers don't tell it whose page asks.
    """
    found = _host_of_header(host)
    return bool(host) and (found is None or _is_loopback(_bare(found[1])) is None)


def _bare(name: str) -> str:
    """As names are compared: without brackets, the root's dot and capitals."""
    return name.strip("[]").removesuffix(".").lower()


# The names of actions that change nothing begin like this. A receive hides messages, so it changes something.
_READING = ("Get", "List")
# Their operations find only the caller's own queues, so a queue of another account that is made meanwhile is not found.
_OF_OWN_QUEUES = (
    requests.StartMessageMoveTask,
    requests.ListMessageMoveTasks,
    requests.CancelMessageMoveTask,
)
# What a browser puts into Authorization by itself, with a password that its user has typed in for a proxy, say.
_BROWSERS_SCHEMES = (b"basic", b"digest", b"negotiate", b"ntlm")


class Access(Protocol):
    """What the application asks before it carries a request out."""

    def needs_digest(self, exchange: "Exchange") -> bool:
        """Whether `authenticate` will hash the body. Raises what that would, as far as the headers tell."""

    def authenticate(self, exchange: "Exchange") -> Identity:
        """Who it is from. Raises an SQSError if that is unknown or untrue."""

    def check_key(self, exchange: "Exchange") -> None:
        """Once more, while it waits. Raises an SQSError if the key that it was authenticated by is gone."""

    def authorize(
        self, exchange: "Exchange", identity: Identity, request: "Request", caller: "Caller"
    ) -> "Caller":
        """The caller as the operation is to know it. Raises AccessDenied if they may not do this."""

    def authorize_move(
        self, exchange: "Exchange", identity: Identity, request: "StartMessageMoveTask", caller: "Caller"
    ) -> None:
        """After `authorize`, in a thread. Raises AccessDenied if they may not do what the task will do for them."""


class OpenAccess:
    """Without keys: each client that reaches the address is the one account, signed or not.

    There is no other account to tell it from, so the policies of its queues are not asked. Those of another account
    are: the file may have had keys.

    Args:
        hosts: the names by which it may be asked; None: those of loopback alone.
    """

    def __init__(self, store: "Store", hosts: Hosts | None = None) -> None:
        self._store = store
        self._hosts = hosts or Hosts()

    @staticmethod
    def needs_digest(exchange: "Exchange") -> bool:  # noqa: ARG004 - as the others'
        """No: signatures are not looked at."""
        return False

    def authenticate(self, exchange: "Exchange") -> Identity:
        """The account of a file that is used without a server.

        Raises:
            AccessDenied: a browser sends it for a page of another site, which reaches loopback as its user does; or it
                asks by a name that is none of this server's, as a page does whose site let its name lead here; or it
                is a GET that changes something, and any page may have made a browser send it.
        """
        site = exchange.headers.get(b"sec-fetch-site", b"none")
        origin = exchange.headers.get(b"origin")
        if site not in (b"none", b"same-origin") or not (
            origin is None or self._hosts.knows_origin(origin.decode("latin-1"))
        ):
            raise AccessDenied("Without access keys no request is taken from a page of another site.")
        host = exchange.header(b"host")
        if not self._hosts.knows(host):
            raise AccessDenied(
                f"Without access keys no request is taken for the host {host}. The server's option --allowed-host NAME "
                "adds a name."
            )
        if leads_off_loopback(host) and _may_be_any_pages(exchange):
            raise AccessDenied(
                f"Without access keys no {exchange.action} is taken by GET for the host {host}, because any web page "
                "can make a browser send it: use POST."
            )
        return Identity(DEFAULT_ACCOUNT_ID)

    def check_key(self, exchange: "Exchange") -> None:
        """There is none."""

    def authorize(
        self, exchange: "Exchange", identity: Identity, request: "Request", caller: "Caller"
    ) -> "Caller":
        """Everything with its own queues. All callers are one account: they may know which other queues exist."""
        place = place_of(self._store, request, caller)
        if place is None or place[0] == caller.account_id:
            return caller
        if find_policy(self._store, *place) is None:
            if isinstance(request, _OF_OWN_QUEUES):
                return caller
            # Not left to the operation: the queue may be made before that looks, and no Policy would have been asked.
            raise QueueDoesNotExist(NO_SUCH_QUEUE)
        return authorize(self._store, exchange, identity, request, caller, datetime.now(UTC))

    def authorize_move(
        self, exchange: "Exchange", identity: Identity, request: "StartMessageMoveTask", caller: "Caller"
    ) -> None:
        """Everything: a move task stays inside its account."""


def _may_be_any_pages(exchange: "Exchange") -> bool:
    """Whether it changes something, and a page of any site can have an image or a link that makes a browser send it.

    For a GET to a name off loopback, over plain HTTP, a browser tells neither Sec-Fetch-Site nor Origin. A POST has an
    Origin. No page can send X-Amz-Target to another site, nor an Authorization header of its own making.
    """
    if exchange.method == "POST" or exchange.action.startswith(_READING):
        return False
    headers = exchange.headers
    is_of_own_page = headers.get(b"sec-fetch-site") == b"same-origin" or b"origin" in headers
    authorization = headers.get(b"authorization", b"").lower()
    is_signed = bool(authorization) and not authorization.startswith(_BROWSERS_SCHEMES)
    is_of_client = is_signed or TARGET in headers
    return not (is_of_own_page or is_of_client)
