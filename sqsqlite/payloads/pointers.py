# SPDX-License-Identifier: Apache-2.0
"""The format of Amazon's extended clients: the body that points to a payload, the attribute, the longer receipt handle.

Source: amazon-sqs-java-extended-client-lib 2.1.1 with payloadoffloading-common 2.2.0; amazon-sqs-extended-client 1.0.1.
"""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

SIZE_ATTRIBUTE = "ExtendedPayloadSize"
# The second name is that of older versions of Amazon's clients, which newer ones still read.
SIZE_ATTRIBUTES = (SIZE_ATTRIBUTE, "SQSLargePayloadSize")
# Of the ten attributes that a message may have, the size is one.
MAX_ATTRIBUTES = 9
_CLASS = "software.amazon.payloadoffloading.PayloadS3Pointer"
_CLASSES = (_CLASS, "com.amazon.sqs.javamessaging.MessageS3Pointer")
_BUCKET_MARK = "-..s3BucketName..-"
_KEY_MARK = "-..s3Key..-"


class Pointer(NamedTuple):
    """Where a payload is: the bucket, and the object's key in it."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"


def body_of(pointer: Pointer) -> str:
    """The body of a message whose payload is there, as Amazon's clients write it."""
    return json.dumps([_CLASS, {"s3BucketName": pointer.bucket, "s3Key": pointer.key}], separators=(",", ":"))


def pointer_in(body: str) -> Pointer | None:
    """The pointer that a body holds. None: it holds none that can be read."""
    try:
        match json.loads(body):
            case [str(kind), {"s3BucketName": str(bucket), "s3Key": str(key)}] if kind in _CLASSES:
                return Pointer(bucket, key)
    except (ValueError, RecursionError):
        pass
    return None


def size_told(attributes: Mapping[str, Any]) -> int | None:
    """The payload's size in bytes that the attributes of a message tell, in boto3's form or as Python's values.

    None: there is no such attribute, so the body is the message itself.
    """
    for name in SIZE_ATTRIBUTES:
        if name in attributes:
            value = attributes[name]
            text: Any = value.get("StringValue") if isinstance(value, Mapping) else value
            try:
                return int(Decimal(text))
            except (ArithmeticError, TypeError, ValueError):
                return -1  # no size: no payload has it
    return None


def marked(handle: str, pointer: Pointer) -> str:
    """A receipt handle that also says where the payload is, so that a delete by the handle can remove it."""
    return f"{_BUCKET_MARK}{pointer.bucket}{_BUCKET_MARK}{_KEY_MARK}{pointer.key}{_KEY_MARK}{handle}"


def unmarked(handle: str) -> tuple[str, Pointer | None]:
    """The queue's own receipt handle, and the pointer, if the handle has one."""
    match handle.split(_BUCKET_MARK):
        case ["", bucket, rest]:
            match rest.split(_KEY_MARK):
                case ["", key, plain]:
                    return plain, Pointer(bucket, key)
    return handle, None


def size_of(body: bytes, attributes: Mapping[str, Mapping[str, Any]]) -> int:
    """Bytes of a message as Amazon's clients count them: the body, and each attribute's name, type and value."""
    return len(body) + sum(
        len(name.encode()) + sum(map(_length, _values(value))) for name, value in attributes.items()
    )


def _values(value: Mapping[str, Any]) -> Iterable[Any]:
    return (value.get(name) for name in ("DataType", "StringValue", "BinaryValue"))


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    return len(value) if isinstance(value, (bytes, bytearray)) else 0
