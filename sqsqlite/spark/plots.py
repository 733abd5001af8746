# SPDX-License-Identifier: Apache-2.0
"""The plots of the page as inline SVG, and the style of the page.

Only the bars and columns are scaled, in per cent of the width. Texts are HTML, so they are as large on a phone as on a
desk.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple


class Part(NamedTuple):
    """A part of a bar or column: its name, its value, and the CSS class that colours it."""

    name: str
    value: float
    colour: str


class Bar(NamedTuple):
    """A bar with its label, its parts, and the text at its end."""

    label: str
    parts: Sequence[Part]
    end: str


class PlotColumn(NamedTuple):
    """A place on a time axis: its label, and the parts that stand side by side."""

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
    """Horizontal bars; the longest takes the full width. The parts of a bar follow each other."""
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
    values = ", ".join(f"{part.value:,} {part.name}" for part in bar.parts)
    return (
        f'<div class="bar"><span class="label">{escape(bar.label)}</span>'
        f'<svg width="100%" height="16" role="img" aria-label="{escape(bar.label)}: {escape(values)}">'
        f'<rect class="track" width="100%" height="16"/>{"".join(drawn)}</svg>'
        f'<span class="end">{escape(bar.end)}</span></div>'
    )


def columns(rows: Sequence[PlotColumn], *, unit: str) -> str:
    """Columns over time, with the highest value above, and the first and the last label below."""
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


# Colours have a contrast of at least 3 to 1 to both backgrounds, texts of 4.5 to 1.
STYLE = """
:root { --ground: #fbfbfd; --card: #fff; --text: #1c2230; --soft: #5a6372; --line: #dfe3ea; --track: #eef1f6;
  --c1: #2f6fde; --c2: #c26a00; --c3: #7b8698; --c4: #14866d; --c5: #cc3340; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #12151c; --card: #1a1f29; --text: #e8ebf2; --soft: #a3adbd; --line: #323a48; --track: #252c39;
    --c1: #6aa2ff; --c2: #f0a23c; --c3: #98a4b8; --c4: #3fc2a2; --c5: #ff7a80; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text);
  font: 16px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 20px 16px 48px; }
h1 { font-size: 1.5rem; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 2px; }
p { margin: 0 0 12px; color: var(--soft); }
.origin { font-size: .875rem; overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px;
  margin-top: 16px; }
.problems { border-color: var(--c5); }
.problems ul { margin: 8px 0 0; padding-left: 20px; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 10px; }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
.tiles b { display: block; font-size: 1.4rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tiles span { color: var(--soft); font-size: .8125rem; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: .8125rem; margin-bottom: 8px; }
.legend span { display: inline-flex; align-items: center; gap: 6px; }
.bars { margin-bottom: 14px; }
.bar { display: grid; grid-template-columns: minmax(90px, 24%) 1fr minmax(52px, auto); gap: 10px; align-items: center;
  margin: 5px 0; font-size: .875rem; }
.bar .label { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bar .end { text-align: right; font-variant-numeric: tabular-nums; }
.bar svg { border-radius: 4px; display: block; }
.track { fill: var(--track); }
.c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }
.c4 { fill: var(--c4); } .c5 { fill: var(--c5); }
figure { margin: 0 0 14px; }
figcaption, p.axis { font-size: .8125rem; color: var(--soft); }
p.axis { display: flex; justify-content: space-between; gap: 12px; margin: 4px 0 0; }
line.axis { stroke: var(--line); stroke-width: 2; }
.columns { display: block; margin-top: 4px; }
.table { overflow-x: auto; margin: 0 -16px -4px; padding-bottom: 4px; }
table { border-collapse: collapse; font-size: .875rem; width: 100%; }
th, td { text-align: left; padding: 6px 16px 6px 0; border-top: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; border-top: 0; vertical-align: bottom; }
td:first-child, th:first-child { position: sticky; left: 0; background: var(--card); padding-left: 16px;
  max-width: 46vw; overflow: hidden; text-overflow: ellipsis; }
.number { font-variant-numeric: tabular-nums; text-align: right; }
.nothing { font-style: italic; margin: 0; }
@media (max-width: 480px) { .bar { grid-template-columns: 1fr auto; gap: 2px 10px; margin: 9px 0; }
  .bar .label { grid-column: 1 / -1; white-space: normal; overflow-wrap: anywhere; }
  td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 130px; }
  .tiles { grid-template-columns: 1fr 1fr 1fr; }
  .tiles div { padding: 10px; } .tiles b { font-size: 1.15rem; } }
@media print { section, .tiles div { break-inside: avoid; } }
"""
