# SPDX-License-Identifier: Apache-2.0
"""Access keys, their temporary sessions, and the secrets that requests are signed with.

The database holds the secrets in plain text, because a signature of version 4 is a MAC: a user who can read the file or
a backup of it can sign. So users who may only read the file lose that right when it gets a key, and deleting a key
overwrites its secret.

A session, as AWS STS gives it, needs no row. Its token holds all that a server must know, protected by a MAC under the
key's secret; the session's own secret is another MAC under it. So a session ends with its key.
"""

import base64
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from sqsqlite.contract.limits import Range
from sqsqlite.errors import InvalidParameterValue
from sqsqlite.sql import access as sql
from sqsqlite.store import secrecy
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.store import Store
from sqsqlite.store.transaction import Transaction
from sqsqlite.store.translate import translate

GRACE_SECONDS = Range(0, 31_536_000)
"""How long a rotated key may continue to work; a year at most."""

DURATION_SECONDS = Range(900, 129_600)
"""How long a session may last: 15 minutes to 36 hours, as GetSessionToken of AWS STS has it."""

# Not Amazon's AKIA: neither people nor scanners for leaked keys should take these keys for Amazon's.
_PREFIX = "SQSL"
_SESSION_PREFIX = "ASIA"  # SDKs and people recognise temporary keys by it
_VERSION = "1"
_MAC_BYTES = 32
_TOKEN_LABEL = b"sqsqlite session token\0"
_SECRET_LABEL = b"sqsqlite session secret\0"
_is_account_id = re.compile(r"[0-9]{12}").fullmatch
_is_user_name = re.compile(r"[A-Za-z0-9_+=,.@-]{0,64}").fullmatch


@dataclass(frozen=True, slots=True)
class AccessKey:
    """A key as it is listed. Instants: milliseconds since 1970 UTC.

    Attributes:
        user_name: for policies that name a user; empty: the account itself.
        expires_at: None: never.
    """

    access_key_id: str
    account_id: str
    user_name: str
    created_at: int
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secret of a key or a session, and its account and user."""

    account_id: str
    user_name: str
    secret_access_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewKey(Credentials):
    """A new key. Its secret is shown only here."""

    access_key_id: str


@dataclass(frozen=True, slots=True)
class Session:
    """Temporary credentials. `expires_at`: seconds since 1970 UTC."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    token: str = field(repr=False)
    expires_at: int


@dataclass(frozen=True, slots=True)
class SessionToken:
    """The content of a token, which `credentials_of` checks.

    Attributes:
        access_key_id: the session's own.
        parent_key_id: the key that the session was made with.
        expires_at: seconds since 1970 UTC.
    """

    access_key_id: str
    parent_key_id: str
    account_id: str
    expires_at: int
    text: str
    payload: bytes
    mac: bytes


def check_account_id(account_id: object) -> None:
    """Raise InvalidParameterValue if it is not twelve digits."""
    if not isinstance(account_id, str) or not _is_account_id(account_id):
        raise InvalidParameterValue(
            f"Value {account_id} for parameter AccountId is invalid. Reason: An account is twelve digits."
        )


def check_user_name(user_name: object) -> None:
    """Raise InvalidParameterValue unless it is up to 64 letters, digits and `_+=,.@-`."""
    if not isinstance(user_name, str) or not _is_user_name(user_name):
        raise InvalidParameterValue(
            f"Value {user_name} for parameter UserName is invalid. Reason: Up to 64 letters, digits and _+=,.@- "
            "are allowed."
        )


def _is_within(seconds: object, allowed: Range) -> bool:
    return isinstance(seconds, int) and seconds in allowed


def add_key(tx: Transaction, account_id: str, user_name: str) -> NewKey:
    """Create a key, and the account if it is new. Users who may not write the file lose the right to read it.

    Args:
        account_id: twelve digits.
        user_name: up to 64 letters, digits and `_+=,.@-`; empty: the account itself.

    Raises:
        InvalidParameterValue: the account id or the user name is malformed.
    """
    check_account_id(account_id)
    check_user_name(user_name)
    made = NewKey(account_id, user_name, secrets.token_urlsafe(30), _new_id(_PREFIX))
    secrecy.tighten(tx.settings.path)
    tx.execute(sql.INSERT_ACCOUNT, {"account_id": account_id, "now_ms": tx.now_ms})
    key = {
        "access_key_id": made.access_key_id,
        "account_id": account_id,
        "user_name": user_name,
        "secret_access_key": made.secret_access_key,
        "now_ms": tx.now_ms,
    }
    with secrecy.overwriting(tx):
        if tx.execute(sql.DELETE_EXPIRED_ACCESS_KEYS, {"now_ms": tx.now_ms}).rowcount:
            tx.has_erased = True
        tx.execute(sql.INSERT_ACCESS_KEY, key)
    return made


def rotate_key(tx: Transaction, access_key_id: str, grace_seconds: int) -> NewKey:
    """Create another key of the same account and user. The old key works for `grace_seconds` more (0: not at all).

    Raises:
        InvalidParameterValue: there is no such key, the key has expired, or the grace is out of its range.
    """
    if not _is_within(grace_seconds, GRACE_SECONDS):
        raise InvalidParameterValue(
            f"Value {grace_seconds} for parameter Grace is invalid. Reason: Must be {GRACE_SECONDS.low} to "
            f"{GRACE_SECONDS.high} seconds."
        )
    row = tx.execute(sql.SELECT_ACCESS_KEY, (access_key_id,)).fetchone()
    if row is None or _has_expired(row, tx.now_ms):
        raise no_such_key(access_key_id)
    ends = {"access_key_id": access_key_id, "expires_at": tx.now_ms + 1000 * grace_seconds}
    with secrecy.overwriting(tx):
        tx.execute(sql.EXPIRE_ACCESS_KEY, ends)
    return add_key(tx, row[0], row[1])


