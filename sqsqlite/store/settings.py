"""What a file was opened with."""

from pathlib import Path
from typing import NamedTuple

from sqsqlite.contract.limits import Limits
from sqsqlite.contract.receipts import Sealer
from sqsqlite.store.jumps import Jumps


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
