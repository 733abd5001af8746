"""The Condition element of a policy, held against the circumstances of a request.

A condition holds, does not hold, or can't be told (None): a key that is not known here, an operator or a value that
can't be read. What can't be told lets nobody in: it makes no Allow hold and every Deny.
Source: IAM user guide, "IAM JSON policy elements: Condition operators", "AWS global condition context keys".
"""

import ipaddress
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from sqsqlite.policy import Conditions, Scalar
from sqsqlite.wire.wildcards import matches

# Keys that a request never has here, because only Amazon's own services set them.
NEVER_SET = frozenset({"aws:sourcearn", "aws:sourceaccount"})
# Those that a request may lack: a user, where the account itself asks; an address, on a socket that has none.
SOMETIMES_SET = frozenset({"aws:username", "aws:sourceip"})

_split = re.compile(
    r"(?:for(?P<quantity>all|any)values?:)?(?P<name>[a-z]+?)(?P<if_exists>ifexists)?"
).fullmatch


def holds(conditions: Conditions, context: Mapping[str, str]) -> bool | None:
    """Whether all conditions hold; None: that can't be told.

    Args:
        context: values by key in lower case.
    """
    return all_of(
        _holds(operator.lower(), key.lower(), wanted, context)
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def all_of(parts: Iterable[bool | None]) -> bool | None:
    """False if one is, else None if one is, else True."""
    untold = False
    for part in parts:
        if part is False:
            return False
        untold = untold or part is None
    return None if untold else True


def _holds(operator: str, key: str, wanted: Scalar | list[Scalar], context: Mapping[str, str]) -> bool | None:
    given = context.get(key)
    if given is None and key not in NEVER_SET | SOMETIMES_SET:
        return None
    texts = [_text(value) for value in (wanted if isinstance(wanted, list) else [wanted])]
    if any("${" in text for text in texts):
        return None
    match = _split(operator)
    if match is None:
        return None
    name = match["name"]
    if name == "null":
        return any(text.lower() == str(given is None).lower() for text in texts)
    compare = _OPERATORS.get(name.replace("not", "", 1))
    if compare is None:
        return None
    negated = "not" in name
    if given is None:
        if match["if_exists"] or match["quantity"] == "all":
            return True
        return negated and match["quantity"] is None
    try:
        found = any([compare(given, text) for text in texts])  # noqa: C419 - all, so that none goes unread
    except ValueError:
        return None
    return found != negated


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _instant(text: str) -> float:
    """Seconds since 1970, of ISO 8601 or of themselves."""
    if text.isdecimal() and len(text) != len("YYYY"):
        return float(text)
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _is_within(given: str, network: str) -> bool:
    address = ipaddress.ip_address(given)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address in ipaddress.ip_network(network, strict=False)


def _is_like_arn(given: str, pattern: str) -> bool:
    """Part by part: a star does not reach over a colon, but in the last of the six."""
    parts, patterns = given.split(":", 5), pattern.split(":", 5)
    if len(patterns) != 6:
        raise ValueError(pattern)
    return len(parts) == 6 and all(map(matches, patterns, parts))


def _ordered(read: Callable[[str], float], prefix: str) -> dict[str, Callable[[str, str], bool]]:
    return {
        f"{prefix}equals": lambda given, wanted: read(given) == read(wanted),
        f"{prefix}lessthan": lambda given, wanted: read(given) < read(wanted),
        f"{prefix}lessthanequals": lambda given, wanted: read(given) <= read(wanted),
        f"{prefix}greaterthan": lambda given, wanted: read(given) > read(wanted),
        f"{prefix}greaterthanequals": lambda given, wanted: read(given) >= read(wanted),
    }


def _as_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "stringequals": lambda given, wanted: given == wanted,
    "stringequalsignorecase": lambda given, wanted: given.lower() == wanted.lower(),
    "stringlike": lambda given, wanted: matches(wanted, given),
    "bool": lambda given, wanted: _as_bool(given) == _as_bool(wanted),
    "ipaddress": _is_within,
    "arnequals": _is_like_arn,
    "arnlike": _is_like_arn,
    **_ordered(_number, "numeric"),
    **_ordered(_instant, "date"),
}
