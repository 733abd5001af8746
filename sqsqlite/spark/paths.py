"""Paths as reports show them."""

import os
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path


def path_text(path: str | os.PathLike[str]) -> str:
    r"""A path as text that can be stored and sent anywhere: bytes that are not UTF-8 as `\xNN`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def short_names(paths: Sequence[Path]) -> dict[str, str]:
    """What tells many files apart: by each path as text, it without the folders, and the file name, that all share."""
    first, last = _shared(paths)
    return {path_text(path): path_text(Path(*path.parts[first : len(path.parts) - last])) for path in paths}


def pattern(paths: Sequence[Path]) -> str:
    """What many paths share, with an ellipsis for what differs."""
    first, last = _shared(paths)
    parts = paths[0].parts
    return path_text(Path(*parts[:first], "\N{HORIZONTAL ELLIPSIS}", *parts[len(parts) - last :]))


def _shared(paths: Sequence[Path]) -> tuple[int, int]:
    """How many parts all paths begin with, and how many they end with; of each at least one is left between."""
    shortest = min(len(path.parts) for path in paths)
    first = min(_alike([path.parts for path in paths]), shortest - 1)
    last = _alike([path.parts[::-1] for path in paths])
    return first, last if first + last < shortest else 0


def _alike(names: Sequence[Sequence[str]]) -> int:
    return sum(1 for _ in takewhile(lambda found: len(set(found)) == 1, zip(*names, strict=False)))
