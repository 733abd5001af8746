"""`*` and `?` as policies write them. In time that grows with the text alone, whatever the pattern."""

import re
from functools import lru_cache


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text is as the pattern says: `*` is any characters, `?` is one.

    Each part between stars is looked for once, leftmost: what a later part needs, an earlier one never takes away.
    """
    first, *rest = pattern.split("*")
    found = _compiled(first).match(text)
    if found is None:
        return False
    if not rest:
        return found.end() == len(text)
    place = found.end()
    *middle, last = rest
    for part in middle:
        found = _compiled(part).search(text, place)
        if found is None:
            return False
        place = found.end()
    end = len(text) - len(last)
    return end >= place and _compiled(last).match(text, end) is not None


@lru_cache(maxsize=1_024)
def _compiled(part: str) -> "re.Pattern[str]":
    return re.compile("".join("." if mark == "?" else re.escape(mark) for mark in part), re.DOTALL)
