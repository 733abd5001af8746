# SPDX-License-Identifier: Apache-2.0
"""Checks of AWS Signature Version 4, in the Authorization header or in a presigned URL.

Source: "AWS Signature Version 4 for API requests", IAM user guide. This module computes the body's digest and never
takes it from a header. It compares times with the wall clock, as signers use it.
"""

import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from urllib.parse import quote, unquote_to_bytes

from sqsqlite.access.exchange import (
    TARGET,
    Exchange,
    IncompleteSignature,
    RequestExpired,
    SignatureDoesNotMatch,
)
from sqsqlite.contract.urlencoded import MOST_IN_URL, check_count

ALGORITHM = "AWS4-HMAC-SHA256"
SKEW_SECONDS = 900
MOST_SIGNED_HEADERS = 100
LONGEST_PRESIGNED_SECONDS = 604_800  # seven days

_match_authorization = re.compile(
    rf"{ALGORITHM}\s+Credential=(?P<credential>[^,\s]+),\s*SignedHeaders=(?P<headers>[^,\s]+),"
    r"\s*Signature=(?P<signature>[0-9a-f]{64})\s*"
).fullmatch
_KEY_ID = r"[\w-]{1,128}"
is_key_id = re.compile(_KEY_ID, re.ASCII).fullmatch
"""Whether a text can be an access key id in a signature."""
_match_credential = re.compile(
    rf"(?P<key>{_KEY_ID})/(?P<date>\d{{8}})/(?P<region>[a-z0-9-]+)/sqs/aws4_request", re.ASCII
).fullmatch
_collapse = re.compile(rb"[ \t]+").sub
_is_signature = re.compile(r"[0-9a-f]{64}").fullmatch
_is_time = re.compile(r"\d{8}T\d{6}Z", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True)
class Signed:
    """The parts of a request's signature.

    Attributes:
        access_key_id: the key that the signature names.
        scope: date, region, service and `aws4_request`.
        time_text: YYYYMMDDTHHMMSSZ.
        signed_headers: names in lower case.
        presigned_seconds: how long a presigned URL is valid; None: the signature is in the Authorization header.
        token: of a temporary session; None without one.
    """

    access_key_id: str
    scope: str
    time_text: str
    signed_headers: tuple[str, ...]
    signature: str
    presigned_seconds: int | None
    token: str | None


def is_signed(exchange: Exchange) -> bool:
    """Return whether the request has a signature of version 4, valid or not."""
    return _in_header(exchange) or "X-Amz-Signature" in _query_fields(exchange)


def _in_header(exchange: Exchange) -> bool:
    return exchange.header(b"authorization").startswith(ALGORITHM)


def read_signature(exchange: Exchange) -> Signed:
    """Read the parts of the request's signature.

    Raises:
        IncompleteSignature: a part is missing or malformed, or there are two signatures.
    """
    query = _query_fields(exchange)
    if "X-Amz-Signature" in query:
        if _in_header(exchange):
            raise IncompleteSignature("The Authorization header and X-Amz-Signature can't both be given.")
        return _presigned(query)
    match = _match_authorization(exchange.header(b"authorization"))
    if match is None:
        raise IncompleteSignature(
            f"The Authorization header must be {ALGORITHM} Credential=..., SignedHeaders=..., Signature=... of 64 "
            "hexadecimal digits."
        )
    access_key_id, scope = _credential(match["credential"])
    return Signed(
        access_key_id,
        scope,
        exchange.header(b"x-amz-date"),
        _header_names(match["headers"]),
        match["signature"],
        None,
        exchange.header(b"x-amz-security-token") or None,
    )


def key_id_as_given(exchange: Exchange) -> str:
    """Return the text in the key id's place of an unreadable signature, for the log: up to 128 ASCII characters."""
    text = _query_fields(exchange).get("X-Amz-Credential")
    if text is None:
        text = exchange.header(b"authorization").partition("Credential=")[2]
    return re.split(r"[/,\s]", text, maxsplit=1)[0][:128].encode("ascii", "backslashreplace").decode()[:128]


def _presigned(query: dict[str, str]) -> Signed:
    access_key_id, scope = _credential(query.get("X-Amz-Credential", ""))
    expires = query.get("X-Amz-Expires", "")
    if query.get("X-Amz-Algorithm") != ALGORITHM or not _is_signature(query["X-Amz-Signature"]):
        raise IncompleteSignature(
            f"X-Amz-Algorithm must be {ALGORITHM}, X-Amz-Signature 64 hexadecimal digits."
        )
    if not (expires.isdecimal() and 1 <= int(expires[:9]) <= LONGEST_PRESIGNED_SECONDS and len(expires) < 9):
        raise IncompleteSignature(
            f"X-Amz-Expires must be 1 to {LONGEST_PRESIGNED_SECONDS} seconds: {expires[:20]!r} was sent."
        )
    return Signed(
        access_key_id,
        scope,
        query.get("X-Amz-Date", ""),
        _header_names(query.get("X-Amz-SignedHeaders", "")),
        query["X-Amz-Signature"],
        int(expires),
        query.get("X-Amz-Security-Token"),
    )


