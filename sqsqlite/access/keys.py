# SPDX-License-Identifier: Apache-2.0
"""Access keys of the endpoint: whose they are, and the secrets that requests are signed with.

The secrets stand in the file as they are, because a signature of version 4 is a MAC. A user who can read the file, or a
backup of it, can sign. So users who may not write a file with keys may not read it, and a key that is deleted is
overwritten.
"""

import base64
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqsqlite.contract.limits import Range
from sqsqlite.errors import InvalidParameterValue
from sqsqlite.sql import access as sql
from sqsqlite.store import secrecy
from sqsqlite.store.driver import dbapi
from sqsqlite.store.translate import translate

if TYPE_CHECKING:
    from sqsqlite.store.driver import Connection
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction

GRACE_SECONDS = Range(0, 31_536_000)
"""How long a rotated key may go on; a year at most."""

# Not Amazon's AKIA: a key of here shall not be taken for one of there, by people or by scanners for leaked keys.
_PREFIX = "SQSL"
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
    """What a signature is checked with."""

    account_id: str
    user_name: str
    secret_access_key: str


@dataclass(frozen=True, slots=True)
class NewKey(Credentials):
    """A key that was just made: the only time that its secret is shown."""

    access_key_id: str


def check_account_id(account_id: str) -> None:
    """Raise InvalidParameterValue if it is not twelve digits."""
    if not _is_account_id(account_id):
        raise InvalidParameterValue(
            f"Value {account_id} for parameter AccountId is invalid. Reason: An account is twelve digits."
        )


def check_user_name(user_name: str) -> None:
    """Raise InvalidParameterValue if it is more than 64 characters, or others than letters, digits and `_+=,.@-`."""
    if not _is_user_name(user_name):
        raise InvalidParameterValue(
            f"Value {user_name} for parameter UserName is invalid. Reason: Up to 64 letters, digits and _+=,.@- "
            "are allowed."
        )


def add_key(tx: "Transaction", account_id: str, user_name: str) -> NewKey:
    """Make a key, and the account if it has none yet. Who may not write the file, may not read it from now on.

    Args:
        account_id: twelve digits.
        user_name: up to 64 letters, digits and `_+=,.@-`; empty: the account itself.

    Raises:
        InvalidParameterValue: one of them is none.
    """
    check_account_id(account_id)
    check_user_name(user_name)
    made = NewKey(account_id, user_name, _secret(), _key_id())
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


def rotate_key(tx: "Transaction", access_key_id: str, grace_seconds: int) -> NewKey:
    """Make another key of the same account and user. The old one holds for `grace_seconds` (0: it ends now).

    Raises:
        InvalidParameterValue: the key does not exist or has expired, or the grace is out of its range.
    """
    if not GRACE_SECONDS.low <= grace_seconds <= GRACE_SECONDS.high:
        raise InvalidParameterValue(
            f"Value {grace_seconds} for parameter Grace is invalid. Reason: Must be {GRACE_SECONDS.low} to "
            f"{GRACE_SECONDS.high} seconds."
        )
    row = tx.execute(sql.SELECT_ACCESS_KEY, (access_key_id,)).fetchone()
    if row is None or _is_over(row, tx.now_ms):
        raise no_such_key(access_key_id)
    ends = {"access_key_id": access_key_id, "expires_at": tx.now_ms + 1000 * grace_seconds}
    with secrecy.overwriting(tx):
        tx.execute(sql.EXPIRE_ACCESS_KEY, ends)
    return add_key(tx, row[0], row[1])


def remove_key(tx: "Transaction", access_key_id: str) -> None:
    """Take a key away, and its secret out of the file; its account and their queues stay.

    Raises:
        InvalidParameterValue: the key does not exist.
    """
    if tx.execute(sql.SELECT_ACCESS_KEY, (access_key_id,)).fetchone() is None:
        raise no_such_key(access_key_id)
    with secrecy.overwriting(tx):
        tx.execute(sql.DELETE_ACCESS_KEY, {"access_key_id": access_key_id})
    tx.has_erased = True


def list_keys(connection: "Connection") -> list[AccessKey]:
    """All keys, expired ones too until the next key is made, by their ids."""
    return [AccessKey(*row) for row in connection.execute(sql.LIST_ACCESS_KEYS).fetchall()]


# With each request, outside a transaction: each is one statement.


def find_credentials(store: "Store", access_key_id: str) -> Credentials | None:
    """Whose key it is, and its secret; None: it does not exist or has expired."""
    row = _row(store, sql.SELECT_ACCESS_KEY, (access_key_id,))
    return None if row is None or _is_over(row, store.clock.now_ms()) else Credentials(*row[:3])


def has_keys(store: "Store") -> bool:
    """Whether there is any key, be it expired."""
    return _row(store, sql.FIND_ACCESS_KEY, ()) is not None


def find_policy(store: "Store", account_id: str, name: str) -> tuple[str | None] | None:
    """The queue's Policy, as a row; None: the queue does not exist."""
    found: tuple[str | None] | None = _row(store, sql.SELECT_POLICY, (account_id, name))
    return found


def _row(store: "Store", statement: str, parameters: tuple[str, ...]) -> Any:
    with store.file.readers.lent() as connection:
        try:
            return connection.execute(statement, parameters).fetchone()
        except dbapi.Error as error:
            raise translate(error, store.path) from error


def _is_over(row: tuple[Any, ...], now_ms: int) -> bool:
    return row[3] is not None and row[3] <= now_ms


def no_such_key(access_key_id: str) -> InvalidParameterValue:
    """The refusal of an id that no key has."""
    return InvalidParameterValue(
        f"Value {access_key_id} for parameter AccessKeyId is invalid. Reason: This key does not exist."
    )


def _key_id() -> str:
    return _PREFIX + base64.b32encode(secrets.token_bytes(10)).decode()


def _secret() -> str:
    return secrets.token_urlsafe(30)
