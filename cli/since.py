# SPDX-License-Identifier: Apache-2.0
"""`--since`: a length of time before now, or an instant. And `--duration`, a length of time."""

import re
from datetime import UTC, datetime
from typing import NamedTuple

import click

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LENGTH = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)


class LengthType(click.ParamType):  # type: ignore[type-arg] # as below
    """`90s`, `15m`, `2h`, `7d`, `2w`, or a number of seconds; in seconds."""

    name = "length"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Raises click.BadParameter for a text that is none."""
        match = _LENGTH.fullmatch(f"{value}s" if str(value).isdecimal() else str(value))
        if match is None:
            self.fail(f"{value!r} is not a length of time such as 90s, 15m, 2h or 7d", param, ctx)
        return int(match[1]) * _UNITS_MS[match[2]] // 1_000


class Since(NamedTuple):
    """One of the two, in milliseconds: before now, or since 1970 UTC."""

    window_ms: int | None
    instant_ms: int | None


class SinceType(click.ParamType):  # type: ignore[type-arg] # of late generic; Click 8.1 has no subscript
    """`90s`, `15m`, `2h`, `7d`, `2w`, or an instant in ISO 8601, UTC where it names no other zone."""

    name = "since"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Since:
        """Raises click.BadParameter for a text that is neither, for no time at all, and for an instant to come."""
        if isinstance(value, Since):
            return value
        if match := _LENGTH.fullmatch(value):
            if not int(match[1]):
                self.fail(f"{value!r}: a length of time is 1s or longer", param, ctx)
            return Since(int(match[1]) * _UNITS_MS[match[2]], None)
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is neither a length of time such as 90s, 15m, 2h or 7d nor an instant such as "
                "2026-11-21T06:30:00Z",
                param,
                ctx,
            )
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        if instant > datetime.now(UTC):
            self.fail(
                f"{value!r} is in the future: an instant is before now, and in UTC unless it names a zone",
                param,
                ctx,
            )
        return Since(None, round(instant.timestamp() * 1000))
