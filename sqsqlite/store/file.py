# SPDX-License-Identifier: Apache-2.0
"""What a file was opened with.

One open queue file: what the parts of a store share.
"""

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
        strict_handles: `compat="docs"`: an expired or replaced receipt handle is an error on standard queues too.
        compat: "docs" or "aws" (see docs/differences.md).
        region: the region in queue ARNs.
        sealer: issues and reads the file's receipt handles.
        jumps: of the file's clock, none with a clock of the caller's: `connect(clock=...)`.
    """

    path: Path
    limits: Limits
    compat: str
    strict_handles: bool
    region: str
    sealer: Sealer
    jumps: Jumps


class File:
    """What `opening.open_file` gives.

    Attributes:
        path: the file, without links.
        folder: FILE-sqs, next to it.
        synchronous, busy_timeout: as `connect` takes them.
        writers, readers, watchers: connections to write, to read a snapshot, and to look at the file's state.
        difference_ms: how far the wall clock was ahead of the file's when the file last noted it.
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
        """What a call on a closed store raises."""
        if self.writers.is_torn:
            return StoreError(f"{self.path}: {TORN}")
        return StoreClosed(f"{self.path}: closed")
