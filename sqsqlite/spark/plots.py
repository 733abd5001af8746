"""Plots as inline SVG: bars and columns. Text stays HTML, so that it is as large on a phone as on a desk.

Lengths are in per cent of the room there is; nothing is scaled but the bars.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple


class Part(NamedTuple):
    """A part of a bar: what it counts, how many, and the class that colours it."""

    name: str
    value: float
    colour: str


class Bar(NamedTuple):
    """A labelled bar, and what stands at its end."""

    label: str
    parts: Sequence[Part]
    end: str


class Column(NamedTuple):
    """A column of a plot over time: its label, and the parts that stand beside each other."""

    label: str
    parts: Sequence[Part]


def legend(parts: Sequence[tuple[str, str]]) -> str:
    """Names with their colours."""
    keys = "".join(
        f'<span><svg width="10" height="10" aria-hidden="true"><rect class="{colour}" width="10" height="10" rx="2"/>'
        f"</svg>{escape(name)}</span>"
        for name, colour in parts
    )
    return f'<p class="legend">{keys}</p>'


def bars(rows: Sequence[Bar]) -> str:
    """Horizontal bars, the longest as wide as there is room; parts of a bar follow each other."""
    longest = max((sum(part.value for part in bar.parts) for bar in rows), default=0) or 1
    return '<div class="bars">' + "".join(_bar(bar, longest) for bar in rows) + "</div>"


def _bar(bar: Bar, longest: float) -> str:
    drawn, begin = [], 0.0
    for part in bar.parts:
        width = 100 * part.value / longest
        if width:
            drawn.append(
                f'<rect class="{part.colour}" x="{begin:.3f}%" width="{width:.3f}%" height="16">'
                f"<title>{escape(bar.label)}: {part.value:,} {escape(part.name)}</title></rect>"
            )
        begin += width
    told = ", ".join(f"{part.value:,} {part.name}" for part in bar.parts)
    return (
        f'<div class="bar"><span class="label">{escape(bar.label)}</span>'
        f'<svg width="100%" height="16" role="img" aria-label="{escape(bar.label)}: {escape(told)}">'
        f'<rect class="track" width="100%" height="16"/>{"".join(drawn)}</svg>'
        f'<span class="end">{escape(bar.end)}</span></div>'
    )


def columns(rows: Sequence[Column], *, unit: str) -> str:
    """Columns side by side over time, with the highest value, and the first and the last label below."""
    highest = max((part.value for row in rows for part in row.parts), default=0) or 1
    drawn = []
    for place, row in enumerate(rows):
        slot = 100 / len(rows)
        width = slot * 0.8 / max(1, len(row.parts))
        for number, part in enumerate(row.parts):
            height = 100 * part.value / highest
            drawn.append(
                f'<rect class="{part.colour}" x="{place * slot + slot * 0.1 + number * width:.3f}%" '
                f'y="{100 - height:.2f}%" width="{width:.3f}%" height="{height:.2f}%">'
                f"<title>{escape(row.label)}: {part.value:,} {escape(part.name)}</title></rect>"
            )
    first, last = (rows[0].label, rows[-1].label) if rows else ("", "")
    return (
        f"<figure><figcaption>at most {highest:,.0f} {escape(unit)}</figcaption>"
        f'<svg class="columns" width="100%" height="140" role="img" aria-label="{escape(unit)} from {escape(first)} '
        f'to {escape(last)}">{"".join(drawn)}<line class="axis" x1="0" y1="100%" x2="100%" y2="100%"/></svg>'
        f'<p class="axis"><span>{escape(first)}</span><span>{escape(last if len(rows) > 1 else "")}</span></p></figure>'
    )
