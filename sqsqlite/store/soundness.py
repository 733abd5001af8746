"""What SQLite itself finds damaged in a file, its application's tables or not."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqsqlite.sql.operators import LIST_TABLES
from sqsqlite.store.driver import dbapi
from sqsqlite.store.translate import ERROR, primary_code

if TYPE_CHECKING:
    from sqsqlite.store.driver import Connection


def findings(
    connection: "Connection", pragma: str, limit: int, progress: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Each line that is not "ok": of the whole file, or of our tables where it needs what only the application has.

    Args:
        pragma: "integrity_check" or "quick_check".
        limit: lines at most of the file; of each of our tables it is 100, which SQLite sets.
        progress: called with the reason why the application's tables were left out.
    """
    try:
        lines = connection.execute(f"PRAGMA {pragma}({limit})").fetchall()
    except dbapi.OperationalError as error:
        if primary_code(error) != ERROR:
            raise
        # An index of the application's is sorted by a collation or a function that its own connections define.
        progress(f"{pragma} of the queues' tables alone ({error})")
        lines = []
        for (table,) in connection.execute(LIST_TABLES).fetchall():
            quoted = table.replace(
                "'", "''"
            )  # a name may be anything: the application may have added one since
            lines += connection.execute(f"PRAGMA {pragma}('{quoted}')").fetchall()
    return [line for (line,) in lines if line != "ok"]
