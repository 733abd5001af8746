# SPDX-License-Identifier: Apache-2.0
"""Access by signed requests, with the keys of the file of queues and of a file of credentials.

All processes of a server give one answer to whether it has, or had, access keys (`Latch`).
"""

import mmap
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqsqlite.access import keys
from sqsqlite.access.access import Hosts, OpenAccess
from sqsqlite.access.authorization import authorize, authorize_move
from sqsqlite.access.exchange import (
    TRACE_ID,
    ExpiredToken,
    Identity,
    IncompleteSignature,
    InvalidClientTokenId,
    ServiceUnavailable,
)
from sqsqlite.access.key_file import BadKeyFile
from sqsqlite.access.sessions import credentials_of, read_token
from sqsqlite.access.signature import check_head, check_signature, is_signed, key_id_as_given, read_signature
from sqsqlite.errors import InvalidSecurity

if TYPE_CHECKING:
    from sqsqlite.access.exchange import Exchange
    from sqsqlite.access.key_file import KeyFile
    from sqsqlite.access.keys import Credentials
    from sqsqlite.access.signature import Signed
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract.requests import Request, StartMessageMoveTask
    from sqsqlite.store.store import Store


class Latch:
    """Set once, never back. Processes forked after it was made share it, those too that take a dead one's place.

    Args:
        is_set: whether it is from the beginning.
    """

    def __init__(self, *, is_set: bool = False) -> None:
        self._shared = mmap.mmap(-1, 1)
        if is_set:
            self.set()

    @property
    def is_set(self) -> bool:
        """Whether one of the processes has set it."""
        return self._shared[0] == 1

    def set(self) -> None:
        """From now on it is."""
        self._shared[0] = 1


LOOK_SECONDS = 0.1
"""How often a server without keys looks whether there are some by now."""

_NOT_SIGNED = "All requests to this endpoint must be signed with Signature Version 4."
_NO_SUCH_KEY = "The security token included in the request is invalid."


def _now() -> datetime:
    return datetime.now(UTC)


