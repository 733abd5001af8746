"""Where a dead letter was before the queue that it died in last: in a chain of dead-letter queues it died there too.

The last move has columns of its own in `sqs_dead_letters`; the earlier ones share one, in which most have NULL.
"""

import json
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec

_Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Move(NamedTuple):
    """From which queue, after how many receives, and when (milliseconds since 1970 UTC)."""

    source_queue_id: _Number
    source_arn: str
    receive_count: _Number
    moved_at: _Number


_decode = msgspec.json.Decoder(Annotated[list[Move], msgspec.Meta(min_length=1)]).decode


def read(earlier: str) -> list[Move]:
    """The earlier moves, the latest last; at least one.

    Raises:
        ValueError: they are damaged.
    """
    moves: list[Move] = _decode(earlier)
    return moves


def write(moves: Sequence[Move]) -> str | None:
    """The column's text; None for no moves."""
    return json.dumps(moves, separators=(",", ":")) if moves else None
