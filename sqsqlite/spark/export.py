"""Messages as Parquet: one partition a queue and day of sending, one batch of files a snapshot."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from sqsqlite.spark.errors import ExportIncomplete
from sqsqlite.spark.expressions import uuid_text, whole_part, with_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DAY_MS = 86_400_000
_FOLDERS = ("queue_folder", "day")
# Where nothing was exported yet, a file without rows; its folders are of the types that all others are.
_NOTHING = Path("queue_folder=none", "day=1970-01-01")
_HIDDEN = ".export-"
_ABANDONED_S = 86_400

READS: Mapping[str, tuple[str, ...]] = {
    "queues": ("fifo", "max_receive_count"),
    "messages": (
        "id",
        "sent_at",
        "visible_at",
        "received",
        "received_at",
        "first_received_at",
        "receive_count",
        "queue_receive_count",
        "size_bytes",
        "group_id",
        "message_id",
    ),
}


def message_rows(messages: "DataFrame", queues: "DataFrame", names: Sequence[str] = ()) -> "DataFrame":
    """A row a message, of facts with all message ids.

    Only types that every reader of Parquet has: 64-bit numbers, UTF-8, timestamps in UTC. `taken_at` is the snapshot's
    instant: snapshots of the same queue are told apart by it. `queue_folder` and `day` become folders. Readers guess
    a folder's type by how it looks, which makes one number of the queues 7 and 007: so `queue` is a column of the
    files, and the folder's name begins with a letter.

    Args:
        names: of queues; all unless said.
    """
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

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
        # No way through a timestamp: its day would be that of the session's time zone.
        F.date_add(F.to_date(F.lit("1970-01-01")), whole_part("sent_at", _DAY_MS).cast("int")).alias("day"),
    )


def write_parquet(rows: "DataFrame", folder: Path, *, expected: int) -> int:
    """Add the rows to the folder, beside files of earlier snapshots.

    Spark writes into a hidden folder of this call alone, whose files are then renamed: in one folder Spark's committer
    removes at its end what other writers have under way. A run that is killed leaves the hidden folder, which readers
    pass over and a run of a day later removes.

    Args:
        folder: on a disk of this machine, or on a cluster a folder that all machines see under this name; made if it
            is not there. If it has no files yet and there are no rows, it gets one file without rows.
        expected: how many rows there are.

    Returns:
        How many rows the files have that were added.

    Raises:
        ExportIncomplete: this machine sees fewer rows in the folder, or more; nothing was added.
    """
    lake = folder.absolute()
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
                    f"{folder}: {count:,} of {expected:,} messages of the snapshot are in the files that this machine "
                    "sees, so nothing was added. On a cluster the folder must be in a file system that all machines "
                    "see under the same name: otherwise each executor writes to a disk of its own."
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
    """Remove what runs that were killed have left."""
    for left in lake.glob(f"{_HIDDEN}*"):
        with suppress(FileNotFoundError):  # another run has removed it
            if left.stat().st_mtime < time.time() - _ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)


def _url(folder: Path) -> str:
    """As Hadoop reads it, unquoted: a path alone would be one of its default file system."""
    return f"file:///{folder.as_posix().lstrip('/')}"


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.rglob("part-*.parquet"))


def _row_counts(session: "SparkSession", parts: Sequence[Path]) -> Iterator[int]:
    """Of each file, by its footer, read here: a job of Spark's would ask the executors what they see."""
    # Private names, but PySpark itself has no reader of footers.
    jvm: Any = session._jvm  # noqa: SLF001
    configuration = session._jsc.hadoopConfiguration()  # noqa: SLF001
    for part in parts:
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(_url(Path(quote(str(part))))))
        footer = jvm.org.apache.parquet.hadoop.ParquetFileReader.readFooter(configuration, path)
        yield sum(block.getRowCount() for block in footer.getBlocks())


@contextmanager
def _instants_of_64_bits(session: "SparkSession") -> "Iterator[None]":
    """Spark's own default is INT96; a session that somebody else has made gets its setting back."""
    name = "spark.sql.parquet.outputTimestampType"
    before = str(session.conf.get(name))
    session.conf.set(name, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        session.conf.set(name, before)
