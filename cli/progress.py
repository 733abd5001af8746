# SPDX-License-Identifier: Apache-2.0
"""The progress line of a long command. It stands on standard error, so that it never mixes with data."""

import os
import stat
import sys
import time
from typing import IO, TYPE_CHECKING, Any

from sqsqlite.cli.table import obeys_escapes

if TYPE_CHECKING:
    import rich.progress


class Progress:
    """Counts finished things, and shows the count on a line that Rich draws. The first line loads Rich.

    Args:
        done: the word for finished things, such as sent or loaded.
        source: the input. If it is a regular file, the bar shows how much of it was read.
        total: the number of things, if known. The bar then shows how many are done.
        shown: whether to draw. Nothing is drawn if standard error is not a terminal, or one that can't erase a line.
        coloured: whether the bar may have colours.
    """

    def __init__(
        self,
        done: str = "",
        source: IO[bytes] | None = None,
        *,
        total: int = 0,
        shown: bool,
        coloured: bool = True,
    ) -> None:
        self.count = 0
        self._done = done
        self._source = source
        self._size = _size(source)
        self._total = total
        self._shown = shown and obeys_escapes() and sys.stderr is not None and sys.stderr.isatty()
        self._coloured = coloured
        self._line: rich.progress.Progress | None = None
        self._started = self._drawn = time.monotonic()

    @property
    def summary(self) -> str:
        """The count and the rate, in words."""
        seconds = time.monotonic() - self._started
        rate = f"{self.count / seconds if seconds else 0:,.0f}/s"
        if self._total:
            return f"{self.count:,} of {self._total:,} {self._done} ({rate})"
        return f"{self.count:,} {self._done} in {seconds:.1f} s ({rate})"

    def advance(self, count: int) -> None:
        """Count `count` more things, and redraw the line at most ten times a second."""
        self.count += count
        if self._shown and time.monotonic() - self._drawn > 0.1:
            self._drawn = time.monotonic()
            read = self._source.tell() / self._size if self._source and self._size else None
            self.draw(self.summary, self.count / self._total if self._total else read)

    def draw(self, text: str, part: float | None = None) -> None:
        """Replace the line.

        Args:
            part: 0 to 1, drawn as a bar; None draws no bar.
        """
        if not self._shown:
            return
        if self._line is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            bar = [] if part is None else [BarColumn(bar_width=24), TextColumn("{task.percentage:3.0f}%")]
            self._line = Progress(
                *bar,
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True, color_system="auto" if self._coloured else None),
                auto_refresh=False,  # no thread
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._line.add_task("", total=1.0)
            self._line.start()
        self._line.update(self._line.task_ids[0], completed=part, description=text, refresh=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._line is not None:
            self._line.stop()
            self._line = None


def _size(source: Any) -> int:
    """The size of a regular file in bytes; 0 for any other input."""
    try:
        status = os.fstat(source.fileno())
    except (AttributeError, OSError):  # no input, or one that is not a file (io.UnsupportedOperation)
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
