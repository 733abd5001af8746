# SPDX-License-Identifier: Apache-2.0
"""The commands that run Spark: their options and files, their session, and how its errors end them."""

import _thread
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sqsqlite.cli.arguments import QueueName
from sqsqlite.cli.command_line import CommandLine, no_such_queue
from sqsqlite.cli.failures import FAILED, Failure, end, handled_by
from sqsqlite.cli.options import all_of

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql import DataFrame, SparkSession

    from sqsqlite.spark import Facts

_FILES_BETWEEN_LINES = 25
_AGAIN_SECONDS = 0.1


def _setting(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r}: a setting is NAME=VALUE", context, parameter)
        settings[name] = value
    return settings


spark_options = all_of(
    click.option(
        "--queue",
        "queues",
        multiple=True,
        type=QueueName(),
        metavar="QUEUE",
        help="Only this queue; repeatable.",
    ),
    click.option(
        "--master", metavar="URL", help="Where Spark runs. Default: local[*], all cores of this machine."
    ),
    click.option(
        "--conf",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_setting,
        help="A Spark setting; repeatable.",
    ),
    click.option(
        "--jdbc-jar",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="The JDBC driver. Default: SQSQLITE_JDBC_JAR, else found or fetched.",
    ),
    click.option(
        "--partitions",
        type=click.IntRange(1, 10_000),
        help="Connections that read at once. Default: two for each core.",
    ),
    click.option(
        "--snapshot-dir",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="The folder of the snapshot; on a cluster, every machine must see it. Default: a temporary one.",
    ),
)


class Watch:
    """Shows the present step of a long run, and measures its time."""

    def __init__(self, line: CommandLine) -> None:
        self._status = line.progress()
        self._started = time.monotonic()
        self.spark_seconds = 0.0

    def at(self, what: str) -> None:
        """On a terminal: the present step."""
        self._status.draw(f"{what} ...")

    def took(self, facts: "Facts") -> None:
        """On a terminal: how many files and messages the snapshot holds so far."""
        if facts.files == 1 or facts.files % _FILES_BETWEEN_LINES == 0:
            self.at(f"Taking the snapshot: {facts.files:,} files, {facts.messages:,} messages")

    def clear(self) -> None:
        """Remove the line."""
        self._status.clear()

    @property
    def seconds(self) -> float:
        """Since the beginning, without Spark's start."""
        return time.monotonic() - self._started - self.spark_seconds


@contextmanager
def spark(
    watch: Watch, *, master: str | None, conf: dict[str, str], jdbc_jar: Path | None
) -> Iterator["SparkSession"]:
    """A session for the block. An error of Spark becomes one line, without the hundred lines of Java's stack."""
    from sqsqlite.spark import spark_session

    watch.at("Starting Spark")
    started = time.monotonic()
    try:
        with _ended_by_signals(), spark_session(master=master, conf=conf, jar=jdbc_jar) as session:
            watch.spark_seconds = time.monotonic() - started
            yield session
    except Exception as error:
        if type(error).__module__.partition(".")[0] in {"pyspark", "py4j"}:
            # The message of Java's exception, without its stack.
            exception = getattr(error, "java_exception", None)
            lines = str(error if exception is None else exception).strip().splitlines()
            raise Failure(f"SparkFailed: {lines[0] if lines else ''}", FAILED) from error
        raise
    finally:
        watch.clear()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGINT and SIGTERM end the block as they end every command, whatever Spark does with them.

    Py4J logs an interrupt with its stack and continues, or takes it for an error of its connection. Python loses an
    interrupt that arrives while it frees an object. So this remembers the first signal, repeats a lost one, and hides
    the messages that Spark prints after it.
    """
    came: list[int] = []
    unraisable = sys.unraisablehook

    def take(number: int, frame: "FrameType | None") -> None:
        came.append(number)
        logging.disable()
        warnings.simplefilter("ignore")
        sys.unraisablehook = lost
        end(number, frame)

    def lost(what: "sys.UnraisableHookArgs") -> None:
        if issubclass(what.exc_type, KeyboardInterrupt):
            # Not a Timer, whose start waits for the thread: an exception raised in here would be lost too.
            _thread.start_new_thread(again, ())

    def again() -> None:
        time.sleep(_AGAIN_SECONDS)
        if sys.unraisablehook is lost:
            os.kill(os.getpid(), came[0])

    # A background process of a shell ignores SIGINT, and continues to.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
    with warnings.catch_warnings(), handled_by(take, *numbers):
        try:
            yield
        except Exception:
            if not came:
                raise
        finally:
            sys.unraisablehook = unraisable
            logging.disable(logging.NOTSET)
    if came:
        end(came[0])


def queue_files(line: CommandLine, files: Sequence[str]) -> list[Path]:
    """The files that the command names, by paths and globs; without any, the file of --db."""
    from sqsqlite.spark import find_files

    line.say_path()
    if not files and not line.exists:
        raise line.missing()
    paths = find_files(files) if files else [line.path]
    if not paths:
        raise Failure(f"NoSuchFile: {' '.join(files)}: no file has this name", FAILED)
    return paths


def check_queues(wanted: Sequence[str], queues: "DataFrame", paths: Sequence[Path]) -> None:
    """Refuse a name that no file has: it is a typing error."""
    if not wanted:
        return
    names = sorted({row.queue for row in queues.select("queue").distinct().collect()})
    for queue in wanted:
        if queue not in names:
            raise no_such_queue(queue, paths[0] if len(paths) == 1 else Path(f"{len(paths)} files"), names)
