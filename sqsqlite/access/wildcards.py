"""`*` and `?` as policies write them."""

from collections.abc import Iterable


class Wildcards:
    """Patterns, matched all at once: `*` is any characters, `?` is one.

    One pass over the text, without going back, takes time that grows with the text and with the patterns' length alone.
    Each mark of a pattern but `*` has a bit in an integer, and so has the pattern's end. A bit that is set says that
    the text so far is what the pattern has before this mark.

    Args:
        patterns: in ASCII, as the texts are. One with other characters matches nothing.
    """

    __slots__ = ("_any", "_ends", "_marks", "_stars", "_starts")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._starts = self._stars = self._any = 0
        self._ends: list[
            int
        ] = []  # as numbers of bits: a list of integers as long as all patterns would be large
        marks: dict[str, int] = {}
        place = 0
        for pattern in patterns:
            self._starts |= 1 << place
            for mark in pattern:
                bit = 1 << place
                if mark == "*":
                    self._stars |= bit
                    continue
                if mark == "?":
                    self._any |= bit
                elif mark.isascii():  # or a policy could ask for memory by thousands of different characters
                    marks[mark] = marks.get(mark, 0) | bit
                place += 1
            self._ends.append(place)
            place += 1
        self._marks = {mark: bits | self._any for mark, bits in marks.items()}

    def matching(self, text: str) -> set[int]:
        """The places, in the order given and from 0, of the patterns that the whole text matches."""
        state = self._starts
        for character in text:
            state = (state & self._marks.get(character, self._any)) << 1 | (state & self._stars)
            if not state:
                return set()
        return {place for place, end in enumerate(self._ends) if state >> end & 1}


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text is as one pattern says."""
    return bool(Wildcards([pattern]).matching(text))
