# SPDX-License-Identifier: Apache-2.0
"""Receipt handles: opaque outside, and inside all that tells apart who holds one.

Base64 of: version, queue id, lease id, a part of the message id, the instant of the receive, the receive's token, and a
MAC under the file's secret. So a handle that was never issued, another queue's, an old one and one whose message is
gone are different errors, even after the row is gone. No `-` occurs, which the extended-client convention needs.
"""

import binascii
import hashlib
import struct
from hmac import compare_digest
from typing import NamedTuple

_FIELDS = struct.Struct(">BxIQ4sQ12s")  # 38 bytes
_MAC_BYTES = 7  # so that a handle needs no padding: 45 bytes are 60 characters
_VERSION = 1
_LENGTH = 60
_BYTES = _FIELDS.size + _MAC_BYTES


class Receipt(NamedTuple):
    """What a handle says. `received_at` in milliseconds since 1970 UTC."""

    queue_id: int
    lease_id: int
    message_id_part: bytes
    received_at: int
    token: bytearray


class Sealer:
    """Issues and reads the handles of one file.

    Args:
        secret: the file's key, 32 bytes.
    """

    __slots__ = ("_keyed",)

    def __init__(self, secret: bytes) -> None:
        self._keyed = hashlib.blake2b(key=secret, digest_size=_MAC_BYTES)

    def issue(
        self, queue_id: int, lease_id: int, message_id_part: bytes, received_at: int, token: bytes
    ) -> str:
        """The handle for a receive; the arguments are a Receipt's."""
        fields = _FIELDS.pack(_VERSION, queue_id, lease_id, message_id_part, received_at, token)
        keyed = self._keyed.copy()
        keyed.update(fields)
        return binascii.b2a_base64(fields + keyed.digest(), newline=False).decode("ascii")

    def parse(self, handle: str) -> Receipt | None:
        """What a handle says; None if this file never issued it."""
        if len(handle) != _LENGTH:
            return None
        try:
            raw = binascii.a2b_base64(handle, strict_mode=True)
        except (binascii.Error, ValueError):
            return None
        if len(raw) != _BYTES:
            return None
        fields = raw[:-_MAC_BYTES]
        keyed = self._keyed.copy()
        keyed.update(fields)
        if not compare_digest(raw[-_MAC_BYTES:], keyed.digest()):
            return None
        version, queue_id, lease_id, message_id_part, received_at, token = _FIELDS.unpack(fields)
        if version != _VERSION:
            return None
        return Receipt(queue_id, lease_id, message_id_part, received_at, bytearray(token))
