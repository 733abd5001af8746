# SPDX-License-Identifier: Apache-2.0
"""The tables that reports read: those of a facts file, or of the live file through its views, with the same columns.

Every table has `queue_key`, which leads to the queue's name in the table `queues`, and `now_ms`, the instant at which
the file was read.

Spark asks the driver for the declared type of a column and believes it. It takes INTEGER for 32 bits, which cuts
milliseconds without an error, and a computed column for decimal(38,18). So each read names the type of each column in
the option `customSchema`.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqsqlite.spark.catalogue import Reads, passes, reads_of
from sqsqlite.spark.driver import CLASS
from sqsqlite.spark.expressions import F
from sqsqlite.spark.facts import Facts, Progress, check_file, facts_of, instant_of, path_text
from sqsqlite.sql.facts import CREATE_FACTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

Types = Mapping[str, str]
"""Columns, each with its type in Spark."""

_COLUMNS_OF_TEXT = (
    "queue account_id state source_arn dead_letter_source_arn dead_letter_target_arn deduplication_id message_id "
    "group_id sender_id attributes body"
)
_TEXTS = frozenset(_COLUMNS_OF_TEXT.split())
_FRACTIONS = frozenset({"age_seconds", "held_seconds", "expires_in_seconds", "dead_seconds"})
_COLUMNS_OF_VIEWS = {
    "sqs_report_now": "now_ms",
    "sqs_report_queues": (
        "queue account_id queue_id fifo created_at modified_at visibility_timeout_seconds delay_seconds "
        "receive_message_wait_time_seconds message_retention_period_seconds maximum_message_size_bytes "
        "dead_letter_target_arn max_receive_count messages in_flight delayed oldest_sent_at"
    ),
    "sqs_report_messages": (
        "id queue account_id queue_id state age_seconds sent_at visible_at received_at first_received_at "
        "receive_count queue_receive_count size_bytes deduplication_id dead_letter_source_arn moved_at message_id "
        "group_id sender_id attributes body"
    ),
    "sqs_report_leases": (
        "id queue account_id queue_id received_at expires_at held_seconds expires_in_seconds sent_at receive_count "
        "group_id message_id"
    ),
    "sqs_report_dead_letters": (
        "id queue account_id queue_id source_arn source_queue_id receive_count moved_at dead_seconds sent_at "
        "size_bytes group_id message_id"
    ),
    "sqs_report_activity": (
        "queue account_id queue_id minute_at sent received deleted dead_lettered deduplicated empty_receives sent_bytes"
    ),
    "sqs_report_groups": (
        "queue account_id queue_id group_id head_visible_at state messages in_flight oldest_sent_at"
    ),
    "sqs_report_tenants": "queue account_id queue_id group_id last_turn queue_turn last_sent_at",
}


def _type_in_view(column: str) -> str:
    if column in _TEXTS:
        return "STRING"
    return "DOUBLE" if column in _FRACTIONS else "BIGINT"


VIEWS: Mapping[str, Types] = {
    view: {column: _type_in_view(column) for column in columns.split()}
    for view, columns in _COLUMNS_OF_VIEWS.items()
}
"""The reporting views of a queue file, a stable interface for any JDBC reader, with the types of their columns."""

FACTS: Mapping[str, Types] = {
    table: {
        column: "STRING" if kind == "TEXT" else "BIGINT"
        for column, kind in re.findall(r"^\s+(\w+) (INTEGER|INT|TEXT)\b", statement, re.MULTILINE)
    }
    for statement in CREATE_FACTS
    for table in re.findall(r"CREATE TABLE facts\.(\w+)", statement)
}
"""The tables of a facts file, with the types of their columns."""

_FACTS_TABLES = {
    "queues": "sqs_fact_queues",
    "messages": "sqs_facts",
    "activity": "sqs_fact_activity",
    "groups": "sqs_fact_groups",
    "tenants": "sqs_fact_tenants",
    "dead_letters": "sqs_fact_dead_letters",
    "files": "sqs_fact_files",
}
_VIEWS = {name: f"sqs_report_{name}" for name in _FACTS_TABLES if name != "files"}
# A column of the facts that the view expresses in another way.
_IN_VIEWS = {("messages", "received"): "state = 'in flight'"}
# Read in any case: the names, and the columns that decide which messages have expired.
_OF_QUEUES = ("queue", "account_id", "created_at", "message_retention_period_seconds")
_EXPIRE = ("messages", "dead_letters")

# A smaller partition is done before the next one has started.
_ROWS_A_PARTITION = 50_000


@dataclass(frozen=True, slots=True)
class Taken:
    """The tables of some reports, and how they were read.

    Attributes:
        tables: by name.
        facts: the snapshot; None for a live read.
        seconds: how long the snapshot or the live read took, without Spark's start.
    """

    tables: "Mapping[str, DataFrame]"
    facts: Facts | None
    seconds: float


@contextmanager
def tables_of(
    session: "SparkSession",
    paths: Sequence[str | os.PathLike[str]],
    names: Sequence[str],
    *,
    live: bool = False,
    partitions: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[Taken]:
    """The tables that the reports `names` read, for the length of the block.

    If the reports read the messages more than once, Spark keeps these in memory, and on disk if memory is too small.

    Args:
        session: see `spark_session`.
        paths: the queue files; see `find_files`.
        names: of reports, such as `backlog`.
        live: read the one queue file itself through its views, without a snapshot.
        partitions: connections that read the messages of the snapshot at once; by default two a core, or one if there
            are few messages.
        folder: where the snapshot is written; by default, the system's folder for temporary files. On a cluster, every
            machine must see the folder under this name.
        progress: called after each queue file.

    Raises:
        StoreError: the only queue file cannot be read; the same errors as `sqsqlite.connect`.
        NoFacts: no queue file can be read, or the disk has no room for the snapshot.
    """
    started = time.monotonic()
    reads = reads_of(*names)
    if live:
        [path] = paths
        check_file(path)
        with live_tables(session, path, reads) as tables:
            yield Taken(tables, None, time.monotonic() - started)
        return
    with facts_of(paths, folder=folder, progress=progress) as facts:
        seconds = time.monotonic() - started
        tables = read_facts(session, facts, reads, partitions=partitions)
        with kept(tables, reads) if passes(*names) > 1 else nullcontext(tables) as given:
            yield Taken(given, facts, seconds)


def custom_schema(types: Types, columns: Iterable[str] | None = None) -> str:
    """The value of Spark's option `customSchema`.

    Args:
        types: of a table or view: one of VIEWS or FACTS.
        columns: the columns to name; by default, all.
    """
    names = types if columns is None else columns
    return ", ".join(f"{name} {types[name]}" for name in names)


def jdbc_url(path: str | os.PathLike[str], **options: str | int) -> str:
    """The URL of a SQLite file, for reading only.

    Any other form is dangerous. With a plain path, the driver creates an empty database if there is no file, and takes
    a `?` in the file's name for the beginning of options.
    """
    settings = "".join(f"&{name}={value}" for name, value in options.items())
    return f"jdbc:sqlite:file:{quote(os.fsencode(Path(path).absolute()))}?mode=ro{settings}"


def _reader(session: "SparkSession", url: str, types: str) -> "DataFrameReader":
    reader = session.read.format("jdbc").option("driver", CLASS).option("url", url)
    return reader.option("customSchema", types)


# --- a facts file


def read_facts(
    session: "SparkSession",
    facts: Facts,
    reads: Iterable[str] = tuple(_FACTS_TABLES),
    *,
    partitions: int | None = None,
) -> "dict[str, DataFrame]":
    """The tables of a facts file, with the messages in partitions of equal size.

    Args:
        session: see `spark_session`.
        facts: see `facts_of` and `take_facts`.
        reads: names of tables; by default, all. `queues` is always among them.
        partitions: of the messages; by default two a core, or one if there are few messages.
    """
    url = jdbc_url(facts.path, immutable=1)
    tables = {}
    for table in dict.fromkeys(("queues", *reads)):
        name = _FACTS_TABLES[table]
        reader = _reader(session, url, custom_schema(FACTS[name])).option("dbtable", name)
        if table == "messages":
            count = partitions or _partitions(session, facts.messages)
            if count > 1 and facts.messages > 1:
                # seq is dense, so ranges of equal width hold equally many messages.
                reader = reader.option("partitionColumn", "seq").option("numPartitions", count)
                reader = reader.option("lowerBound", 1).option("upperBound", facts.messages + 1)
        tables[table] = reader.load()
    if facts.files == 1:
        return {name: table.withColumn("now_ms", F.lit(facts.taken_at)) for name, table in tables.items()}
    return _with_instants(tables)


def _partitions(session: "SparkSession", rows: int) -> int:
    cores = session.sparkContext.defaultParallelism
    return max(1, min(2 * cores, rows // _ROWS_A_PARTITION))


def _with_instants(tables: "dict[str, DataFrame]") -> "dict[str, DataFrame]":
    """Each file was read at its own instant, so `now_ms` of a queue is that of its file."""
    instants = F.broadcast(tables["queues"].select("queue_key", F.col("taken_at").alias("now_ms")))
    return {
        name: table.withColumn("now_ms", F.col("taken_at"))
        if "taken_at" in table.columns
        else table.join(instants, "queue_key")
        for name, table in tables.items()
    }


@contextmanager
def kept(tables: "Mapping[str, DataFrame]", reads: Reads) -> "Iterator[dict[str, DataFrame]]":
    """The tables, with the messages kept by Spark for the block: they cross JDBC once. Only the columns of `reads`."""
    columns = dict.fromkeys(("queue_key", "now_ms", *reads["messages"]))
    messages = tables["messages"].select(*columns).persist()
    try:
        yield {**tables, "messages": messages}
    finally:
        messages.unpersist()


# --- the live file


@contextmanager
def live_tables(
    session: "SparkSession", path: str | os.PathLike[str], reads: Reads, *, busy_timeout: float = 30.0
) -> "Iterator[dict[str, DataFrame]]":
    """The tables of a file that other processes write, through its reporting views.

    One query, one partition, one read transaction: one instant. Spark keeps the rows for the block, in memory, and on
    disk if memory is too small, because every table is a part of them.

    Args:
        session: see `spark_session`.
        path: the queue file.
        reads: tables and their columns.
        busy_timeout: seconds.

    Raises:
        StoreError: the file cannot be opened; the same errors as `sqsqlite.connect`.
    """
    wanted = {"queues": _OF_QUEUES, **{name: columns for name, columns in reads.items() if name in _VIEWS}}
    for name, always in {"queues": _OF_QUEUES, **dict.fromkeys(_EXPIRE, ("sent_at",))}.items():
        if name in wanted:
            wanted[name] = tuple(dict.fromkeys((*always, *wanted[name])))
    query, types = _union(wanted)
    instant = instant_of(path)
    url = jdbc_url(path, busy_timeout=round(busy_timeout * 1000))
    rows = _reader(session, url, types).option("query", query).load().persist()
    try:
        rows.count()  # fetches every row now: later reads would see another instant
        [last] = rows.where("kind = 'now'").select("now_ms").collect()
        tables = _parts(session, rows, wanted, last.now_ms, path_text(Path(path).absolute()))
        yield {
            name: _unexpired(table, tables["queues"], *instant) if name in _EXPIRE else table
            for name, table in tables.items()
        }
    finally:
        rows.unpersist()


def _parts(
    session: "SparkSession", rows: "DataFrame", wanted: Reads, now_ms: int, file: str
) -> "dict[str, DataFrame]":
    tables = {
        name: rows.where(F.col("kind") == name)
        .select("queue_key", *(column for column in columns if column != "queue_key"))
        .withColumn("now_ms", F.lit(now_ms))
        for name, columns in wanted.items()
    }
    tables["queues"] = tables["queues"].withColumn("file", F.lit(file)).withColumn("file_id", F.lit(1))
    tables["files"] = session.range(1).select(
        F.lit(1).alias("file_id"), F.lit(file).alias("file"), F.lit(None).cast("string").alias("problem")
    )
    return tables


def _unexpired(
    table: "DataFrame", queues: "DataFrame", instant_ms: int, steps: list[tuple[int, int]]
) -> "DataFrame":
    """Without the messages whose retention period is over: no receive returns them, but they are not deleted yet.

    The file's own clock decides, which may be behind the machine's, with its jumps (`Jumps.steps`).
    """
    kept = F.broadcast(queues.select("queue_key", "message_retention_period_seconds"))
    retention_ms = F.col("message_retention_period_seconds") * 1000
    expired_at = F.lit(instant_ms) - retention_ms
    for above_ms, length_ms in steps:
        expired_at -= F.when(retention_ms > above_ms, length_ms).otherwise(0)
    return (
        table.join(kept, "queue_key")
        .where(F.col("sent_at") > expired_at)
        .drop("message_retention_period_seconds")
    )


def _union(wanted: Reads) -> tuple[str, str]:
    """One statement for all tables, with the kind of a row in its first column, and the types of its columns.

    The instant comes last. SQLite reads the parts in their order, so no view asked the clock after this instant.
    """
    columns = dict.fromkeys(column for names in wanted.values() for column in names if column != "queue_key")
    types = {"kind": "STRING", "queue_key": "BIGINT", "received": "BIGINT"}
    parts = []
    for name, names in wanted.items():
        types |= {column: VIEWS[_VIEWS[name]][column] for column in names if column not in types}
        values = (_IN_VIEWS.get((name, column), column) if column in names else "NULL" for column in columns)
        named = ", ".join(f"{value} AS {column}" for value, column in zip(values, columns, strict=True))
        parts.append(
            f"SELECT '{name}' AS kind, queue_id AS queue_key, {named}, NULL AS now_ms FROM {_VIEWS[name]}"  # noqa: S608 # names of ours
        )
    nothing = ", ".join(f"NULL AS {column}" for column in columns)
    parts.append(f"SELECT 'now' AS kind, NULL AS queue_key, {nothing}, now_ms FROM sqs_report_now")  # noqa: S608
    types["now_ms"] = "BIGINT"
    return " UNION ALL ".join(parts), custom_schema(types, ["kind", "queue_key", *columns, "now_ms"])
