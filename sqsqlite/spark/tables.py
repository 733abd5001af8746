"""What reports read, whichever way it came: the same tables with the same columns, of facts or of the live file.

Every table has `queue_key`, which `queues` leads to a name, and `now_ms`, the instant that the file was read at.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqsqlite.spark.columns import FACTS, VIEWS, custom_schema
from sqsqlite.spark.driver import CLASS
from sqsqlite.spark.facts import instant_of
from sqsqlite.spark.paths import path_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from sqsqlite.spark.facts import Facts

Reads = Mapping[str, tuple[str, ...]]
"""The tables that a report reads, and of each the columns."""

_FACTS_TABLES = {
    "queues": "sqs_fact_queues",
    "messages": "sqs_facts",
    "activity": "sqs_fact_activity",
    "groups": "sqs_fact_groups",
    "tenants": "sqs_fact_tenants",
    "dead_letters": "sqs_fact_dead_letters",
    "files": "sqs_fact_files",
}
_VIEWS = {
    "queues": "sqs_report_queues",
    "messages": "sqs_report_messages",
    "activity": "sqs_report_activity",
    "groups": "sqs_report_groups",
    "tenants": "sqs_report_tenants",
    "dead_letters": "sqs_report_dead_letters",
}
# What the facts have and the view puts otherwise.
_IN_VIEWS = {("messages", "received"): "state = 'in flight'"}
# Always wanted: names, and what tells an expired message.
_OF_QUEUES = ("queue", "account_id", "created_at", "message_retention_period_seconds")
_EXPIRE = ("messages", "dead_letters")

# Below this a partition is done before another one has started.
_ROWS_A_PARTITION = 50_000


def jdbc_url(path: str | os.PathLike[str], **options: str | int) -> str:
    """The URL of a SQLite file, to be read only.

    Any other form is dangerous: a path as it stands creates an empty database where there is none, and takes a `?` in
    a file's name for the beginning of options.
    """
    settings = "".join(f"&{name}={value}" for name, value in options.items())
    return f"jdbc:sqlite:file:{quote(os.fsencode(Path(path).absolute()))}?mode=ro{settings}"


def read_facts(
    session: "SparkSession", facts: "Facts", reads: Reads, *, partitions: int | None = None
) -> "dict[str, DataFrame]":
    """The tables of a facts file, the messages in partitions of equal size.

    Args:
        partitions: of the messages; twice the cores unless said, and one where there is little to read.
    """
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

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


@contextmanager
def kept(tables: "Mapping[str, DataFrame]", reads: Reads) -> "Iterator[dict[str, DataFrame]]":
    """The tables with their messages kept in memory (and on disk, beyond that) for the block.

    So reports that read them several times have them cross JDBC once. The columns of `reads`, and no other.
    """
    columns = dict.fromkeys(("queue_key", "now_ms", *reads["messages"]))
    messages = tables["messages"].select(*columns).persist()
    try:
        yield {**tables, "messages": messages}
    finally:
        messages.unpersist()


def _with_instants(tables: "dict[str, DataFrame]") -> "dict[str, DataFrame]":
    """Many files were read at many instants: each queue's is that of its file."""
    from pyspark.sql import functions as F  # noqa: N812

    instants = F.broadcast(tables["queues"].select("queue_key", F.col("taken_at").alias("now_ms")))
    return {
        name: table.withColumn("now_ms", F.col("taken_at"))
        if "taken_at" in table.columns
        else table.join(instants, "queue_key")
        for name, table in tables.items()
    }


def _partitions(session: "SparkSession", rows: int) -> int:
    cores = session.sparkContext.defaultParallelism
    return max(1, min(2 * cores, rows // _ROWS_A_PARTITION))


@contextmanager
def live_tables(
    session: "SparkSession", path: str | os.PathLike[str], reads: Reads, *, busy_timeout: float = 30.0
) -> "Iterator[dict[str, DataFrame]]":
    """The tables of a file that others are writing, by its reporting views.

    One query, one partition, one read transaction: one instant. Its rows are kept in memory (and on disk, beyond that)
    for the block, as each table is a part of them.

    Args:
        busy_timeout: seconds.
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
        rows.count()  # all of it now: a part would be read again, at another instant
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
    from pyspark.sql import functions as F  # noqa: N812

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
    """Without the messages whose retention is over: a receive would pass them by, and the sweeper has not come yet.

    By the file's own clock, which may be behind the machine's, and with its jumps (`Jumps.steps`).
    """
    from pyspark.sql import functions as F  # noqa: N812

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
    """One statement for all tables, the kind of row in front, and the types of its columns.

    The instant comes last, and SQLite goes through the parts in their order: it is not before any look at the clock
    that a view took for a row's state.
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


def _reader(session: "SparkSession", url: str, types: str) -> "DataFrameReader":
    reader = session.read.format("jdbc").option("driver", CLASS).option("url", url)
    return reader.option("customSchema", types)
