# SPDX-License-Identifier: Apache-2.0
"""Access without keys: every request comes from one account, and web pages are kept out.

Any site can let its own name lead to 127.0.0.1 (DNS rebinding). Its page then reaches the server as a page of the
server's own site. Only the Host header shows it, because a browser puts the name of the page's address there.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import urlsplit

from sqsqlite.access.authorization import authorize, place_of
from sqsqlite.access.exchange import TARGET, Exchange, Identity
from sqsqlite.access.keys import find_policy
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract import requests
from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID, NO_SUCH_QUEUE
from sqsqlite.errors import AccessDenied, QueueDoesNotExist
from sqsqlite.store.store import Store

_is_loopback = re.compile(r"(?:.+\.)?localhost|127(?:\.[0-9]{1,3}){3}|::1").fullmatch
_host_of_header = re.compile(r"(\[[^]]*\]|[^:]*)(?::[0-9]*)?").fullmatch
_host_of_origin = re.compile(r"https?://(\[[^]]*\]|[^:/]*)(?::[0-9]*)?", re.IGNORECASE).fullmatch
# Actions whose names begin with these change nothing. A receive hides messages, so it changes something.
_READING = ("Get", "List")
# These actions find only the caller's own queues, even if another account creates the queue meanwhile.
_OF_OWN_QUEUES = (
    requests.StartMessageMoveTask,
    requests.ListMessageMoveTasks,
    requests.CancelMessageMoveTask,
)
# A browser sends Authorization with these schemes by itself, such as the password of a proxy that its user typed in.
_BROWSERS_SCHEMES = (b"basic", b"digest", b"negotiate", b"ntlm")


class Hosts:
    """The names by which clients may ask a server without keys: loopback's, and those that its operator adds.

    Args:
        names: names and addresses, without ports.
        base_url: adds its host.
    """

    def __init__(self, names: Iterable[str] = (), base_url: str | None = None) -> None:
        self._names = {_bare(name) for name in names}
        if base_url is not None:
            self._names.add(urlsplit(base_url).hostname or "")
        self._names.discard("")

    def knows(self, host: str) -> bool:
        """Return whether a Host header names one of them, or is empty: browsers always send it."""
        found = _host_of_header(host)
        return not host or (found is not None and self._has(found[1]))

    def knows_origin(self, origin: str) -> bool:
        """Return whether an Origin header names one of them."""
        found = _host_of_origin(origin)
        return found is not None and self._has(found[1])

    def _has(self, name: str) -> bool:
        name = _bare(name)
        return _is_loopback(name) is not None or name in self._names


def _leads_off_loopback(host: str) -> bool:
    """Return whether a Host header has a name other than loopback's."""
    found = _host_of_header(host)
    return bool(host) and (found is None or _is_loopback(_bare(found[1])) is None)


def _bare(name: str) -> str:
    """Return the form in which names are compared: without brackets, the root's dot and capitals."""
    return name.strip("[]").removesuffix(".").lower()


class OpenAccess:
    """Every client that reaches the address acts as account 000000000000, signed or not.

    All its requests are alike, so the policies of its own queues are not asked. Policies of another account's queues
    are: the file may have had keys.

    Args:
        hosts: the names by which clients may ask; None: those of loopback alone.
    """

    def __init__(self, store: Store, hosts: Hosts | None = None) -> None:
        self._store = store
        self._hosts = hosts or Hosts()

    def authenticate(self, exchange: Exchange) -> Identity:
        """Return the account of programs that use the file without a server.

        Raises:
            AccessDenied: a browser sent the request for a page of another site; the request's Host is not a name of
                this server; or the request is a GET that changes something, which any page can make a browser send.
        """
        site = exchange.headers.get(b"sec-fetch-site", b"none")
        origin = exchange.headers.get(b"origin")
        if site not in (b"none", b"same-origin") or not (
            origin is None or self._hosts.knows_origin(origin.decode("latin-1"))
        ):
            raise AccessDenied("Without access keys the server refuses requests from a page of another site.")
        host = exchange.header(b"host")
        if not self._hosts.knows(host):
            raise AccessDenied(
                f"Without access keys the server refuses requests for the host {host}. The server's option "
                "--allowed-host NAME adds a name."
            )
        if _leads_off_loopback(host) and _may_be_any_pages(exchange):
            raise AccessDenied(
                f"Without access keys the server refuses {exchange.action} by GET for the host {host}, because any "
                "web page can make a browser send it: use POST."
            )
        return Identity(DEFAULT_ACCOUNT_ID)

    def authorize(
        self, exchange: Exchange, identity: Identity, request: requests.Request, caller: Caller
    ) -> Caller:
        """Allow everything with the account's own queues; ask the policies of others.

        All clients are one account, so they may learn which other queues exist.

        Raises:
            AccessDenied: the Policy of another account's queue denies the request, or does not allow it.
            QueueDoesNotExist: the queue is another account's and does not exist.
        """
        place = place_of(self._store, request, caller)
        if place is None or place[0] == caller.account_id:
            return caller
        if find_policy(self._store, *place) is None:
            if isinstance(request, _OF_OWN_QUEUES):
                return caller
            # The operation could find a queue that is created meanwhile, and no Policy would have been asked.
            raise QueueDoesNotExist(NO_SUCH_QUEUE)
        return authorize(self._store, exchange, identity, request, caller, datetime.now(UTC))


def _may_be_any_pages(exchange: Exchange) -> bool:
    """Return whether a request changes something, and an image or a link of any page can make a browser send it.

    With a GET over plain HTTP to a name other than loopback's, a browser sends neither Sec-Fetch-Site nor Origin. With
    a POST it sends an Origin. No page can send X-Amz-Target or its own Authorization header to another site.
    """
    if exchange.method == "POST" or exchange.action.startswith(_READING):
        return False
    headers = exchange.headers
    is_of_own_page = headers.get(b"sec-fetch-site") == b"same-origin" or b"origin" in headers
    authorization = headers.get(b"authorization", b"").lower()
    is_signed = bool(authorization) and not authorization.startswith(_BROWSERS_SCHEMES)
    is_of_client = is_signed or TARGET in headers
    return not (is_of_own_page or is_of_client)
