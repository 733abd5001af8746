# SPDX-License-Identifier: Apache-2.0
"""The DB-API module of the one SQLite copy that may open queue files, for the application's own connections.

    engine = sqlalchemy.create_engine("sqlite:///app.db", module=sqsqlite.dbapi)

All names of the driver (the standard library's `sqlite3`, or `pysqlite3` where that one is too old) are here too, so it
can stand in for `sqlite3`. `connect` gives a `Connection`, which may have the same file open as a queue, takes part in
`connection=` of `Queue.send`, `receive` and `delete`, wakes waiting consumers when it commits, and obeys the rules of
a fork. docs/transactions.md describes it.
"""

from types import ModuleType
from typing import Any

from sqsqlite.store import driver, own_fork
from sqsqlite.store.own_connection import OwnConnection as Connection
from sqsqlite.store.own_connection import OwnCursor as Cursor

__all__ = ["Connection", "Cursor", "connect"]
__all__ += [name for name in dir(driver.dbapi) if not name.startswith("_") and name not in __all__]

apilevel: str = driver.dbapi.apilevel
threadsafety: int = driver.dbapi.threadsafety
paramstyle: str = driver.dbapi.paramstyle


own_fork.install()


def connect(database: Any, *arguments: Any, factory: Any = Connection, **options: Any) -> Connection:
    """Open a connection. The arguments, their order and their defaults are the driver's.

    Args:
        database: a path, a `file:` URI with `uri=True`, or ":memory:".
        factory: `Connection`, or a class that derives from it.

    Raises:
        TypeError: another factory.
        UnsafeSQLite: the only SQLite here has the WAL-reset bug.
        SecondSQLiteCopy: another copy of SQLite has the file open in this process.
        StoreError: the process was forked while the file was open.
        sqsqlite.dbapi.Error: as the driver's `connect`.
    """
    if not (isinstance(factory, type) and issubclass(factory, Connection)):
        raise TypeError(
            f"the factory of a connection must derive from sqsqlite.dbapi.Connection: {factory!r}"
        )
    return factory(database, *arguments, **options)


def asynchronous() -> Any:
    """The same for SQLAlchemy's asynchronous engine, which reaches the driver through aiosqlite.

        create_async_engine("sqlite+aiosqlite:///app.db", module=sqsqlite.dbapi.asynchronous())

    Raises:
        ImportError: aiosqlite or SQLAlchemy is not installed.
    """
    import aiosqlite
    from sqlalchemy.dialects.sqlite.aiosqlite import AsyncAdapt_aiosqlite_dbapi

    class Module(ModuleType):
        """aiosqlite with the names and the connections of this module."""

        Connection = aiosqlite.Connection

        def connect(self, database: Any, **options: Any) -> Any:
            """A connection of aiosqlite's that opens one of ours in its thread."""
            return aiosqlite.Connection(lambda: connect(database, **options), iter_chunk_size=64)

        def __getattr__(self, name: str) -> Any:
            return getattr(driver.dbapi, name)

    return AsyncAdapt_aiosqlite_dbapi(Module("aiosqlite"), driver.dbapi)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(driver.dbapi, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
