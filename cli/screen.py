# SPDX-License-Identifier: Apache-2.0
"""Text that people read. No message can steer the terminal or reverse what it shows."""

import re

# C0 except tab and line end, DEL, C1, and Unicode's controls of the writing direction. Compiled at its first use.
_STEERING = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def on_screen(text: str) -> str:
    r"""Write each of these characters as `\u` and four hexadecimal digits: within JSON the same value."""
    return re.sub(_STEERING, lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Escape every character that has no glyph of its own, line ends among them: the text stays on its line."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else _ESCAPES.get(mark) or _escaped(mark) for mark in text)


def _escaped(mark: str) -> str:
    return mark.encode("unicode_escape").decode("ascii")
