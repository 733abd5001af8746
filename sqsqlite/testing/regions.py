# SPDX-License-Identifier: Apache-2.0
"""The files of a mock or of an endpoint in test mode: one a region, made when the region is first asked."""

import contextlib
import os
import re
import secrets
import shutil
import threading
from pathlib import Path

from sqsqlite.actions.opening import OpenOptions, check_region, open_store
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract.names import DEFAULT_REGION
from sqsqlite.errors import CannotOpen, StoreClosed
from sqsqlite.store.clock import Clock
from sqsqlite.store.create import check_kind, refused
from sqsqlite.store.store import Store
from sqsqlite.testing.clock import MovableClock
from sqsqlite.testing.files import Folder, lay

ACCOUNT_ID = "123456789012"
"""The account whose queues a mock has, as moto's."""


MOST_REGIONS = 100
"""Regions of one mock or server: Amazon has about 35."""


class Regions:
    """Open files, one a region.

    Args:
        account_id: 12 digits: whose queues a mock holds.
        clock: of all files. None: a `MovableClock`.
        path: the file of `region`; those of other regions lie beside it. None: all are in a temporary folder.
        region: see `path`.
        synchronous, compat, limits, cooldowns: as `sqsqlite.connect` takes them.

    Attributes:
        clock: all files' clock.
        account_id: whose queues they hold.
    """

    def __init__(
        self,
        *,
        account_id: str = ACCOUNT_ID,
        clock: Clock | None = None,
        path: Path | None = None,
        region: str = DEFAULT_REGION,
        synchronous: str = "OFF",
        compat: str = "aws",
        limits: str = "sqs",
        cooldowns: bool = False,
    ) -> None:
        if not re.fullmatch(r"[0-9]{12}", account_id):
            raise ValueError(f"account_id={account_id!r}: 12 digits are allowed")
        check_region(region)
        self.clock: Clock = clock or MovableClock()
        self.account_id = account_id
        self._options: OpenOptions = {
            "synchronous": synchronous,
            "compat": compat,
            "limits": limits,
            "cooldowns": cooldowns,
            "clock": self.clock,
        }
        self._lock = threading.Lock()
        self._stores: dict[str, Store] = {}
        self._mark = secrets.token_bytes(16)
        self._folder = Folder() if path is None else None
        self._path = path or Path(self._folder.path if self._folder else "", "queues.db")
        self._region = region
        self._is_over = False

    def path_of(self, region: str) -> Path:
        """Where the file of a region lies."""
        return self._path if region == self._region else self._path.with_name(f"{self._path.name}.{region}")

    def store(self, region: str) -> Store:
        """The open file of a region; a new one, if the region is new.

        Raises:
            StoreClosed: the mock or server has ended.
            CannotOpen, MissingFolder: something is there already, or the system refuses to make the file.
            ValueError: an option has a value that is not allowed, or the region; or there are 100 regions already.
        """
        found = self._stores.get(region)
        if found is not None:
            return found
        with self._lock:
            if self._is_over:
                raise StoreClosed("the mock_sqs that answered this client has ended")
            if region not in self._stores:
                if len(self._stores) >= MOST_REGIONS:
                    raise ValueError(
                        f"{region}: there are {MOST_REGIONS} regions already, and no more are allowed"
                    )
                path = self.path_of(region)
                check_region(region)
                options: OpenOptions = {**self._options, "region": region}
                self._stores[region] = open_store(self._new(path), test=self._mark, **options)
            return self._stores[region]

    def _new(self, path: Path) -> Path:
        if check_kind(path):
            raise CannotOpen(f"{path}: this file exists; each region needs a new file, which is thrown away")
        try:
            return lay(path, self._mark)
        except OSError as error:
            raise refused(path, error) from error

    def caller(self, base_url: str) -> Caller:
        """Who asks: the account of the mock, by an endpoint whose URL begins its queues' URLs."""
        return Caller(self.account_id, None, base_url)

    def clear(self) -> None:
        """Remove all queues, and set the clock to the machine's time if it was moved."""
        with self._lock:
            stores, self._stores = self._stores, {}
            for store in stores.values():
                store.close()
                _remove(store.path)
            if isinstance(self.clock, MovableClock):
                self.clock.reset()

    def remove(self) -> None:
        """Close the files and remove them."""
        self._is_over = True
        self.clear()
        if self._folder is not None:
            self._folder.remove()


def _remove(path: Path) -> None:
    """Remove a closed file and what lies beside it."""
    for name in (path, f"{path}-wal", f"{path}-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    shutil.rmtree(f"{path}-sqs", ignore_errors=True)
