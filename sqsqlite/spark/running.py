"""From files to numbers: which files, their tables for as long as they are needed, and a report's rows."""

import glob
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqsqlite.spark.catalogue import passes, reads_of
from sqsqlite.spark.facts import Facts, check_file, take_facts
from sqsqlite.spark.snapshot_folder import snapshot_folder
from sqsqlite.spark.tables import kept, live_tables, read_facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What SQLite lays beside a database; a glob such as `queues/*` finds them too.
_BESIDE = ("-wal", "-shm", "-journal")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Taken:
    """The tables of a report, and how they were come by.

    Attributes:
        facts: None for a live read.
        seconds: that it took, without Spark's start.
    """

    tables: "Mapping[str, DataFrame]"
    facts: Facts | None
    seconds: float


def find_files(patterns: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that paths and globs name, in order, each once and by the first of its names.

    A glob (`**` for folders below) may find nothing; a path stays, so that a missing file is told.
    """
    found: dict[object, Path] = {}
    for given in patterns:
        pattern = os.fspath(given)
        names = [pattern]
        if glob.has_magic(pattern) and not os.path.lexists(pattern):
            names = sorted(glob.glob(pattern, recursive=True))
            names = [name for name in names if os.path.isfile(name) and not name.endswith(_BESIDE)]
        for name in names:
            path = Path(name).absolute()
            found.setdefault(_identity(path), path)
    return list(found.values())


def _identity(path: Path) -> object:
    """The same for all links to a file; of a path without a file, the path."""
    try:
        status = path.stat()
    except OSError:
        return path
    return status.st_dev, status.st_ino


@contextmanager
def tables_of(
    session: "SparkSession",
    paths: Sequence[str | os.PathLike[str]],
    names: Sequence[str],
    *,
    live: bool = False,
    partitions: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[Facts], None] | None = None,
) -> Iterator[Taken]:
    """What the reports `names` read, of queue files: for the length of the block.

    Args:
        live: read the one file itself, over JDBC, by its views. Otherwise a facts file is taken first, and removed at
            the end.
        partitions: of the facts' messages.
        folder: where the facts file is laid: on a cluster, one that all machines see under this name. The system's
            own for temporary files unless said.
        progress: called after each file.
    """
    started = time.monotonic()
    if live:
        [path] = paths
        check_file(path)
        with live_tables(session, path, reads_of(*names)) as tables:
            yield Taken(tables, None, time.monotonic() - started)
        return
    with facts_of(paths, folder=folder, progress=progress) as facts:
        seconds = time.monotonic() - started
        reads = reads_of(*names)
        tables = read_facts(session, facts, reads, partitions=partitions)
        with kept(tables, reads) if passes(*names) > 1 else nullcontext(tables) as given:
            yield Taken(given, facts, seconds)


@contextmanager
def facts_of(
    paths: Sequence[str | os.PathLike[str]],
    *,
    all_message_ids: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[Facts], None] | None = None,
) -> Iterator[Facts]:
    """A facts file for the length of the block, in a folder of its own; see `tables_of` and `take_facts`.

    Folders that killed processes left beside it are removed.
    """
    with snapshot_folder(folder) as own:
        if folder is not None:
            os.chmod(own, 0o755)  # noqa: S103 # executors may run as another user
        target = Path(own, "facts.sqlite")
        yield take_facts(paths, target, all_message_ids=all_message_ids, progress=progress)


def rows_of(frame: "DataFrame") -> list[dict[str, Any]]:
    """A report's rows as JSON knows values: instants in ISO 8601, UTC.

    Spark would give a timestamp in the time zone of this process, without saying so; milliseconds are unambiguous.
    """
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    instants = {name for name, kind in frame.dtypes if kind == "timestamp"}
    columns = [F.unix_millis(name).alias(name) if name in instants else F.col(name) for name in frame.columns]
    return [
        {name: iso(value) if name in instants else value for name, value in row.asDict().items()}
        for row in frame.select(*columns).collect()
    ]


def iso(milliseconds: int | None) -> str | None:
    """An instant in ISO 8601, UTC, to the millisecond."""
    if milliseconds is None:
        return None
    return (
        (_EPOCH + timedelta(milliseconds=milliseconds))
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def without_constants(rows: list[dict[str, Any]], *, one_file: bool) -> list[dict[str, Any]]:
    """Rows without what says nothing: `file` where only one was asked for, `account_id` where all are the own one."""
    names = names_without_constants(list(rows[0]) if rows else [], rows, one_file=one_file)
    return [{name: row[name] for name in names} for row in rows]


def names_without_constants(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], *, one_file: bool
) -> list[str]:
    """The names of columns that are left by `without_constants`, also where there are no rows."""
    from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID

    dropped = set()
    if one_file and "queue" in names:
        dropped.add("file")
    if all(row.get("account_id") == DEFAULT_ACCOUNT_ID for row in rows):
        dropped.add("account_id")
    return [name for name in names if name not in dropped]
