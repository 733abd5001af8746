"""Paths as reports show them."""

import os


def path_text(path: str | os.PathLike[str]) -> str:
    r"""A path as text that can be stored and sent anywhere: bytes that are not UTF-8 as `\xNN`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
