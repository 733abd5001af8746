"""Options of the commands that run Spark, and how its errors end a run."""

import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.command_line import CommandLine, no_such_queue
from sqsqlite.cli.failures import FAILED, Failure
from sqsqlite.cli.signals import end, handled_by

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql import DataFrame, SparkSession

    from sqsqlite.spark.facts import Facts

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


_OPTIONS = (
    click.option(
        "--master", metavar="URL", help="Where Spark runs. Default: local[*], all cores of this machine."
    ),
    click.option(
        "--conf",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_setting,
        help="A setting of Spark's; may be repeated.",
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
        help="Connections that read at once. Default: two a core.",
    ),
    click.option(
        "--snapshot-dir",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Where the snapshot is laid: on a cluster, a folder that every machine sees. Default: the system's own.",
    ),
)


def spark_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--master, --conf, --jdbc-jar, --partitions and --snapshot-dir."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


class Watch:
    """Says what a long run is at, and what it took."""

    def __init__(self, line: CommandLine) -> None:
        self._status = line.progress()
        self._started = time.monotonic()
        self.spark_seconds = 0.0

    def at(self, what: str) -> None:
        """On a terminal: what it is at."""
        self._status.draw(f"{what} ...")

    def took(self, facts: "Facts") -> None:
        """On a terminal: how many files and messages the snapshot holds by now."""
        if facts.files == 1 or facts.files % _FILES_BETWEEN_LINES == 0:
            self.at(f"Taking the snapshot: {facts.files:,} files, {facts.messages:,} messages")

    def clear(self) -> None:
        """Take the line away again."""
        self._status.clear()

    @property
    def seconds(self) -> float:
        """Since the beginning, without Spark's start."""
        return time.monotonic() - self._started - self.spark_seconds


@contextmanager
def spark(
    watch: Watch, *, master: str | None, conf: dict[str, str], jdbc_jar: Path | None
) -> Iterator["SparkSession"]:
    """A session for the block; an error of Spark's is told in one line, not in a hundred of Java's stack."""
    from sqsqlite.spark.errors import SparkMissing
    from sqsqlite.spark.session import spark_session

    watch.at("Starting Spark")
    started = time.monotonic()
    try:
        from pyspark.errors import PySparkException
    except ImportError as error:
        from sqsqlite.operators.installed import install_command

        raise SparkMissing(f"PySpark is not installed: {install_command('spark')}") from error
    try:
        with _ended_by_signals(), spark_session(master=master, conf=conf, jar=jdbc_jar) as session:
            watch.spark_seconds = time.monotonic() - started
            yield session
    except PySparkException as error:
        raise Failure(f"SparkFailed: {_first_line(error)}", FAILED) from error
    except Exception as error:
        if type(error).__module__.startswith("py4j"):
            raise Failure(f"SparkFailed: {_first_line(error)}", FAILED) from error
        raise
    finally:
        watch.clear()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGINT and SIGTERM end the block as they end every command, whatever Spark makes of them.

    Py4J logs an interrupt with its stack and goes on, or takes it for an error of its connection; one that comes while
    Python lets go of an object is lost. So the first signal is remembered, a lost one comes again, and what Spark says
    after it is not heard.
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
            threading.Timer(_AGAIN_SECONDS, again).start()  # raised here it would be lost too

    def again() -> None:
        if sys.unraisablehook is lost:
            os.kill(os.getpid(), came[0])

    # A shell's background process ignores SIGINT, and stays so.
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
    """Refuse a name that no file has: it is a slip."""
    if not wanted:
        return
    names = sorted({row.queue for row in queues.select("queue").distinct().collect()})
    for queue in wanted:
        if queue not in names:
            raise no_such_queue(queue, paths[0] if len(paths) == 1 else Path(f"{len(paths)} files"), names)


def _first_line(error: BaseException) -> str:
    """What Java's exception says, without its stack."""
    told = getattr(error, "java_exception", None)
    text = str(told if told is not None else error)
    return text.strip().partition("\n")[0]