class KeyedAccess:
    """Signed requests only, once there is a key; until then any client that reaches the address.

    Removing the last key does not reopen it: it refuses every request until there is a key.

    Args:
        key_file: more keys than the file of queues has; with it, even an empty one, requests must be signed.
        require_tls: refuse what did not come over HTTPS.
        now: the wall clock, which signers go by.
        look_seconds: see LOOK_SECONDS.
        latch: whether there are keys, or were, as all processes of a server know it; None: it is one process.
        hosts: see OpenAccess.
    """

    def __init__(
        self,
        store: "Store",
        key_file: "KeyFile | None" = None,
        *,
        require_tls: bool = False,
        now: Callable[[], datetime] = _now,
        look_seconds: float = LOOK_SECONDS,
        latch: Latch | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        self._store = store
        self._open = OpenAccess(store, hosts)
        self._key_file = key_file
        self._require_tls = require_tls
        self._now = now
        self._look_seconds = look_seconds
        self._latch = latch or Latch()
        if key_file is not None or keys.has_keys(store):
            self._latch.set()
        self._look_at = time.monotonic() + look_seconds

    @property
    def is_in_force(self) -> bool:
        """Whether there are keys, or were since the server began."""
        if not self._latch.is_set and time.monotonic() >= self._look_at:
            if keys.has_keys(self._store):
                self._latch.set()
            self._look_at = time.monotonic() + self._look_seconds
        return self._latch.is_set

    def needs_digest(self, exchange: "Exchange") -> bool:
        """Whether the body is to be hashed: it is signed, with a key that is known, and the headers are in order.

        Raises:
            SQSError: the headers alone make `authenticate` refuse it.
        """
        found = self._check_head(exchange)
        if found is not None:
            check_head(exchange, found[0], self._now())
        return found is not None

    def authenticate(self, exchange: "Exchange") -> Identity:
        """The account and user of the key that the request is signed with.

        Raises:
            InvalidSecurity: it is not signed with version 4, or TLS is required and it came without.
            IncompleteSignature: the signature is malformed, or something under it is missing.
            InvalidClientTokenId: there is no such key, or it has expired; or the session token is not of that key's.
            ExpiredToken: the session is over.
            RequestExpired: it was signed too long ago, or for later.
            SignatureDoesNotMatch: with another secret, or it was changed.
            ServiceUnavailable: the file of credentials can't be read.
            InvalidParameterValue: the query string has more than 1,000 parameters.
        """
        found = self._check_head(exchange)
        if found is None:
            return self._open.authenticate(exchange)
        signed, credentials = found
        check_signature(exchange, signed, credentials.secret_access_key, self._now())
        if TRACE_ID.decode() not in signed.signed_headers:
            # It would be kept with the message, and anybody on the way can have written it.
            exchange.headers.pop(TRACE_ID, None)
        return Identity(credentials.account_id, credentials.user_name)

    def _check_head(self, exchange: "Exchange") -> "tuple[Signed, Credentials] | None":
        """The signature, not compared yet, and the credentials to compare it with. None: there are no keys."""
        if self._require_tls and exchange.scheme != "https":
            raise InvalidSecurity("All requests to this endpoint must be made over HTTPS.")
        if not self.is_in_force:
            return None
        if not is_signed(exchange):
            raise InvalidSecurity(_NOT_SIGNED)
        try:
            signed = read_signature(exchange)
        except IncompleteSignature:
            exchange.access_key_id = key_id_as_given(exchange)
            raise
        exchange.access_key_id = signed.access_key_id
        found = self._credentials(exchange, signed)
        if found is None:
            raise InvalidClientTokenId(_NO_SUCH_KEY)
        exchange.account_id, exchange.user = found.account_id, found.user_name
        return signed, found

    def _credentials(self, exchange: "Exchange", signed: "Signed") -> "Credentials | None":
        """Of the key, or of the session if there is a token."""
        exchange.key_id = signed.access_key_id
        if not signed.token:
            return self._find(exchange, signed.access_key_id)
        token = read_token(signed.token)
        if token is None or token.access_key_id != signed.access_key_id:
            return None
        exchange.key_id = token.parent_key_id
        parent = self._find(exchange, token.parent_key_id)
        found = None if parent is None else credentials_of(token, parent)
        if found is not None and token.expires_at <= self._now().timestamp():
            raise ExpiredToken("The security token included in the request is expired")
        return found

    def check_key(self, exchange: "Exchange") -> None:
        """Whether the key that a request was signed with is still there, or there are no keys still.

        Raises:
            InvalidSecurity: it came without one, and there are keys now.
            InvalidClientTokenId: it was removed, or has expired.
            ServiceUnavailable: the file of credentials can't be read.
        """
        if not exchange.key_id:
            if self.is_in_force:
                raise InvalidSecurity(_NOT_SIGNED)
        elif self._find(exchange, exchange.key_id) is None:
            raise InvalidClientTokenId(_NO_SUCH_KEY)

    def _find(self, exchange: "Exchange", access_key_id: str) -> "Credentials | None":
        try:
            found = None if self._key_file is None else self._key_file.find(access_key_id)
        except BadKeyFile as error:
            exchange.cause = f"BadKeyFile: {error}"
            raise ServiceUnavailable("The endpoint's access keys can't be read at the moment.") from None
        return found or keys.find_credentials(self._store, access_key_id)

    def authorize(
        self, exchange: "Exchange", identity: Identity, request: "Request", caller: "Caller"
    ) -> "Caller":
        """See `authorization.authorize`; without keys, see OpenAccess."""
        if not self._latch.is_set:
            return self._open.authorize(exchange, identity, request, caller)
        return authorize(self._store, exchange, identity, request, caller, self._now())

    def authorize_move(
        self, exchange: "Exchange", identity: Identity, request: "StartMessageMoveTask", caller: "Caller"
    ) -> None:
        """See `authorization.authorize_move`; without keys, see OpenAccess."""
        if self._latch.is_set:
            authorize_move(self._store, exchange, identity, request, caller, self._now())
