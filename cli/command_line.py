# SPDX-License-Identifier: Apache-2.0
"""The options of one run, and its file, which is opened when the command first needs it."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from sqsqlite.cli.failures import FAILED, Failure
from sqsqlite.cli.options import DEFAULT_PATH
from sqsqlite.cli.table import obeys_escapes, on_screen, one_line
from sqsqlite.errors import QueueDoesNotExist

if TYPE_CHECKING:
    from sqsqlite import SQS, Queue
    from sqsqlite.cli.output import Output
    from sqsqlite.cli.progress import Progress

_OPENING = ("synchronous", "compat", "limits", "busy_timeout", "adopt", "region")

_NAMES_SHOWN = 5


class CommandLine:
    """The object behind `click.pass_obj`.

    Args:
        options: the given ones, by name. Click adds more while it reads the rest of the line.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options
        self._sqs: SQS | None = None

    @property
    def path(self) -> Path:
        """The file: --db, else SQSQLITE_DB, else ./sqsqlite.db."""
        return Path(self.options.get("db") or DEFAULT_PATH)

    @property
    def connect_options(self) -> dict[str, Any]:
        """The given options that `sqsqlite.connect` takes, as its keyword arguments."""
        return {name: self.options[name] for name in _OPENING if name in self.options}

    # --- the file

    def open(self, *, create: bool = False) -> "SQS":
        """Open the file, once in a run.

        Args:
            create: create a missing file.

        Raises:
            Failure: the file is missing and `create` is False. A command that reads creates nothing.
            StoreError: the file can't be used as it is.
        """
        if self._sqs is None:
            self.say_path()
            if self.options.get("out"):
                _ = self.output  # refuse a path that can't be written before anything is done
            if not (create or self.exists):
                raise self.missing()
            from sqsqlite import SQS

            self._sqs = SQS.open(self.path, **self.connect_options)
        return self._sqs

    @property
    def exists(self) -> bool:
        """Whether the file exists and is not empty. SQLite would accept an empty file and make tables in it."""
        return self.path.exists() and not (self.path.is_file() and not self.path.stat().st_size)

    def missing(self) -> Failure:
        """The failure of a command whose file is missing or empty."""
        what = "the file is empty" if self.path.exists() else "there is no such file"
        return Failure(
            f"NoSuchFile: {self.path}: {what}. `sqsqlite create QUEUE` makes it; "
            "--db FILE or SQSQLITE_DB names another",
            FAILED,
        )

    @property
    def sqs(self) -> "SQS":
        """The open file. It must exist."""
        return self.open()

    def queue(self, name: str) -> "Queue":
        """Find a queue by name, URL or ARN.

        Raises:
            Failure: the file has no such queue; the message names the file and some of its queues.
        """
        with self.naming(name):
            return self.sqs.queue(name)

    @contextmanager
    def naming(self, queue: str | None) -> Iterator[None]:
        """Name the missing queue in QueueDoesNotExist. SQS's own sentence does not name it.

        Args:
            queue: as on the command line; None keeps SQS's sentence.
        """
        try:
            yield
        except QueueDoesNotExist as error:
            if queue is None:
                raise
            names = [found.name for found in self.sqs.queues()]
            raise no_such_queue(queue, self.path, names) from error

    def close_file(self) -> None:
        """Close the file; the next use opens it again."""
        if self._sqs is not None:
            self._sqs.close()
            self._sqs = None

    def finish_output(self, *, failed: bool) -> None:
        """Put the file of --out in its place.

        Args:
            failed: the command has failed after its data, or without any. Then a file without data changes nothing.
        """
        if "output" in self.__dict__:
            if failed:
                self.output.keep()
            else:
                self.output.finish()

    def close(self) -> None:
        """Close what was opened. A second call does nothing. Unfinished output is dropped."""
        self.close_file()
        if "output" in self.__dict__:
            self.output.close()

    def check_out(self, inputs: Sequence[Path]) -> None:
        """Check --out before long work.

        Args:
            inputs: the files that the command reads.

        Raises:
            Failure: --out names one of them or another database, or can't be written.
        """
        target = self.options.get("out")
        if target not in (None, "-"):
            from sqsqlite.cli.out_file import check_target

            check_target(target, inputs)

    # --- words and data

    @property
    def coloured(self) -> bool:
        """Whether a terminal may show colours and bold text."""
        plain = self.options.get("no_color") or os.environ.get("NO_COLOR")
        return not plain and obeys_escapes()

    def progress(self, done: str = "", source: IO[bytes] | None = None, *, total: int = 0) -> "Progress":
        """Make the progress line of a long command, drawn unless --quiet was given; see `Progress`."""
        from sqsqlite.cli.progress import Progress

        shown = not self.options.get("quiet")
        return Progress(done, source, total=total, shown=shown, coloured=self.coloured)

    @cached_property
    def output(self) -> "Output":
        """The place and the format of the data."""
        from sqsqlite.cli.output import Output

        options = self.options
        return Output(
            options.get("output"),
            path=options.get("out"),
            inputs=(self.path,),
            query=options.get("query"),
            coloured=self.coloured,
        )

    def say(self, text: str) -> None:
        """Print a sentence to standard error, unless --quiet is given."""
        if not self.options.get("quiet"):
            click.echo(on_screen(text), err=True)

    def say_problems(self, problems: Iterable[str]) -> None:
        """Print each problem on a line of its own, even if the name of a file has line ends."""
        for problem in problems:
            self.say(f"problem: {one_line(problem)}")

    def advise_privacy(self, path: Path) -> None:
        """Warn if other users can read a file that holds secrets."""
        if os.name == "posix" and path.stat().st_mode & 0o077:
            self.say(f"{path}: other users can read these secrets: chmod 600 prevents that")

    def say_path(self) -> None:
        """Say which file is used, if --verbose was given."""
        if self.options.get("verbose"):
            click.echo(on_screen(f"file: {self.path.absolute()}"), err=True)

    def confirm(self, question: Callable[[], str] | str, *, yes: bool) -> None:
        """Ask before a step that can't be undone, unless --yes was given.

        Args:
            question: without its question mark; a function, if making it reads the file, which --yes spares.

        Raises:
            Failure: the answer is no, or there is no terminal to ask on.
        """
        if yes:
            return
        text = question if isinstance(question, str) else question()
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise click.UsageError(f"{text}? The command can't ask without a terminal: add --yes to confirm.")
        if not click.confirm(f"{text}?", err=True):
            raise Failure("Nothing was done.")


def no_such_queue(queue: str, path: Path, names: Sequence[str]) -> Failure:
    """The failure for a missing queue. It suggests queues with similar names, else the first ones."""
    from difflib import get_close_matches

    shown = get_close_matches(queue, names, _NAMES_SHOWN) or names[:_NAMES_SHOWN]
    rest = ", ..." if len(names) > len(shown) else ""
    existing = f"its queues: {', '.join(shown)}{rest}" if names else "it has no queues"
    return Failure(f"QueueDoesNotExist: {queue}: no such queue in {path} ({existing})", FAILED)


pass_line = click.make_pass_decorator(CommandLine)
