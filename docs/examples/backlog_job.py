# SPDX-License-Identifier: Apache-2.0
"""The backlog of a fleet, added to a table of Parquet files: a job for spark-submit, or for any Python.

    spark-submit --master spark://head:7077 backlog_job.py /shared/backlog.parquet /shared /srv/queues/*.db

The driver of the job reads the queue files and writes their snapshot to /shared, which every executor sees under the
same name; each executor reads a part of it. Spark sends the JDBC driver to the executors.
"""

import sys

from sqsqlite.spark import find_files, make_report, spark_session, tables_of


def main(target: str, shared_folder: str, *files: str) -> None:
    """Add one row for each queue of the files: its messages at this instant."""
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    with (
        spark_session() as session,
        tables_of(session, find_files(files), ["backlog"], folder=shared_folder) as taken,
    ):
        backlog = make_report("backlog", taken.tables)
        assert taken.facts is not None
        at = F.timestamp_millis(F.lit(taken.facts.taken_at))
        backlog.withColumn("taken_at", at).write.mode("append").parquet(target)
        for problem in taken.facts.problems.values():
            print("left out:", problem)


if __name__ == "__main__":
    main(*sys.argv[1:])
