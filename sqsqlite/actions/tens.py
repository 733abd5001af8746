"""Look-ups of ten at a time: a statement with ten places is prepared once, whatever the number of rows asked for."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

TEN = 10


def in_tens(values: Sequence[T]) -> Iterator[list[T]]:
    """The values, ten at a time; places left over in the last ten repeat its first value."""
    for start in range(0, len(values), TEN):
        ten = list(values[start : start + TEN])
        yield ten + ten[:1] * (TEN - len(ten))
