# SPDX-License-Identifier: Apache-2.0
"""Messages as Parquet files, in one folder for each queue and day of sending; each snapshot adds files."""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from sqsqlite.spark.errors import ExportIncomplete
from sqsqlite.spark.expressions import F, uuid_text, whole_part, with_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DAY_MS = 86_400_000
_FOLDERS = ("queue_folder", "day")
# For the file without rows of an empty export. Its folders have names of the same types as all others.
_NOTHING = Path("queue_folder=none", "day=1970-01-01")
_HIDDEN = ".export-"
_ABANDONED_S = 86_400


def message_rows(messages: "DataFrame", queues: "DataFrame", names: Sequence[str] = ()) -> "DataFrame":
    """One row for each message.

    The columns have types that every reader of Parquet knows: 64-bit numbers, UTF-8, timestamps in UTC. `taken_at` is
    the instant of the snapshot, which tells snapshots of the same queue apart. `queue_folder` and `day` become folders.
    Readers guess the type of a folder's value and would take the queues 7 and 007 for one number. So `queue` is a
    column in the files, and the folder's name begins with a letter.

    Args:
        messages: of facts with all message ids; see `facts_of` and `read_facts`.
        queues: of the same facts.
        names: of queues; by default, all.
    """
    wanted = queues.where(F.col("queue").isin(*names)) if names else queues
    named = F.broadcast(wanted.select("queue_key", "queue", "account_id", "file"))
    known = with_state(messages).join(named, "queue_key")
    return known.select(
        F.timestamp_millis("now_ms").alias("taken_at"),
        "file",
        "account_id",
        F.col("id").alias("row_id"),
        uuid_text("message_id"),
        "state",
        F.timestamp_millis("sent_at").alias("sent_at"),
        F.timestamp_millis(F.nullif(F.col("visible_at"), F.lit(0))).alias("visible_at"),
        F.timestamp_millis("received_at").alias("received_at"),
        F.timestamp_millis("first_received_at").alias("first_received_at"),
        "receive_count",
        "queue_receive_count",
        "size_bytes",
        "group_id",
        "queue",
        F.concat(F.lit("q-"), "queue").alias("queue_folder"),
        # Not by a timestamp, whose day would be in the session's time zone.
        F.date_add(F.to_date(F.lit("1970-01-01")), whole_part("sent_at", _DAY_MS).cast("int")).alias("day"),
    )


def write_parquet(rows: "DataFrame", folder: str | os.PathLike[str], *, expected: int) -> int:
    """Add the rows to the folder, and keep the files of earlier snapshots.

    Spark writes into a hidden folder of this call, whose files are then renamed: Spark's committer would remove the
    unfinished files of other writers to the same folder. A killed run leaves its hidden folder. Readers ignore it, and
    the next run removes it when it is a day old.

    Args:
        rows: those of `message_rows`.
        folder: on a disk of this machine; on a cluster, a folder that all machines see under this name. It is made if
            it does not exist. If it has no files yet and there are no rows, it gets one file without rows.
        expected: the number of rows.

    Returns:
        The number of rows that were added.

    Raises:
        ExportIncomplete: this machine sees another number of rows in the new files; nothing was added.
    """
    lake = Path(folder).absolute()
    made = not lake.exists()
    lake.mkdir(parents=True, exist_ok=True)
    _sweep(lake)
    own = lake / f"{_HIDDEN}{uuid4()}"
    try:
        with _instants_of_64_bits(rows.sparkSession):
            rows.write.partitionBy(*_FOLDERS).parquet(_url(own), compression="snappy")
            count = sum(_row_counts(rows.sparkSession, _parts(own)))
            if count != expected:
                raise ExportIncomplete(
                    f"{folder}: this machine sees {count:,} of {expected:,} messages of the snapshot in the new files, "
                    "so nothing was added. On a cluster, all machines must see the folder under the same name; "
                    "otherwise each executor writes to its own disk."
                )
            if count == 0 and not any(lake.glob("queue_folder=*")):
                nothing = rows.limit(0).drop(*_FOLDERS)
                nothing.write.parquet(_url(own / _NOTHING), compression="snappy")
        for part in _parts(own):
            target = lake / part.relative_to(own)  # a name with a UUID of Spark's
            target.parent.mkdir(parents=True, exist_ok=True)
            part.rename(target)
    finally:
        shutil.rmtree(own, ignore_errors=True)
        if made:
            with suppress(OSError):  # something was added
                lake.rmdir()
    return count


def _sweep(lake: Path) -> None:
    """Remove the hidden folders of killed runs."""
    for left in lake.glob(f"{_HIDDEN}*"):
        with suppress(FileNotFoundError):  # another run has removed it
            if left.stat().st_mtime < time.time() - _ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)


def _url(folder: Path) -> str:
    """The folder's URL as Hadoop reads it, unquoted. Hadoop would look for a plain path in its default file system."""
    return f"file:///{folder.as_posix().lstrip('/')}"


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.rglob("part-*.parquet"))


def _row_counts(session: "SparkSession", parts: Sequence[Path]) -> Iterator[int]:
    """The rows of each file, by its footer. This machine reads it: in a job, the executors would answer."""
    # Private names: PySpark has no public reader of footers.
    jvm: Any = session._jvm  # noqa: SLF001
    configuration = session._jsc.hadoopConfiguration()  # noqa: SLF001
    for part in parts:
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(_url(Path(quote(str(part))))))
        footer = jvm.org.apache.parquet.hadoop.ParquetFileReader.readFooter(configuration, path)
        yield sum(block.getRowCount() for block in footer.getBlocks())


@contextmanager
def _instants_of_64_bits(session: "SparkSession") -> "Iterator[None]":
    """Spark's own default is INT96. A session of another program gets its setting back."""
    name = "spark.sql.parquet.outputTimestampType"
    before = str(session.conf.get(name))
    session.conf.set(name, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        session.conf.set(name, before)
