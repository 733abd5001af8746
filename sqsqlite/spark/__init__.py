# SPDX-License-Identifier: Apache-2.0
"""Reports and exports of queue files with Spark, which reads SQLite over JDBC.

    from sqsqlite import spark

    with spark.spark_session() as session, spark.tables_of(session, ["queues.db"], ["backlog"]) as taken:
        spark.make_report("backlog", taken.tables).show()

Sessions: `spark_session`, `driver_jar`. Snapshots: `find_files`, `facts_of`, `take_facts`, `Facts`.
Tables: `tables_of`, `read_facts`, `VIEWS`, `custom_schema`, `jdbc_url`. Exports: `message_rows`, `write_parquet`.
Reports: `REPORTS`, `make_report`, `Options`, `rows_of`, `html_page`, and each as a function in `reports`.

Importing this loads neither PySpark nor Java: `spark_session` does.
"""

from sqsqlite.spark import reports
from sqsqlite.spark.catalogue import (
    CLOUDWATCH,
    REPORTS,
    Options,
    Report,
    iso,
    make_report,
    names_without_constants,
    rows_of,
    without_constants,
)
from sqsqlite.spark.driver import VERSION as DRIVER_VERSION
from sqsqlite.spark.driver import driver_jar
from sqsqlite.spark.errors import (
    AnalyticsError,
    DriverMissing,
    ExportIncomplete,
    JavaMissing,
    NoFacts,
    SparkFailed,
    SparkMissing,
)
from sqsqlite.spark.export import message_rows, write_parquet
from sqsqlite.spark.facts import Facts, facts_of, find_files, take_facts
from sqsqlite.spark.page import html_page
from sqsqlite.spark.session import spark_session
from sqsqlite.spark.tables import VIEWS, Taken, custom_schema, jdbc_url, read_facts, tables_of

__all__ = [
    "CLOUDWATCH",
    "DRIVER_VERSION",
    "REPORTS",
    "VIEWS",
    "AnalyticsError",
    "DriverMissing",
    "ExportIncomplete",
    "Facts",
    "JavaMissing",
    "NoFacts",
    "Options",
    "Report",
    "SparkFailed",
    "SparkMissing",
    "Taken",
    "custom_schema",
    "driver_jar",
    "facts_of",
    "find_files",
    "html_page",
    "iso",
    "jdbc_url",
    "make_report",
    "message_rows",
    "names_without_constants",
    "read_facts",
    "reports",
    "rows_of",
    "spark_session",
    "tables_of",
    "take_facts",
    "without_constants",
    "write_parquet",
]
