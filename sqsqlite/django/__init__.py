# SPDX-License-Identifier: Apache-2.0
"""Django on a file that also holds queues.

    DATABASES = {"default": {"ENGINE": "sqsqlite.django", "NAME": BASE_DIR / "app.db"}}

The engine is Django's own for SQLite with the driver of `sqsqlite.dbapi`. A transaction begins with BEGIN IMMEDIATE,
unless `OPTIONS` sets another `transaction_mode`. docs/django.md shows a whole application.
"""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqsqlite.errors import StoreError
from sqsqlite.store import driver

if TYPE_CHECKING:
    from sqsqlite.api.connect import SQS

__all__ = ["sqs"]

_opened: "dict[Path, SQS]" = {}
_lock = threading.Lock()


def sqs(using: str = "default") -> "SQS":
    """The queues in the file of a database of `settings.DATABASES`, opened once in each process. Don't close it.

    Args:
        using: the database's alias.

    Raises:
        StoreError: the database is in memory, or has another engine.
    """
    from django.db import connections

    settings = connections[using].settings_dict
    if not settings["ENGINE"].startswith("sqsqlite.django"):
        raise StoreError(
            f'the engine of DATABASES["{using}"] is {settings["ENGINE"]!r}: it must be "sqsqlite.django"'
        )
    path, _ = driver.file_of(settings["NAME"], uri=True)
    if path is None:
        raise StoreError(
            f'DATABASES["{using}"] is in memory, as Django\'s tests are unless they name a file: set '
            '"TEST": {"NAME": "test.db"} there'
        )
    return open_queues(path)


def open_queues(path: Path) -> "SQS":
    """The queues in a file, opened once in each process."""
    with _lock:
        found = _opened.get(path)
        if found is None:
            from sqsqlite.api.connect import connect

            found = _opened[path] = connect(path, adopt=True)
        return found


def close_queues(name: Any) -> None:
    """Close the queues in the file of this name, if they are open: the file is about to be deleted."""
    path, _ = driver.file_of(name, uri=True)
    with _lock:
        found = _opened.pop(path, None) if path is not None else None
    if found is not None:
        found.close()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
