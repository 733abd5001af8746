"""Reading around damage: rows that break what the schema guarantees, and telling of them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from sqsqlite.store.driver import Connection


def warn_of_damage(path: "Path", lines: Iterable[str]) -> None:
    """Log what was passed by, as warnings of the logger "sqsqlite": on standard error unless logging is set up.

    Not an exception: what was healthy beside it is on its way to the caller.
    """
    for line in lines:
        # Not before there is a line: a signal handler that raises in logging's lock leaves it locked for good.
        import logging

        logging.getLogger("sqsqlite").warning("%s: %s", path, line)


@contextmanager
def undecoded(connection: "Connection") -> "Iterator[None]":
    """Within the block, a TEXT that is not UTF-8 comes as its bytes. Otherwise the driver gives up the whole row."""
    before = connection.text_factory
    connection.text_factory = _text_or_bytes
    try:
        yield
    finally:
        connection.text_factory = before


def _text_or_bytes(stored: bytes) -> str | bytes:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def flaw(values: Iterable[tuple[str, Any, type]]) -> str | None:
    """What is wrong with (column, value, type) of a row that was read `undecoded`; None: each has its type.

    A TEXT may be null where the caller leaves it out.
    """
    for column, value, kind in values:
        if type(value) is kind:
            continue
        if kind is str and isinstance(value, bytes):
            return f"its {column} is not UTF-8"
        found = "missing" if value is None else f"of the type {type(value).__name__}"
        return f"its {column} is {found}"
    return None
