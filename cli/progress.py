"""A line on the terminal that tells how far a long command is: on standard error, so data passes it by."""

import os
import stat
import sys
import time
from typing import IO, Any

_BAR = 24


class Progress:
    """How much was done, at which rate, and of a file how much of it was read.

    Args:
        source: the input; a regular file has a size, so it gets a bar.
        shown: False draws nothing.
    """

    def __init__(self, source: IO[bytes], *, shown: bool) -> None:
        self.count = 0
        self._source = source
        self._size = _size(source)
        self._shown = shown and sys.stderr.isatty()
        self._started = time.monotonic()
        self._drawn = 0.0

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._started

    @property
    def summary(self) -> str:
        """The count and the rate, in words."""
        rate = self.count / self.seconds if self.seconds else 0
        return f"{self.count:,} sent in {self.seconds:.1f} s ({rate:,.0f}/s)"

    def advance(self, count: int) -> None:
        """Count so many more, and draw the line anew, ten times a second at most."""
        self.count += count
        if self._shown and time.monotonic() - self._drawn > 0.1:
            self._drawn = time.monotonic()
            sys.stderr.write(f"\r{self._bar()}{self.summary}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away again."""
        if self._shown and self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    @property
    def part(self) -> float | None:
        """How much of the whole is done, 0 to 1; None where nobody knows."""
        return self._source.tell() / self._size if self._size else None

    def _bar(self) -> str:
        if self.part is None:
            return ""
        part = min(1.0, self.part)
        return f"[{'#' * round(part * _BAR):<{_BAR}}] {part:4.0%}  "


def _size(source: Any) -> int:
    """Bytes of a regular file, 0 of anything else."""
    try:
        status = os.fstat(source.fileno())
    except OSError:  # io.UnsupportedOperation is one: no file at all
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
