# SPDX-License-Identifier: Apache-2.0
"""Reports as one HTML page: no script, no font and no network, for a phone or a desk, light or dark."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from sqsqlite.spark.catalogue import CLOUDWATCH, REPORTS
from sqsqlite.spark.facts import Facts, path_text
from sqsqlite.spark.plots import STYLE, Bar, Part, PlotColumn, bars, columns, legend

Rows = Sequence[Mapping[str, Any]]

MOST_ROWS = 200  # of a table; the JSON has all
_MOST_BARS = 24
_NOTHING = "\N{EN DASH}"
_STATES = (("visible", "c1"), ("in_flight", "c2"), ("delayed", "c3"))
_FLOWS = (("sent", "c1"), ("deleted", "c4"), ("dead_lettered", "c5"))
_TITLES = {
    "backlog": "Backlog",
    "fleet": "Files",
    "dead-letters": "Dead letters",
    "poison": "Poison candidates",
}
_HEADINGS = {
    "drain_seconds": "drains in",
    "expires_in_seconds": "back in",
    "next_expires_in_seconds": "next back in",
}
# Not in tables, because another column says the same in fewer letters. The JSON has it.
_LEFT_OUT = ("source_arn",)
# Up to this number, a plot over time also draws the periods in which nothing happened.
_MOST_PERIODS = 2000
_PERIODS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1))
_UNITS = (("d", 86_400), ("h", 3600), ("m", 60))


def html_page(sections: Mapping[str, Rows], paths: Sequence[Path], facts: Facts | None) -> str:
    """The text of the page.

    Args:
        sections: the rows of each report (see `rows_of`), by the report's name.
        paths: the queue files.
        facts: the snapshot; None for a live read.
    """
    name = path_text(paths[0].name) if len(paths) == 1 else f"{len(paths):,} files"
    heading = f"{_what(sections)} of {name}"
    body = [f"<h1>{escape(heading)}</h1>", _origin(paths, facts)]
    if "backlog" in sections:
        body.append(_tiles(sections["backlog"]))
    if facts is not None and facts.problems:
        lines = "".join(f"<li>{escape(problem)}</li>" for problem in facts.problems.values())
        body.append(
            f'<section class="problems"><h2>Files that could not be read</h2><ul>{lines}</ul></section>'
        )
    shorter = _short_names(paths)
    body.extend(_section(name, _shortened(rows, shorter)) for name, rows in sections.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(heading)}</title><style>{STYLE}</style></head>\n<body><main>"
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


def _what(sections: Mapping[str, Rows]) -> str:
    """The subject of the page: its first report, if the others are its details; otherwise the queues."""
    first = next(iter(sections))
    return "Queues" if len(sections) > 1 + len(REPORTS[first].details) else _title(first)


def _title(name: str) -> str:
    return _TITLES.get(name, name.capitalize())


def _shortened(rows: Rows, shorter: Mapping[str, str]) -> Rows:
    if not (rows and "file" in rows[0]):
        return rows
    return [{**row, "file": shorter.get(row["file"], row["file"])} for row in rows]


def _origin(paths: Sequence[Path], facts: Facts | None) -> str:
    where = escape(path_text(paths[0]) if len(paths) == 1 else f"{len(paths):,} files, {_pattern(paths)}")
    if facts is None:
        return f'<p class="origin">{where}, read live at {_instant(datetime.now(UTC))}</p>'
    at = _instant(datetime.fromtimestamp(facts.taken_at / 1000, UTC))
    return f'<p class="origin">{where}<br>{facts.messages:,} messages, as they were at {at}</p>'


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _tiles(rows: Rows) -> str:
    """The sums of the backlog, in large digits."""
    ages = [row["oldest_age_seconds"] for row in rows if row["oldest_age_seconds"] is not None]
    values = [(name.replace("_", " "), f"{sum(row[name] for row in rows):,}") for name, _ in _STATES]
    values += [
        ("oldest", _seconds(max(ages, default=None)) or _NOTHING),
        ("sent a minute", f"{sum(row['sent_per_minute'] for row in rows):,.1f}"),
        ("deleted a minute", f"{sum(row['deleted_per_minute'] for row in rows):,.1f}"),
    ]
    tiles = "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in values)
    return f'<div class="tiles">{tiles}</div>'


def _section(name: str, rows: Rows) -> str:
    plot = _PLOTS[name](rows) if name in _PLOTS and rows else ""
    table = _table(rows) if rows else '<p class="nothing">Nothing.</p>'
    head = f"<h2>{escape(_title(name))}</h2><p>{escape(REPORTS[name].summary)}</p>"
    return f'<section id="{name}">{head}{plot}{table}</section>'


# --- plots


def _queue_label(row: Mapping[str, Any]) -> str:
    return f"{row['file']}: {row['queue']}" if "file" in row else str(row["queue"])


def _states(row: Mapping[str, Any]) -> list[Part]:
    return [Part(name.replace("_", " "), row[name], colour) for name, colour in _STATES]


def _backlog_plot(rows: Rows, label: Callable[[Mapping[str, Any]], str] = _queue_label) -> str:
    largest = sorted(rows, key=lambda row: -sum(row[name] for name, _ in _STATES))[:_MOST_BARS]
    drawn = [Bar(label(row), _states(row), f"{sum(row[name] for name, _ in _STATES):,}") for row in largest]
    return legend([(name.replace("_", " "), colour) for name, colour in _STATES]) + bars(drawn)


def _fleet_plot(rows: Rows) -> str:
    return _backlog_plot(rows, lambda row: str(row["file"]))


def _ages_plot(rows: Rows) -> str:
    """All queues together; the table shows each queue."""
    classes: dict[tuple[int, int | None], dict[str, int]] = {}
    for row in rows:
        counts = classes.setdefault(
            (row["from_seconds"], row["to_seconds"]), {name: 0 for name, _ in _STATES}
        )
        for name in counts:
            counts[name] += row[name]
    drawn = [
        Bar(_age_class(low, high), _states(counts), f"{sum(counts.values()):,}")
        for (low, high), counts in sorted(classes.items(), key=lambda item: item[0][0])
    ]
    return bars(drawn)


def _age_class(low: int, high: int | None) -> str:
    if high is None:
        return f"over {_seconds(low)}"
    return f"{_seconds(low)} to {_seconds(high)}" if low else f"under {_seconds(high)}"


def _receives_plot(rows: Rows) -> str:
    counts: dict[int, list[int]] = {}
    for row in rows:
        found = counts.setdefault(row["receive_count"], [0, 0])
        found[0] += row["messages"] - row["poison_candidates"]
        found[1] += row["poison_candidates"]
    drawn = [
        Bar(
            "once" if receives == 1 else f"{receives} times",
            [Part("messages", sound, "c1"), Part("poison candidates", poison, "c5")],
            f"{sound + poison:,}",
        )
        for receives, (sound, poison) in sorted(counts.items())[:_MOST_BARS]
    ]
    return legend([("messages", "c1"), ("poison candidates", "c5")]) + bars(drawn)


def _throughput_plot(rows: Rows) -> str:
    periods: dict[str, dict[str, int]] = {}
    for row in rows:
        counts = periods.setdefault(row["at"], {name: 0 for name, _ in _FLOWS})
        for name in counts:
            counts[name] += row[name]
    nothing = {name: 0 for name, _ in _FLOWS}
    drawn = [
        PlotColumn(
            at[:16].replace("T", " "),
            [Part(name.replace("_", " "), periods.get(at, nothing)[name], colour) for name, colour in _FLOWS],
        )
        for at in _without_gaps(sorted(periods))
    ]
    names = [(name.replace("_", " "), colour) for name, colour in _FLOWS]
    return legend(names) + columns(drawn, unit="messages a period")


def _without_gaps(starts: Sequence[str]) -> list[str]:
    """The starts of periods, with those of the periods between them in which nothing happened."""
    instants = [datetime.fromisoformat(start) for start in starts]
    gaps = [later - earlier for earlier, later in pairwise(instants)]
    step = next((length for length in _PERIODS if gaps and min(gaps) >= length), None)
    count = 0 if step is None else (instants[-1] - instants[0]) // step
    if step is None or count > _MOST_PERIODS:
        return list(starts)
    return [
        (instants[0] + number * step).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for number in range(count + 1)
    ]


def _dead_plot(rows: Rows) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        label = f"{row['source']} → {row['queue']}"
        counts[label] = counts.get(label, 0) + row["messages"]
    drawn = [Bar(label, [Part("dead letters", count, "c5")], f"{count:,}") for label, count in counts.items()]
    return bars(drawn[:_MOST_BARS])


def _groups_plot(rows: Rows) -> str:
    names = ("free to go", "in flight", "delayed", "blocked")
    colours = ("c1", "c2", "c3", "c5")
    drawn = []
    for row in rows[:_MOST_BARS]:
        free = 0 if row["blocked_seconds"] is not None else row["visible"]
        delayed = row["messages"] - free - row["in_flight"] - row["blocked"]
        values = (free, row["in_flight"], delayed, row["blocked"])
        parts = [Part(*part) for part in zip(names, values, colours, strict=True)]
        drawn.append(Bar(f"{row['group_id']} ({row['queue']})", parts, f"{row['messages']:,}"))
    return legend(list(zip(names, colours, strict=True))) + bars(drawn)


_PLOTS: Mapping[str, Callable[[Rows], str]] = {
    "backlog": _backlog_plot,
    "ages": _ages_plot,
    "receives": _receives_plot,
    "throughput": _throughput_plot,
    "dead-letters": _dead_plot,
    "groups": _groups_plot,
    "fleet": _fleet_plot,
}


# --- tables


def _table(rows: Rows) -> str:
    names = [name for name in rows[0] if name not in _LEFT_OUT]
    numbers = {name for name in names if any(isinstance(row[name], int | float) for row in rows)}
    heads = "".join(_head(name, name in numbers) for name in names)
    lines = "".join(
        "<tr>" + "".join(_cell(name, row[name], name in numbers) for name in names) + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    rest = f"<p>And {len(rows) - MOST_ROWS:,} more rows.</p>" if len(rows) > MOST_ROWS else ""
    return (
        f'<div class="table"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>{rest}'
    )


def _head(name: str, is_number: bool) -> str:
    title = f' title="CloudWatch: {CLOUDWATCH[name]}"' if name in CLOUDWATCH else ""
    kind = ' class="number"' if is_number else ""
    text = _HEADINGS.get(name, name.removesuffix("_seconds").replace("_", " "))
    return f"<th{kind}{title}>{escape(text)}</th>"


def _cell(name: str, value: Any, is_number: bool) -> str:
    kind = ' class="number"' if is_number else ""
    if value is None:
        text = _NOTHING
    elif is_number:
        text = _seconds(value) if name.endswith("_seconds") else f"{value:,}"
    else:
        text = str(value)
        if name == "at" or name.endswith("_at"):
            text = text[:19].replace("T", " ")
    return f"<td{kind}>{escape(text)}</td>"


def _seconds(seconds: float | None) -> str:
    """An age in its two largest units: 45 s, 12 m 5 s, 3 h 20 m, 4 d 2 h."""
    if seconds is None:
        return ""
    rest = int(seconds)
    parts: list[tuple[int, str]] = []
    for unit, length in (*_UNITS, ("s", 1)):
        count, rest = divmod(rest, length)
        if count or parts:
            parts.append((count, unit))
        if len(parts) == 2:
            break
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


# --- paths


def _short_names(paths: Sequence[Path]) -> dict[str, str]:
    """By each path as a text, the parts of it that differ between the files."""
    first, last = _shared(paths)
    return {path_text(path): path_text(Path(*path.parts[first : len(path.parts) - last])) for path in paths}


def _pattern(paths: Sequence[Path]) -> str:
    """The parts that all paths share, with an ellipsis for the parts that differ."""
    first, last = _shared(paths)
    parts = paths[0].parts
    return path_text(Path(*parts[:first], "\N{HORIZONTAL ELLIPSIS}", *parts[len(parts) - last :]))


def _shared(paths: Sequence[Path]) -> tuple[int, int]:
    """How many parts all paths begin with, and how many they end with. At least one part of each is left between."""
    shortest = min(len(path.parts) for path in paths)
    first = min(_alike([path.parts for path in paths]), shortest - 1)
    last = _alike([path.parts[::-1] for path in paths])
    return first, last if first + last < shortest else 0


def _alike(names: Sequence[Sequence[str]]) -> int:
    return sum(1 for _ in takewhile(lambda found: len(set(found)) == 1, zip(*names, strict=False)))
