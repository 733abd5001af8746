"""Numbers that several processes count, each its own, and any of them sums up."""

import mmap

_BYTES = 8


class Counts:
    """Shared memory with the same numbers for each of several places, all 0 at first.

    Processes forked after it was made share it. Only the process in a place writes the place's numbers, so no lock is
    needed; one that takes a dead process's place goes on with its numbers, so sums of counters never go back.

    Args:
        size: how many numbers a place has.
        places: how many places there are, from 1.
    """

    def __init__(self, size: int, places: int) -> None:
        self._size = size
        self._places = range(places)
        self._numbers = memoryview(mmap.mmap(-1, size * places * _BYTES)).cast("d")

    def of(self, place: int) -> "memoryview[float]":
        """The numbers of a place, from 0, to be written."""
        return self._numbers[place * self._size : (place + 1) * self._size]

    def sums(self) -> list[float]:
        """Each number as the sum over all places, at about this moment."""
        return [sum(numbers) for numbers in zip(*(self.of(place) for place in self._places), strict=True)]
