# SPDX-License-Identifier: Apache-2.0
"""The Condition element of a policy, and the wildcards of its values.

A condition holds, does not hold, or is unknown (None), because the key is unknown here or the operator or a value can't
be read. An unknown condition refuses the request: no Allow applies by it, and every Deny does.
Source: IAM user guide, "IAM JSON policy elements: Condition operators", "AWS global condition context keys".
"""

import ipaddress
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from sqsqlite.contract.policy import Conditions, Scalar


class Wildcards:
    """Patterns that are matched all at once: `*` is any characters, `?` is one.

    Matching is one pass over the text, so its time grows only with the lengths of text and patterns. Each mark of a
    pattern except `*` has a bit in an integer, and so has the pattern's end. A set bit means that the text so far
    matches the pattern up to this mark.

    Args:
        patterns: in ASCII, as the texts are. A pattern with other characters matches nothing.
    """

    __slots__ = ("_any", "_ends", "_marks", "_stars", "_starts")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._starts = self._stars = self._any = 0
        # Numbers of bits: a list of integers, each as long as all patterns, would be large.
        self._ends: list[int] = []
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
                elif mark.isascii():  # thousands of other characters would take much memory
                    marks[mark] = marks.get(mark, 0) | bit
                place += 1
            self._ends.append(place)
            place += 1
        self._marks = {mark: bits | self._any for mark, bits in marks.items()}

    def matching(self, text: str) -> set[int]:
        """Return the positions, from 0, of the patterns that match the whole text."""
        state = self._starts
        for character in text:
            state = (state & self._marks.get(character, self._any)) << 1 | (state & self._stars)
            if not state:
                return set()
        return {place for place, end in enumerate(self._ends) if state >> end & 1}


Test = Callable[[str], bool]
"""Whether a value is among the wanted ones. Raises ValueError if it can't be compared with them."""

# Requests never have these keys here, because only Amazon's own services set them.
NEVER_SET = frozenset({"aws:sourcearn", "aws:sourceaccount"})
# A request may lack these keys: the account itself has no user name, and some sockets have no address.
SOMETIMES_SET = frozenset({"aws:username", "aws:sourceip"})

_split = re.compile(
    r"(?:for(?P<quantity>all|any)values?:)?(?P<name>[a-z]+?)(?P<if_exists>ifexists)?"
).fullmatch


class Condition(NamedTuple):
    """A condition on one key, compiled: its values are read once, not with each request.

    Attributes:
        key: in lower case.
        quantity: `any` or `all` of a key's values; None: the operator has neither prefix.
        null_wanted: the values of the operator Null, in lower case; None: another operator.
        test: None: the operator or a value can't be read.
    """

    key: str
    is_negated: bool
    quantity: str | None
    is_if_exists: bool
    null_wanted: frozenset[str] | None
    test: Test | None
    has_variable: bool

    def holds(self, context: Mapping[str, str]) -> bool | None:
        """Return whether the condition holds; None: unknown."""
        given = context.get(self.key)
        if given is None and self.key not in NEVER_SET | SOMETIMES_SET:
            return None
        if self.has_variable:
            return None
        if self.null_wanted is not None:
            return str(given is None).lower() in self.null_wanted
        if self.test is None:
            return None
        if given is None:
            if self.is_if_exists or self.quantity == "all":
                return True
            return self.is_negated and self.quantity is None
        try:
            return self.test(given) != self.is_negated
        except ValueError:
            return None


def compiled(conditions: Conditions) -> tuple[Condition, ...]:
    """Compile the conditions of a statement."""
    return tuple(
        _compiled(name.lower(), key.lower(), wanted)
        for name, keys in conditions.items()
        for key, wanted in keys.items()
    )


def holds(conditions: Iterable[Condition], context: Mapping[str, str]) -> bool | None:
    """Return whether all conditions hold; None: unknown.

    Args:
        context: values by key in lower case.
    """
    return all_of(condition.holds(context) for condition in conditions)


def all_of(parts: Iterable[bool | None]) -> bool | None:
    """Return False if a part is False, else None if a part is None, else True."""
    is_unknown = False
    for part in parts:
        if part is False:
            return False
        is_unknown = is_unknown or part is None
    return None if is_unknown else True


def _compiled(operation: str, key: str, wanted: Scalar | list[Scalar]) -> Condition:
    texts = [_text(value) for value in (wanted if isinstance(wanted, list) else [wanted])]
    match = _split(operation)
    name = "" if match is None else match["name"]
    return Condition(
        key,
        "not" in name,
        None if match is None else match["quantity"],
        match is not None and match["if_exists"] is not None,
        frozenset(text.lower() for text in texts) if name == "null" else None,
        _test(name.replace("not", "", 1), texts),
        any("${" in text for text in texts),
    )


def _test(name: str, texts: list[str]) -> Test | None:
    make = _TESTS.get(name)
    try:
        return None if make is None else make(texts)
    except ValueError:
        return None


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _instant(text: str) -> float:
    """Read ISO 8601, or seconds since 1970, as seconds since 1970."""
    if text.isdecimal() and len(text) != len("YYYY"):
        return float(text)
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _as_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _as_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


# --- operators: each makes a test of the given value from the wanted values


def _equal(read: Callable[[str], object]) -> Callable[[list[str]], Test]:
    def make(texts: list[str]) -> Test:
        wanted = {read(text) for text in texts}
        return lambda given: read(given) in wanted

    return make


def _like(texts: list[str]) -> Test:
    patterns = Wildcards(texts)
    return lambda given: bool(patterns.matching(given))


def _like_arn(texts: list[str]) -> Test:
    """Compare the six parts one by one: a star crosses a colon only in the last part."""
    split = [text.split(":", 5) for text in texts]
    if any(len(parts) != 6 for parts in split):
        raise ValueError(texts)
    columns = [Wildcards(parts[place] for parts in split) for place in range(6)]

    def test(given: str) -> bool:
        parts = given.split(":", 5)
        if len(parts) != 6:
            return False
        found = [column.matching(part) for column, part in zip(columns, parts, strict=True)]
        return bool(set.intersection(*found))

    return test


def _within(texts: list[str]) -> Test:
    networks = [ipaddress.ip_network(text, strict=False) for text in texts]

    def test(given: str) -> bool:
        address = _as_address(given)
        return any(address in network for network in networks)

    return test


def _ordered(read: Callable[[str], float], prefix: str) -> dict[str, Callable[[list[str]], Test]]:
    """Make the operators of ordered values. One match is enough, so "less" uses the greatest, "greater" the least."""

    def compared(
        compare: Callable[[float, float], bool], choose: Callable[[list[float]], float]
    ) -> Callable[[list[str]], Test]:
        def make(texts: list[str]) -> Test:
            limit = choose([read(text) for text in texts])
            return lambda given: compare(read(given), limit)

        return make

    return {
        f"{prefix}equals": _equal(read),
        f"{prefix}lessthan": compared(operator.lt, max),
        f"{prefix}lessthanequals": compared(operator.le, max),
        f"{prefix}greaterthan": compared(operator.gt, min),
        f"{prefix}greaterthanequals": compared(operator.ge, min),
    }


_TESTS: dict[str, Callable[[list[str]], Test]] = {
    "stringequals": _equal(str),
    "stringequalsignorecase": _equal(str.lower),
    "stringlike": _like,
    "bool": _equal(_as_bool),
    "ipaddress": _within,
    "arnequals": _like_arn,
    "arnlike": _like_arn,
    **_ordered(_number, "numeric"),
    **_ordered(_instant, "date"),
}
