# SPDX-License-Identifier: Apache-2.0
"""Temporary credentials of an access key, as AWS STS gives them, without a row of their own.

All that a server must know of a session stands in its token, which a MAC under the key's secret protects; the session's
own secret is another MAC under it. So a session ends with its key, and no file grows by it.
"""

import base64
import hmac
import secrets
from dataclasses import dataclass

from sqsqlite.access.keys import Credentials
from sqsqlite.contract.limits import Range
from sqsqlite.errors import InvalidParameterValue

DURATION_SECONDS = Range(900, 129_600)
"""How long a session may last: 15 minutes to 36 hours, as GetSessionToken of AWS STS has it."""

_PREFIX = "ASIA"  # SDKs and people know temporary keys by it
_VERSION = "1"
_MAC_BYTES = 32
_TOKEN_LABEL = b"sqsqlite session token\0"
_SECRET_LABEL = b"sqsqlite session secret\0"


@dataclass(frozen=True, slots=True)
class Session:
    """Temporary credentials. `expires_at`: seconds since 1970 UTC."""

    access_key_id: str
    secret_access_key: str
    token: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class SessionToken:
    """What a token says of itself, which `credentials_of` checks.

    Attributes:
        access_key_id: the session's own.
        parent_key_id: the key that it was made with.
        expires_at: seconds since 1970 UTC.
    """

    access_key_id: str
    parent_key_id: str
    account_id: str
    expires_at: int
    text: str
    payload: bytes
    mac: bytes


def make_session(parent_key_id: str, parent: Credentials, duration_seconds: int, now: float) -> Session:
    """Temporary credentials that act as the key's account and user.

    Args:
        parent: what belongs to the key.
        duration_seconds: see DURATION_SECONDS.
        now: the wall clock, in seconds since 1970 UTC: signatures go by it too.

    Raises:
        InvalidParameterValue: the duration is out of its range.
    """
    low, high = DURATION_SECONDS.low, DURATION_SECONDS.high
    if not low <= duration_seconds <= high:
        raise InvalidParameterValue(
            f"Value {duration_seconds} for parameter DurationSeconds is invalid. Reason: Must be {low} to {high} "
            "seconds."
        )
    access_key_id = _PREFIX + base64.b32encode(secrets.token_bytes(10)).decode()
    expires_at = int(now) + duration_seconds
    said = (_VERSION, access_key_id, parent_key_id, parent.account_id, str(expires_at))
    payload = "/".join(said).encode()
    mac = _mac(parent, _TOKEN_LABEL + payload)
    token = base64.urlsafe_b64encode(payload + mac).decode()
    return Session(access_key_id, _secret(parent, token), token, expires_at)


def read_token(text: str) -> SessionToken | None:
    """What a token says; None: it is none."""
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
        payload, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
        version, access_key_id, parent_key_id, account_id, expires_at = payload.decode("ascii").split("/")
        found = SessionToken(access_key_id, parent_key_id, account_id, int(expires_at), text, payload, mac)
    except ValueError:  # errors of Base64 and of Unicode are some
        return None
    return found if version == _VERSION else None


def credentials_of(token: SessionToken, parent: Credentials) -> Credentials | None:
    """What the signature of a session is checked with; None: the token was not made with this key."""
    if not hmac.compare_digest(_mac(parent, _TOKEN_LABEL + token.payload), token.mac):
        return None
    if token.account_id != parent.account_id:
        # A section of a key file can be given to another account.
        return None
    return Credentials(parent.account_id, parent.user_name, _secret(parent, token.text))


def _secret(parent: Credentials, token: str) -> str:
    """Of as many characters as a key's."""
    return base64.urlsafe_b64encode(_mac(parent, _SECRET_LABEL + token.encode())[:30]).decode()


def _mac(parent: Credentials, message: bytes) -> bytes:
    return hmac.digest(parent.secret_access_key.encode(), message, "sha256")
