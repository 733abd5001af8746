# SPDX-License-Identifier: Apache-2.0
"""Who a request is from, by its signature and the keys of the database and of a key file."""

import mmap
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sqsqlite.access import keys
from sqsqlite.access.authorization import authorize, authorize_move
from sqsqlite.access.exchange import (
    TRACE_ID,
    Exchange,
    ExpiredToken,
    Identity,
    IncompleteSignature,
    InvalidClientTokenId,
    ServiceUnavailable,
)
from sqsqlite.access.key_file import BadKeyFile, KeyFile
from sqsqlite.access.open_access import Hosts, OpenAccess
from sqsqlite.access.signature import (
    Signed,
    check_head,
    check_signature,
    is_signed,
    key_id_as_given,
    read_signature,
)
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract.requests import Request, StartMessageMoveTask
from sqsqlite.errors import InvalidSecurity
from sqsqlite.store.store import Store

LOOK_SECONDS = 0.1
"""How often a server without keys looks for the first key."""

_NOT_SIGNED = "All requests to this endpoint must be signed with Signature Version 4."
_NO_SUCH_KEY = "The security token included in the request is invalid."


class Latch:
    """Whether a server has, or had, access keys. Once set it stays set.

    Processes that are forked after its creation share it, replacements of dead processes included.

    Args:
        is_set: its state at the beginning.
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
        """Set it for all processes."""
        self._shared[0] = 1


def _now() -> datetime:
    return datetime.now(UTC)


class Access:
    """Signed requests alone once there is a key; until then see OpenAccess.

    Removing the last key does not reopen a running server: it refuses everybody until there is a new key.

    Args:
        key_file: keys to use together with those of the database. A server with a key file, even an empty one, is
            never open.
        require_tls: refuse requests that did not come over HTTPS.
        now: the wall clock, by which clients sign.
        look_seconds: see LOOK_SECONDS.
        latch: whether there are or were keys, shared by the server's processes; None: there is one process.
        hosts: see OpenAccess.
    """

    def __init__(
        self,
        store: Store,
        key_file: KeyFile | None = None,
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

    def needs_digest(self, exchange: Exchange) -> bool:
        """Return whether `authenticate` will hash the body: there are keys, and the headers are in order.

        Raises:
            SQSError: `authenticate` would refuse the request for its headers alone.
        """
        found = self._check_head(exchange)
        if found is not None:
            check_head(exchange, found[0], self._now())
        return found is not None

    def authenticate(self, exchange: Exchange) -> Identity:
        """Return the account and user of the key that the request is signed with.

        Raises:
            InvalidSecurity: the request has no signature of version 4, or did not come over TLS where TLS is required.
            IncompleteSignature: the signature is malformed, or does not cover a part that it must cover.
            InvalidClientTokenId: there is no such key, the key has expired, or the session token is of another key.
            ExpiredToken: the session has expired.
            RequestExpired: the request was signed too long ago, or for later.
            SignatureDoesNotMatch: the request was signed with another secret, or changed.
            ServiceUnavailable: the key file can't be read.
            InvalidParameterValue: the query string has more than 1,000 parameters.
            AccessDenied: there are no keys, and the request may come from a web page; see OpenAccess.
        """
        found = self._check_head(exchange)
        if found is None:
            return self._open.authenticate(exchange)
        signed, credentials = found
        check_signature(exchange, signed, credentials.secret_access_key, self._now())
        if TRACE_ID.decode() not in signed.signed_headers:
            # The message would keep a header that any program between client and server could have written.
            exchange.headers.pop(TRACE_ID, None)
        return Identity(credentials.account_id, credentials.user_name)

    def _check_head(self, exchange: Exchange) -> tuple[Signed, keys.Credentials] | None:
        """Return the signature, not compared yet, and the credentials to compare it with; None without keys."""
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

    def _credentials(self, exchange: Exchange, signed: Signed) -> keys.Credentials | None:
        """Return the credentials of the key, or of the session if the request has a token."""
        exchange.key_id = signed.access_key_id
        if not signed.token:
            return self._find(exchange, signed.access_key_id)
        token = keys.read_token(signed.token)
        if token is None or token.access_key_id != signed.access_key_id:
            return None
        exchange.key_id = token.parent_key_id
        parent = self._find(exchange, token.parent_key_id)
        found = None if parent is None else keys.credentials_of(token, parent)
        if found is not None and token.expires_at <= self._now().timestamp():
            raise ExpiredToken("The security token included in the request is expired")
        return found

    def check_key(self, exchange: Exchange) -> None:
        """Check again, while a request waits, that its key still exists, or that there are still no keys.

        Raises:
            InvalidSecurity: the request is not signed, and there are keys now.
            InvalidClientTokenId: the key was removed, or has expired.
            ServiceUnavailable: the key file can't be read.
        """
        if not exchange.key_id:
            if self.is_in_force:
                raise InvalidSecurity(_NOT_SIGNED)
        elif self._find(exchange, exchange.key_id) is None:
            raise InvalidClientTokenId(_NO_SUCH_KEY)

    def _find(self, exchange: Exchange, access_key_id: str) -> keys.Credentials | None:
        try:
            found = None if self._key_file is None else self._key_file.find(access_key_id)
        except BadKeyFile as error:
            exchange.cause = f"BadKeyFile: {error}"
            raise ServiceUnavailable("The endpoint's access keys can't be read at the moment.") from None
        return found or keys.find_credentials(self._store, access_key_id)

    def authorize(self, exchange: Exchange, identity: Identity, request: Request, caller: Caller) -> Caller:
        """Return the caller for the operation; see `authorization.authorize`, and without keys OpenAccess."""
        if not self._latch.is_set:
            return self._open.authorize(exchange, identity, request, caller)
        return authorize(self._store, exchange, identity, request, caller, self._now())

    def authorize_move(
        self, exchange: Exchange, identity: Identity, request: StartMessageMoveTask, caller: Caller
    ) -> None:
        """Check the rights that a move task will use; see `authorization.authorize_move`.

        Call it after `authorize`, in a thread. Without keys everything is allowed: a task stays inside its account.
        """
        if self._latch.is_set:
            authorize_move(self._store, exchange, identity, request, caller, self._now())