def remove_key(tx: Transaction, access_key_id: str) -> None:
    """Delete a key and overwrite its secret. Its account and the account's queues stay.

    Raises:
        InvalidParameterValue: there is no such key.
    """
    if tx.execute(sql.SELECT_ACCESS_KEY, (access_key_id,)).fetchone() is None:
        raise no_such_key(access_key_id)
    with secrecy.overwriting(tx):
        tx.execute(sql.DELETE_ACCESS_KEY, {"access_key_id": access_key_id})
    tx.has_erased = True


def list_keys(connection: Connection) -> list[AccessKey]:
    """List all keys by their ids. Expired keys remain until the next key is created."""
    return [AccessKey(*row) for row in connection.execute(sql.LIST_ACCESS_KEYS).fetchall()]


def no_such_key(access_key_id: str) -> InvalidParameterValue:
    """Make the error for an id that belongs to no key."""
    return InvalidParameterValue(
        f"Value {access_key_id} for parameter AccessKeyId is invalid. Reason: This key does not exist."
    )


# --- asked with each request, outside a transaction, in one statement each


def find_credentials(store: Store, access_key_id: str) -> Credentials | None:
    """Return a key's account, user and secret; None: there is no such key, or it has expired."""
    row = _row(store, sql.SELECT_ACCESS_KEY, (access_key_id,))
    return None if row is None or _has_expired(row, store.clock.now_ms()) else Credentials(*row[:3])


def has_keys(store: Store) -> bool:
    """Return whether there is any key, expired ones included."""
    return _row(store, sql.FIND_ACCESS_KEY, ()) is not None


def find_policy(store: Store, account_id: str, name: str) -> tuple[str | None] | None:
    """Return the queue's Policy, as a row; None: there is no such queue."""
    found: tuple[str | None] | None = _row(store, sql.SELECT_POLICY, (account_id, name))
    return found


def _row(store: Store, statement: str, parameters: tuple[str, ...]) -> Any:
    with store.file.readers.lent() as connection:
        try:
            return connection.execute(statement, parameters).fetchone()
        except dbapi.Error as error:
            raise translate(error, store.path) from error


def _has_expired(row: tuple[Any, ...], now_ms: int) -> bool:
    return row[3] is not None and row[3] <= now_ms


# --- sessions


def make_session(parent_key_id: str, parent: Credentials, duration_seconds: int, now: float) -> Session:
    """Make temporary credentials that act as the key's account and user.

    Args:
        parent: the credentials of the key.
        duration_seconds: see DURATION_SECONDS.
        now: the wall clock, in seconds since 1970 UTC, as for signatures.

    Raises:
        InvalidParameterValue: the duration is out of its range.
    """
    low, high = DURATION_SECONDS.low, DURATION_SECONDS.high
    if not _is_within(duration_seconds, DURATION_SECONDS):
        raise InvalidParameterValue(
            f"Value {duration_seconds} for parameter DurationSeconds is invalid. Reason: Must be {low} to {high} "
            "seconds."
        )
    access_key_id = _new_id(_SESSION_PREFIX)
    expires_at = int(now) + duration_seconds
    parts = (_VERSION, access_key_id, parent_key_id, parent.account_id, str(expires_at))
    payload = "/".join(parts).encode()
    mac = _mac(parent, _TOKEN_LABEL + payload)
    token = base64.urlsafe_b64encode(payload + mac).decode()
    return Session(access_key_id, _session_secret(parent, token), token, expires_at)


def read_token(text: str) -> SessionToken | None:
    """Read a token without checking its MAC; None: it is malformed."""
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
        payload, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
        version, access_key_id, parent_key_id, account_id, expires_at = payload.decode("ascii").split("/")
        found = SessionToken(access_key_id, parent_key_id, account_id, int(expires_at), text, payload, mac)
    except ValueError:  # the errors of Base64 and of Unicode are ValueErrors
        return None
    return found if version == _VERSION else None


def credentials_of(token: SessionToken, parent: Credentials) -> Credentials | None:
    """Return the credentials of a session; None: the token was not made with this key."""
    if not hmac.compare_digest(_mac(parent, _TOKEN_LABEL + token.payload), token.mac):
        return None
    if token.account_id != parent.account_id:
        # A key file's section may name another account by now.
        return None
    return Credentials(parent.account_id, parent.user_name, _session_secret(parent, token.text))


def _session_secret(parent: Credentials, token: str) -> str:
    """Derive a session's secret, as long as a key's."""
    return base64.urlsafe_b64encode(_mac(parent, _SECRET_LABEL + token.encode())[:30]).decode()


def _mac(parent: Credentials, message: bytes) -> bytes:
    return hmac.digest(parent.secret_access_key.encode(), message, "sha256")


def _new_id(prefix: str) -> str:
    return prefix + base64.b32encode(secrets.token_bytes(10)).decode()
