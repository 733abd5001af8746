# SPDX-License-Identifier: Apache-2.0
"""The files of a mock: one a region, made when the region is first asked."""

import re
import secrets
import threading

from sqsqlite.actions.opening import open_store
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.errors import StoreClosed
from sqsqlite.store.clock import Clock
from sqsqlite.store.store import Store
from sqsqlite.testing.clock import MovableClock
from sqsqlite.testing.files import Folder, lay

ACCOUNT_ID = "123456789012"
"""The account whose queues a mock has, as moto's."""


class Regions:
    """Open files, one a region.

    Args: see `mock_sqs`.

    Attributes:
        clock: all files' clock.
        account_id: whose queues they hold.
    """

    def __init__(
        self,
        *,
        account_id: str = ACCOUNT_ID,
        clock: Clock | None = None,
        compat: str = "aws",
        limits: str = "sqs",
        cooldowns: bool = False,
    ) -> None:
        if not re.fullmatch(r"[0-9]{12}", account_id):
            raise ValueError(f"account_id={account_id!r}: 12 digits are allowed")
        self.clock: Clock = clock or MovableClock()
        self.account_id = account_id
        self._compat = compat
        self._limits = limits
        self._cooldowns = cooldowns
        self._lock = threading.Lock()
        self._stores: dict[str, Store] = {}
        self._mark = secrets.token_bytes(16)
        self._folder = Folder()
        self._made = 0
        self._is_over = False

    def store(self, region: str) -> Store:
        """The open file of a region.

        Raises:
            StoreClosed: the mock has ended.
            ValueError: an option of the mock has a value that is not allowed, or the region.
        """
        found = self._stores.get(region)
        if found is not None:
            return found
        with self._lock:
            if self._is_over:
                raise StoreClosed("the mock_sqs that answered this client has ended")
            if region not in self._stores:
                self._made += 1
                self._stores[region] = open_store(
                    lay(self._folder.path / f"{self._made}.db", self._mark),
                    test=self._mark,
                    synchronous="OFF",
                    compat=self._compat,
                    limits=self._limits,
                    cooldowns=self._cooldowns,
                    clock=self.clock,
                    region=region,
                )
            return self._stores[region]

    def caller(self, base_url: str) -> Caller:
        """Who asks: the account of the mock, by an endpoint whose URL begins its queues' URLs."""
        return Caller(self.account_id, None, base_url)

    def clear(self) -> None:
        """Remove all queues."""
        with self._lock:
            stores, self._stores = self._stores, {}
        for store in stores.values():
            store.close()

    def remove(self) -> None:
        """Close the files and remove them."""
        self._is_over = True
        self.clear()
        self._folder.remove()
