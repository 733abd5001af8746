"""How many values a JSON text holds, counted before it is parsed.

Parsing 8 MiB of tiny members takes a second and 400 MB, most of it with the interpreter's lock held. No action has more
than some hundreds of them. The text is counted in pieces, between which other threads can run, and only until there are
too many.
"""

import time

from sqsqlite.contract.limits import Limits
from sqsqlite.errors import SerializationException

_MOST_VALUES = 5_000
_VALUES_OF_AN_ENTRY = 100  # ten attributes, each with all of its members
_PIECE_BYTES = 64 * 1024


def check_value_count(text: bytes, limits: Limits) -> None:
    """Refuse more values than any action takes: 5,000, or 100 for each entry that a batch may have.

    A value is a member of an object or an array at any depth.

    Raises:
        SerializationException: there are more. A text that is not JSON may pass; the parser refuses it.
    """
    most = max(_MOST_VALUES, _VALUES_OF_AN_ENTRY * limits.batch_entry_count)
    # Each value takes two characters: itself and a comma or a bracket.
    if len(text) > 2 * most and _has_more(text, most):
        raise SerializationException(
            f"The request body holds more than {most} values, which no action takes."
        )


def _has_more(text: bytes, most: int) -> bool:
    """Whether more than so many commas and opening brackets stand outside of strings: one for each value."""
    found = start = 0
    is_in_string = False
    while start < len(text):
        if start:
            time.sleep(
                0
            )  # gives the interpreter's lock to the event loop, which would wait 5 ms for it otherwise
        piece = text[start : start + _PIECE_BYTES]
        start += len(piece)
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2 and start < len(text):
            # What the last backslash escapes stands in the next piece: both go there.
            piece = piece[:-1]
            start -= 1
        parts = piece.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        outside = b"".join(parts[is_in_string::2])
        found += outside.count(b",") + outside.count(b"{") + outside.count(b"[")
        if found > most:
            return True
        is_in_string ^= len(parts) % 2 == 0
    return False
