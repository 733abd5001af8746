# SPDX-License-Identifier: Apache-2.0
"""The application's own connections around a fork.

SQLite's tables of locks are wrong in a forked child for each file that was open, so idle connections are closed before
the fork. Parent and child open theirs again, with the same settings, at the next use. The child can't use the others,
nor their files.
"""

import os
import threading
import time
from functools import cache
from typing import Any, NoReturn

from sqsqlite.errors import StoreError
from sqsqlite.store import connections, foreign
from sqsqlite.store.driver import dbapi
from sqsqlite.store.own_connection import OwnConnection, every


def _suspend(connection: OwnConnection) -> None:
    """Close it until it is used again, if it is idle."""
    if connection.path is None or not connection.is_open or not connection.is_idle:
        return
    for name in _ATTRIBUTES:
        if hasattr(dbapi.Connection, name):
            value = getattr(connection, name)
            connection.settings["attribute", name] = ("__setattr__", (name, value), {})
    connection.close_file()
    kind: Any = type(connection)
    object.__setattr__(connection, "__class__", _suspended(kind))


def _resume(connection: OwnConnection) -> None:
    connection.check_thread()
    connection.open()
    try:
        for name, arguments, options in list(connection.settings.values()):
            # The driver's own method: these calls are noted already.
            getattr(dbapi.Connection, name)(connection, *arguments, **options)
    except BaseException:
        connection.close_file()
        raise


class _Suspended:
    """The class of a connection that was closed before a fork: whatever is asked of it opens it again first."""

    kind: type[OwnConnection]

    def __getattribute__(self, name: str) -> Any:
        if name in _OF_OBJECTS:
            return object.__getattribute__(self, name)
        return getattr(_awake(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_awake(self), name, value)

    def __enter__(self) -> Any:
        return _awake(self).__enter__()

    def __call__(self, *arguments: Any) -> Any:
        return _awake(self)(*arguments)


def _awake(connection: Any) -> Any:
    """The connection, open again with its settings.

    Raises:
        dbapi.Error: the file can't be opened (any more). The connection stays suspended.
    """
    with foreign.no_fork():
        suspended = type(connection)
        if issubclass(suspended, _Suspended):  # unless another thread has just done it
            object.__setattr__(connection, "__class__", suspended.kind)
            try:
                _resume(connection)
            except BaseException:
                object.__setattr__(connection, "__class__", suspended)
                raise
    return connection


class _Inherited:
    """The class of a connection that was in use while the process forked, in the child: it belongs to the parent."""

    def __getattribute__(self, name: str) -> Any:
        if name in _OF_OBJECTS:
            return object.__getattribute__(self, name)
        raise StoreError(f"the connection is the parent process's: {foreign.TORN}")

    def _refuse(self, *_: object) -> NoReturn:
        raise StoreError(f"the connection is the parent process's: {foreign.TORN}")

    __setattr__ = __enter__ = __call__ = _refuse


# Of each object: asked by weak references, by pools that compare connections, and by the change of the class itself.
_OF_OBJECTS = frozenset({"__class__", "__dict__", "__hash__", "__eq__", "__repr__"})
_ATTRIBUTES = ("row_factory", "text_factory", "isolation_level", "autocommit")


@cache
def _suspended(kind: Any) -> Any:
    return type(kind.__name__, (_Suspended, kind), {"kind": kind})


@cache
def _inherited(kind: Any) -> Any:
    return type(kind.__name__, (_Inherited, kind), {})


def _wait_for_calls() -> None:
    """Wait until the driver's calls in other threads are over; a transaction or a cursor that is open may stay so."""
    own = threading.get_ident()
    deadline = time.monotonic() + connections.FORK_PATIENCE
    while any(each.at_work and own != each.user for each in _awake_ones()) and time.monotonic() < deadline:
        time.sleep(0.0005)


def _suspend_idle() -> None:
    for each in _awake_ones():
        _suspend(each)


def _awake_ones() -> list[OwnConnection]:
    return [each for each in list(every) if not issubclass(type(each), _Suspended | _Inherited)]


def _give_up_inherited() -> None:
    """In the child: what is open belongs to the parent."""
    inherited = [each for each in _awake_ones() if each.identity is not None and each.is_open]
    for each in inherited:
        kind: Any = type(each)
        object.__setattr__(each, "__class__", _inherited(kind))
    if inherited:
        foreign.keep_for_ever(inherited)


@cache
def install() -> None:
    """Take part in forks from now on. A second call does nothing."""
    foreign.before_fork.append(_suspend_idle)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_wait_for_calls, after_in_child=_give_up_inherited)
