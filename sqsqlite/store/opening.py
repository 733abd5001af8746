# SPDX-License-Identifier: Apache-2.0
"""Opening a queue file: what `connect` gives becomes a `File`."""

import os
from pathlib import Path
from typing import Any

from sqsqlite.contract.limits import Limits
from sqsqlite.contract.receipts import Sealer
from sqsqlite.errors import CannotOpen, DiskFull, InputOutputError
from sqsqlite.store import create, driver, foreign, meta, secrecy
from sqsqlite.store.beside import make_folder
from sqsqlite.store.clock import Clock, Jumps
from sqsqlite.store.connections import LEVELS, Pool, connect, disconnect
from sqsqlite.store.driver import dbapi
from sqsqlite.store.file import File, Settings
from sqsqlite.store.headroom import Headroom
from sqsqlite.store.meta import check_version
from sqsqlite.store.translate import translate
from sqsqlite.store.turns import Turnstile, let_go, turnstile_for


def open_file(
    path: str | os.PathLike[str],
    *,
    synchronous: str,
    busy_timeout: float,
    adopt: bool,
    clock: Clock | None,
    limits: Limits,
    compat: str,
    region: str,
    test: bytes | None = None,
) -> File:
    """Open a queue file, and create it when it is missing.

    Args:
        synchronous: "FULL" (each commit synced) or "NORMAL" (the last commits may be lost at power loss).
        busy_timeout: seconds that a write waits for others before it raises Busy.
        adopt: take a SQLite file that already holds an application's tables.
        clock: None for the file's own clock.
        limits, compat, region: see `Settings`.
        test: the mark of the test whose file it is.

    Raises:
        StoreError: the path or the file can't be used.
        ValueError: `synchronous` or `path` is nothing that can be meant.
    """
    if synchronous not in LEVELS:
        raise ValueError(f"synchronous={synchronous!r}: one of {', '.join(LEVELS)} is allowed")
    driver.check_version()
    opening = _Opening(create.resolved(path), synchronous, busy_timeout, adopt, clock, test)
    try:
        create.check_path(opening.path)
        facts, file_clock = opening.open_in_room()
    except OSError as error:
        if error.errno is None:
            raise  # a signal handler's
        raise create.refused(opening.path, error) from error
    jumps = facts.jumps if clock is None else Jumps()
    return File(
        opening.path,
        opening.folder,
        synchronous,
        busy_timeout,
        opening.turnstile,
        opening.headroom,
        file_clock,
        Settings(opening.path, limits, compat, compat == "docs", region, Sealer(facts.secret), jumps),
        *opening.pools,
        facts.difference_ms,
    )


class _Opening:
    """One attempt, or two on a full disk."""

    turnstile: Turnstile
    pools: tuple[Pool, Pool, Pool]

    def __init__(
        self,
        path: Path,
        synchronous: str,
        busy_timeout: float,
        adopt: bool,
        clock: Clock | None,
        test: bytes | None,
    ) -> None:
        self.path = path
        self.folder = Path(f"{path}-sqs")
        self.headroom = Headroom(self.folder, path)
        self._options: dict[str, Any] = {"synchronous": synchronous, "busy_timeout": busy_timeout}
        self._busy_timeout = busy_timeout
        self._adopt = adopt
        self._clock = clock
        self._test = test

    def open_in_room(self) -> tuple[meta.Meta, Clock]:
        """The file's facts and its clock."""
        try:
            return self._open()
        except (DiskFull, InputOutputError):
            # On a full disk SQLite's -wal and -shm find no room; the second is reported as an I/O error.
            if not self.headroom.release():
                raise
            return self._open()

    def _open(self) -> tuple[meta.Meta, Clock]:
        if not self.path.exists():
            # Before the lock files: its (device, inode) names the turnstile. SQLite takes an empty file.
            self.path.touch(exist_ok=True)
        with foreign.no_fork():
            facts = create.read_facts(self.path, adopt=self._adopt, **self._options)
        if facts is not None and facts.test != self._test:
            raise CannotOpen(
                f"{self.path}: the file of a test run (mock_sqs, `sqsqlite serve --test-mode`), which has a clock of "
                "its own: nothing else may open it"
            )
        make_folder(self.folder)
        self.turnstile = turnstile_for(foreign.identity(self.path), self.folder)
        try:
            self.headroom.open()
            return self._use(facts)
        except BaseException:
            self.headroom.close()
            let_go(self.turnstile)
            raise

    def _use(self, facts: meta.Meta | None) -> tuple[meta.Meta, Clock]:
        found = self._clock or (meta.clock_of(facts) if facts is not None else None)
        if facts is None or found is None:
            # Only then is anything written: opening a file that is in order waits for no writer.
            with self.turnstile.taken(self._busy_timeout), foreign.no_fork():
                facts, found = self._prepare()
        writers, readers, watchers = (Pool(self.path, **self._options) for _ in range(3))
        self.pools = writers, readers, watchers
        # One connection from now on: an upgrade, a restore or a second SQLite copy must find the file in use.
        with readers.lent() as connection:
            secrecy.tighten_with_keys(self.path, connection)
        return facts, found

    def _prepare(self) -> tuple[meta.Meta, Clock]:
        """Make the file a queue's, or ready again, and set its clock. The turn is held."""
        create.create(self.path, adopt=self._adopt, **self._options)
        connection = connect(self.path, **self._options)
        try:
            check_version(connection, self.path)
            found = self._clock or meta.set_clock(connection)
            return meta.read(connection), found
        except dbapi.Error as error:
            raise translate(error, self.path) from error
        finally:
            disconnect(connection, self.path)
