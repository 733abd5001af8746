"""Receipt handles: opaque outside, and inside all that tells apart who holds one.

Base64 of: version, queue id, lease id, a part of the message id, the instant of the receive, the receive's token, and a
MAC under the file's secret. So a handle that was never issued, another queue's, an old one and one whose message is
gone are different errors, even after the row is gone. No `-` occurs, which the extended-client convention needs.
"""

import binascii
import hashlib
import struct
from typing import NamedTuple

_FIELDS = struct.Struct(">BxIQ4sQ12s")  # 38 bytes
_MAC_BYTES = 7  # so that a handle needs no padding: 45 bytes are 60 characters
_VERSION = 1
_LENGTH = 60


class Receipt(NamedTuple):
    """What a handle says. `received_at` in milliseconds since 1970 UTC."""

    queue_id: int
    lease_id: int
    message_id_part: bytes
    received_at: int
    token: bytes


def issue(secret: bytes, receipt: Receipt) -> str:
    """The handle for a receive."""
    fields = _FIELDS.pack(_VERSION, *receipt)
    mac = hashlib.blake2b(fields, key=secret, digest_size=_MAC_BYTES).digest()
    return binascii.b2a_base64(fields + mac, newline=False).decode("ascii")


def parse(secret: bytes, handle: str) -> Receipt | None:
    """What a handle says; None if this file never issued it."""
    if len(handle) != _LENGTH:
        return None
    try:
        raw = binascii.a2b_base64(handle.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
    fields, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
    if len(fields) != _FIELDS.size:
        return None
    # Not a secret comparison worth timing: forging needs 2**56 tries against a local file, but it costs nothing.
    expected = hashlib.blake2b(fields, key=secret, digest_size=_MAC_BYTES).digest()
    if not _equal(mac, expected):
        return None
    version, *values = _FIELDS.unpack(fields)
    return Receipt(*values) if version == _VERSION else None


def _equal(one: bytes, other: bytes) -> bool:
    from hmac import compare_digest

    return compare_digest(one, other)
