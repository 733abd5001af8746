# SPDX-License-Identifier: Apache-2.0
"""Django's own engine for SQLite, with the driver of `sqsqlite.dbapi` in place of the standard library's."""

import datetime as dt
import decimal
import shutil
from collections.abc import Iterable, Mapping
from itertools import tee
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base, creation
from django.db.backends.sqlite3._functions import register as register_functions
from django.utils.asyncio import async_unsafe
from django.utils.dateparse import parse_date, parse_datetime, parse_time

from sqsqlite import dbapi
from sqsqlite.django import close_queues, open_queues
from sqsqlite.sql.file import FIND_META_TABLE

# Django tells the standard library's module how to store and read these types. Ours has to know it as well.
for _name, _parse in (
    ("bool", lambda text: text == "1"),
    ("date", parse_date),
    ("time", parse_time),
    ("datetime", parse_datetime),
    ("timestamp", parse_datetime),
):
    dbapi.register_converter(_name, lambda raw, parse=_parse: parse(raw.decode()))
dbapi.register_adapter(decimal.Decimal, str)
dbapi.register_adapter(dt.date, base.adapt_date)
dbapi.register_adapter(dt.datetime, base.adapt_datetime)


class SQLiteCursorWrapper(dbapi.Cursor):
    """A cursor that takes Django's placeholders: `%s` and `%(name)s`."""

    convert_query = base.SQLiteCursorWrapper.convert_query

    def execute(self, query: str, params: Any = None) -> Any:
        """Execute one statement."""
        if params is None:
            return super().execute(query)
        names = list(params) if isinstance(params, Mapping) else None
        return super().execute(self.convert_query(query, param_names=names), params)

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        """Execute once for each set of parameters."""
        # The parameters may be a generator: the first of them tells their kind.
        peekable, param_list = tee(iter(param_list))
        first = next(peekable, None)
        names = list(first) if first and isinstance(first, Mapping) else None
        return super().executemany(self.convert_query(query, param_names=names), param_list)


class DatabaseCreation(creation.DatabaseCreation):  # type: ignore[misc] # Django ships no types
    """Makes and deletes the databases of tests, with what stands beside a file of queues."""

    def _create_test_db(self, verbosity: int, autoclobber: bool, keepdb: bool = False) -> str:
        name: str = super()._create_test_db(verbosity, autoclobber, keepdb)
        if not self.is_in_memory_db(name) and not Path(name).exists():
            _delete_beside(name)  # of a run that was killed: a new database must not get its WAL
        return name

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        close_queues(test_database_name)
        super()._destroy_test_db(test_database_name, verbosity)
        if not self.is_in_memory_db(test_database_name) and not Path(test_database_name).exists():
            _delete_beside(test_database_name)


def _delete_beside(name: str) -> None:
    for end in ("-wal", "-shm", "-journal"):
        Path(f"{name}{end}").unlink(missing_ok=True)
    shutil.rmtree(f"{name}-sqs", ignore_errors=True)


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc] # Django ships no types
    """One database of `settings.DATABASES` in one thread."""

    Database = dbapi
    creation_class = DatabaseCreation

    def get_connection_params(self) -> dict[str, Any]:
        """The arguments of `get_new_connection`, from the settings."""
        parameters: dict[str, Any] = super().get_connection_params()
        # A deferred transaction that has read can't write any more once another connection has written.
        if "transaction_mode" not in self.settings_dict["OPTIONS"]:
            self.transaction_mode = "IMMEDIATE"
        return parameters

    @async_unsafe  # type: ignore[untyped-decorator]
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect, and set up what Django expects of each connection."""
        connection = dbapi.connect(**conn_params)
        register_functions(connection)
        for statement in ("PRAGMA foreign_keys = ON", "PRAGMA legacy_alter_table = OFF", *self.init_commands):
            if statement.strip():
                connection.execute(statement)
        # Now, outside of any transaction: opening may have to set the file's clock, after a boot of the machine.
        if connection.path is not None and connection.execute(FIND_META_TABLE).fetchone():
            open_queues(connection.path)
        return connection

    def create_cursor(self, name: str | None = None) -> Any:  # noqa: ARG002 - Django's signature
        """A cursor that takes Django's placeholders."""
        return self.connection.cursor(factory=SQLiteCursorWrapper)
