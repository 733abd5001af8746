"""One open queue file: what the parts of a store share."""

from pathlib import Path

from sqsqlite.errors import StoreClosed, StoreError
from sqsqlite.store.clock import Clock
from sqsqlite.store.connections import Pool
from sqsqlite.store.foreign import TORN
from sqsqlite.store.headroom import Headroom
from sqsqlite.store.settings import Settings
from sqsqlite.store.turns import Turnstile


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
