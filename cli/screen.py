"""Text on its way to a human's eyes: marks that steer a terminal, or turn what it shows around, are written out."""

import re

# C0 but the tab and the line's end, DEL, C1, and what Unicode has to change the direction of writing.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def on_screen(text: str) -> str:
    r"""The text with each of these marks as `\u` and four hexadecimal digits: within JSON the same value."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
