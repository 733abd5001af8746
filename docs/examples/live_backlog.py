# SPDX-License-Identifier: Apache-2.0
"""A live backlog by Structured Streaming: a snapshot every few seconds, each a batch of one stream.

    spark-submit live_backlog.py queues.db /shared/live 5
    python live_backlog.py queues.db live 5

Spark has no stream over JDBC, so a clock drives this one: each tick takes a snapshot. The checkpoint remembers the last
batch, and a batch that runs twice after a crash replaces its own folder. If Spark runs for nothing else, a loop or cron
with `sqsqlite export` does the same for less.
"""

import sys
from typing import TYPE_CHECKING

from sqsqlite.spark import make_report, spark_session, tables_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def main(path: str, target: str, seconds: int) -> None:
    """Write until the stream ends, in the session of spark-submit or in a new one."""
    with spark_session():
        start(path, target, seconds).awaitTermination()


def start(path: str, target: str, seconds: int) -> "StreamingQuery":
    """Start to write the backlog of a file below `target`, in one folder for each batch."""
    with spark_session() as session:  # the one that runs already, which the block does not stop

        def take(tick: "DataFrame", batch: int) -> None:
            with tables_of(tick.sparkSession, [path], ["backlog"]) as taken:
                backlog = make_report("backlog", taken.tables)
                backlog.coalesce(1).write.mode("overwrite").parquet(f"{target}/backlog/batch={batch}")

        ticks = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        writer = ticks.writeStream.foreachBatch(take).trigger(processingTime=f"{seconds} seconds")
        return writer.option("checkpointLocation", f"{target}/checkpoint").start()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