def _header_names(text: str) -> tuple[str, ...]:
    """Split the names and refuse repeated ones: a long header would be hashed each time that it is named."""
    names = tuple(text.lower().split(";"))
    if len(names) > MOST_SIGNED_HEADERS or len(names) > len(set(names)):
        raise IncompleteSignature(
            f"SignedHeaders must name each header once, and {MOST_SIGNED_HEADERS} at most."
        )
    return names


def _credential(text: str) -> tuple[str, str]:
    match = _match_credential(text)
    if match is None:
        raise IncompleteSignature(
            "Credential must be a key id, YYYYMMDD, a region, sqs and aws4_request, with slashes between them."
        )
    return match["key"], f"{match['date']}/{match['region']}/sqs/aws4_request"


def check_head(exchange: Exchange, signed: Signed, now: datetime) -> None:
    """Check the headers and the URL, before anything is hashed.

    Raises:
        RequestExpired: the request was signed more than 15 minutes ago or ahead, or the presigned URL has expired.
        IncompleteSignature: the signature does not cover the host, the time or the action.
    """
    _check_time(signed, now)
    needed = {"host"} if signed.presigned_seconds is not None else {"host", "x-amz-date"}
    if TARGET in exchange.headers:
        # Otherwise an eavesdropper could repeat the body with another action.
        needed.add(TARGET.decode())
    if missing := sorted(needed - set(signed.signed_headers)):
        raise IncompleteSignature(f"SignedHeaders lacks {', '.join(missing)}.")


def check_signature(exchange: Exchange, signed: Signed, secret: str, now: datetime | None = None) -> None:
    """Compare the signature with the one that the secret gives.

    Args:
        secret: the secret access key of `signed.access_key_id`.
        now: the time to compare with; None: the wall clock.

    Raises:
        RequestExpired, IncompleteSignature: see `check_head`.
        SignatureDoesNotMatch: the request was signed with another secret, or changed.
    """
    check_head(exchange, signed, now or datetime.now(UTC))
    expected = sign(exchange, signed, secret)
    if not hmac.compare_digest(expected, signed.signature):
        raise SignatureDoesNotMatch(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
            "Access Key and signing method."
        )


def _check_time(signed: Signed, now: datetime) -> None:
    try:
        signed_at = datetime.fromisoformat(signed.time_text if _is_time(signed.time_text) else "")
    except ValueError:
        raise IncompleteSignature("X-Amz-Date must be YYYYMMDDTHHMMSSZ.") from None
    if signed.time_text[:8] != signed.scope[:8]:
        raise IncompleteSignature("The dates in X-Amz-Date and in Credential differ.")
    age_seconds = (now - signed_at).total_seconds()
    longest = SKEW_SECONDS if signed.presigned_seconds is None else signed.presigned_seconds
    if age_seconds > longest or age_seconds < -SKEW_SECONDS:
        raise RequestExpired(
            f"Signature expired: {signed.time_text} is more than {longest} seconds from now "
            f"({now:%Y%m%dT%H%M%SZ}). Check the clock."
        )


def digest_of(body: bytes) -> str:
    """Return the SHA-256 of a body in hexadecimal. Other threads can run meanwhile."""
    return sha256(body).hexdigest()


def sign(exchange: Exchange, signed: Signed, secret: str) -> str:
    """Return the request's signature under this secret, in hexadecimal."""
    digest = sha256(_canonical_request(exchange, signed)).hexdigest()
    to_sign = f"{ALGORITHM}\n{signed.time_text}\n{signed.scope}\n{digest}"
    return hmac.digest(_signing_key(secret, signed.scope), to_sign.encode(), "sha256").hex()


@lru_cache(maxsize=256)
def _signing_key(secret: str, scope: str) -> bytes:
    """Derive the key that a client signs with for a day."""
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _canonical_request(exchange: Exchange, signed: Signed) -> bytes:
    """Return the text to sign, from the headers' bytes as they arrived, in any encoding."""
    names = [name.encode("latin-1") for name in signed.signed_headers]
    headers = b"".join(
        b"%s:%s\n" % (name, _collapse(b" ", exchange.headers.get(name, b"").strip(b" \t"))) for name in names
    )
    return b"\n".join(
        (
            exchange.method.encode(),
            _canonical_path(exchange.path.decode("latin-1")).encode(),
            _canonical_query(exchange).encode(),
            headers,
            b";".join(names),
            (exchange.digest or digest_of(exchange.body)).encode(),
        )
    )


def _canonical_path(path: str) -> str:
    """Return the path without dot segments, encoded once more, as every service except S3 signs it."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            kept = kept[:-1]
        elif segment not in ("", "."):
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return quote("/" + "/".join(kept) + end, safe="/-_.~")


def _canonical_query(exchange: Exchange) -> str:
    encoded = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in _query_pairs(exchange)
        if name != b"X-Amz-Signature"
    )
    return "&".join(f"{name}={value}" for name, value in encoded)


def _query_pairs(exchange: Exchange) -> list[tuple[bytes, bytes]]:
    """Read the query string as the Query protocol does, plus signs too: the signature covers the executed request."""
    if not exchange.query:
        return []
    check_count(exchange.query, MOST_IN_URL)
    pairs = (part.partition(b"=") for part in exchange.query.replace(b"+", b" ").split(b"&") if part)
    return [(unquote_to_bytes(name), unquote_to_bytes(value)) for name, _, value in pairs]


def _query_fields(exchange: Exchange) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in _query_pairs(exchange)}
