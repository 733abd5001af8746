# SPDX-License-Identifier: Apache-2.0
"""The columns of a report in a table on a terminal."""

from collections.abc import Sequence
from typing import Any

from sqsqlite.cli.table import Column, age, instant

# Narrow screens leave out the column with the lowest number first. Columns without a number stay.
_LEAVE = {
    "sent_bytes": 1,
    "deduplicated": 2,
    "source_arn": 3,
    "bytes": 4,
    "max_receive_count": 5,
    "first_moved_at": 6,
    "expires_at": 7,
    "highest_receive_count": 8,
    "age_p50_seconds": 9,
    "delayed": 10,
    "dead_lettered": 11,
    "deleted_per_minute": 12,
    "sent_per_minute": 13,
    "age_p95_seconds": 14,
    "turns_ahead": 15,
}
_HEADINGS = {
    "oldest_age_seconds": "oldest",
    "age_p50_seconds": "p50",
    "age_p95_seconds": "p95",
    "age_seconds": "age",
    "from_seconds": "from",
    "to_seconds": "to",
    "sent_per_minute": "sent/min",
    "deleted_per_minute": "deleted/min",
    "drain_seconds": "drains in",
    "poison_candidates": "poison?",
    "empty_receives": "empty",
    "dead_lettered": "dead",
    "held_mean_seconds": "held, mean",
    "held_longest_seconds": "longest",
    "next_expires_in_seconds": "next back in",
    "expires_in_seconds": "back in",
    "held_seconds": "held",
    "blocked_seconds": "blocked for",
    "expiring_within_minute": "within 1m",
    "highest_receive_count": "max receives",
}
_CUT = ("file", "queue", "problem", "group_id", "source", "source_arn")


def columns_of(name: str, rows: Sequence[dict[str, Any]]) -> list[Column]:
    """The columns of a report's table, with ages in the unit that fits.

    Args:
        name: the name of the report. The fleet report keeps its column `file`, which names each row.
    """
    names = list(rows[0]) if rows else ()
    return [
        Column(
            column,
            _HEADINGS.get(column, ""),
            leave=0 if name == "fleet" and column == "file" else _LEAVE.get(column, 0),
            cut=column in _CUT,
            shown=age
            if column.endswith("_seconds")
            else instant
            if column.endswith("_at") or column == "at"
            else None,
        )
        for column in names
    ]
