# SPDX-License-Identifier: Apache-2.0
"""The errors of reports and exports."""

from sqsqlite.errors import SQSQLiteError


class AnalyticsError(SQSQLiteError):
    """Something that a report needs is missing or does not work. The message says what to do."""


class SparkMissing(AnalyticsError):
    """PySpark is not installed. The message names the command that installs it."""


class JavaMissing(AnalyticsError):
    """Spark found no Java 17 or newer. Install one, or set JAVA_HOME."""


class DriverMissing(AnalyticsError):
    """There is no JDBC driver for SQLite, or the file is not the driver that was asked for."""


class SparkFailed(AnalyticsError):
    """Spark did not start, or ended with an error of its own. The message has the end of its log."""


class NoFacts(AnalyticsError):
    """There is no snapshot to report on. The message has the reason, for each queue file."""


class ExportIncomplete(AnalyticsError):
    """Files of the export are missing in the folder. Name a folder that all machines of the cluster see."""
