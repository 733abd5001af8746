"""The file to oneself: for what must not happen under a process that has it open."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqsqlite.errors import FileInUse
from sqsqlite.store import foreign
from sqsqlite.store.beside import make_folder
from sqsqlite.store.connections import connect, disconnect
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.translate import BUSY, primary_code, translate
from sqsqlite.store.turns import let_go, turnstile_for

# A process that is just closing the file gets this long, in milliseconds.
PATIENCE_MS = 500


@contextmanager
def alone(path: Path, busy_timeout: float) -> Iterator[Connection]:
    """A connection that nobody's stands beside, in this process or another. Who opens the file meanwhile waits.

    Args:
        busy_timeout: seconds to wait for the turn to write.

    Raises:
        FileInUse: somebody has it open, be it idle.
        Busy: others kept the turn.
    """
    folder = Path(f"{path}-sqs")
    make_folder(folder)
    turnstile = turnstile_for(foreign.identity(path), folder)
    try:
        with turnstile.taken(busy_timeout):
            connection = connect(path, synchronous="FULL", busy_timeout=PATIENCE_MS / 1000)
            try:
                _exclude(connection, path)
                yield connection
            except dbapi.Error as error:
                raise translate(error, path) from error
            finally:
                disconnect(connection, path)
    finally:
        let_go(turnstile)


def _exclude(connection: Connection, path: Path) -> None:
    """In WAL mode every open connection keeps a shared lock on the file: the exclusive one is had only when alone."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except dbapi.Error as error:
        if primary_code(error) == BUSY:
            raise FileInUse(
                f"{path}: a process has the file open; stop it first (fuser, lsof name it)"
            ) from error
        raise
    connection.execute("ROLLBACK")
