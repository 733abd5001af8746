# SPDX-License-Identifier: Apache-2.0
"""One open queue file, which the parts of a store share, and the settings of its opening."""

from pathlib import Path
from typing import NamedTuple

from sqsqlite.contract.limits import Limits
from sqsqlite.contract.receipts import Sealer
from sqsqlite.errors import StoreClosed, StoreError
from sqsqlite.store.clock import Clock, Jumps
from sqsqlite.store.connections import Pool
from sqsqlite.store.foreign import TORN
from sqsqlite.store.headroom import Headroom
from sqsqlite.store.turns import Turnstile


class Settings(NamedTuple):
    """The file, and options of `connect` that operations need.

    Attributes:
        path: the file.
        limits: the quotas in force.
        strict_handles: from `compat="docs"`: an expired or replaced receipt handle is an error on standard queues too.
        compat: "docs" or "aws" (see docs/differences.md).
        region: the region in queue ARNs.
        sealer: issues and reads the file's receipt handles.
        jumps: the jumps of the file's clock. Empty if the caller gave a clock by `connect(clock=...)`.
    """

    path: Path
    limits: Limits
    compat: str
    strict_handles: bool
    region: str
    sealer: Sealer
    jumps: Jumps


class File:
    """An open file, made by `opening.open_file`.

    Attributes:
        path: the file, without links.
        folder: FILE-sqs, next to it.
        synchronous, busy_timeout: as `connect` takes them.
        writers, readers, watchers: connections to write, to read a snapshot, and to look at the file's state.
        difference_ms: how far the wall clock was ahead of the file's clock when the file last noted it.
        is_closed: the store is closed.
    """

    def __init__(
        self,
        path: Path,
        folder: Path,
        synchronous: str,
        busy_timeout: float,
        turnstile: Turnstile,
        headroom: Headroom,
        clock: Clock,
        settings: Settings,
        writers: Pool,
        readers: Pool,
        watchers: Pool,
        difference_ms: int,
    ) -> None:
        self.path = path
        self.folder = folder
        self.synchronous = synchronous
        self.busy_timeout = busy_timeout
        self.turnstile = turnstile
        self.headroom = headroom
        self.clock = clock
        self.settings = settings
        self.writers = writers
        self.readers = readers
        self.watchers = watchers
        self.difference_ms = difference_ms
        self.is_closed = False

    def closed_error(self) -> StoreError:
        """The error that a call on a closed store raises."""
        if self.writers.is_torn:
            return StoreError(f"{self.path}: {TORN}")
        return StoreClosed(f"{self.path}: closed")
