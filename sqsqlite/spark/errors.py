"""What can be wrong with a report before its first number."""

from sqsqlite.errors import SQSQLiteError


class AnalyticsError(SQSQLiteError):
    """Something that reports need is missing or does not work; the message says what to do."""


class SparkMissing(AnalyticsError):
    """PySpark is not installed. The message names the command that installs it."""


class JavaMissing(AnalyticsError):
    """Spark runs on Java, and none was found. What to do: install Java 17 or newer, or set JAVA_HOME."""


class DriverMissing(AnalyticsError):
    """The JDBC driver is nowhere to be found, or is not the one that was asked for."""


class SparkFailed(AnalyticsError):
    """Spark did not start, or ended with an error of its own; its log stands in the message."""


class NoFacts(AnalyticsError):
    """None of the files could be read: the message says what is wrong with each."""


class ExportIncomplete(AnalyticsError):
    """The folder does not hold what was written to it. What to do: name one that all machines of the cluster see."""
