# SPDX-License-Identifier: Apache-2.0
"""A Spark session with the JDBC driver: the one that runs already, or a new one that prints nothing."""

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqsqlite.operators.installed import install_command
from sqsqlite.spark.driver import check_driver, check_java, driver_jar, java_command
from sqsqlite.spark.errors import SparkFailed, SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_LINES = 15
# The priority of the JVM, as nice(1) counts: 0 for an ordinary process, 19 for the lowest.
NICE = 10

_QUIET: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Results are small: most of Spark's own 200 tasks would be empty.
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    # Not INT96, Spark's default, which Parquet has deprecated.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@contextmanager
def spark_session(
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    jar: str | os.PathLike[str] | None = None,
) -> Iterator["SparkSession"]:
    """A Spark session with the JDBC driver, for the length of the block.

    If this process has a session, or spark-submit gives one, this is it: its settings stay, it gets the driver by ADD
    JAR, and it runs on after the block. Otherwise a new session starts, and stops at the end of the block.

    Args:
        master: where Spark runs; by default `local[*]`, all cores of this machine.
        conf: settings of Spark, which replace ours.
        jar: the driver; see `driver_jar`.

    Raises:
        SparkMissing: PySpark is not installed.
        JavaMissing: Spark needs Java 17 or newer.
        DriverMissing: there is no driver, and the fetch failed.
        SparkFailed: Spark did not start, or `master` or `conf` was given although a session runs already.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(f"PySpark is not installed: {install_command('spark')}") from error
    found = driver_jar(jar)
    check_driver(found)
    running = _running()
    if running is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        if master or conf:
            raise SparkFailed("Spark is running already: give its settings to the program that started it")
        session = running or SparkSession.builder.appName("sqsqlite").getOrCreate()
        add_driver(session, found)
        yield session
        return
    java = java_command()
    session = _start(master or "local[*]", dict(conf or {}), found, java)
    try:
        yield session
    finally:
        session.stop()


def _running() -> "SparkSession | None":
    """The session of this process, whichever thread made it."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def add_driver(session: "SparkSession", jar: Path) -> None:
    """Add the driver to a running session: Spark reads `spark.jars` only when a session starts."""
    if any(row[0].endswith(f"/{jar.name}") for row in session.sql("LIST JARS").collect()):
        return
    name = str(jar).replace("\\", "\\\\").replace("'", "\\'")
    session.sql(f"ADD JAR '{name}'")


def _start(master: str, conf: Mapping[str, str], jar: Path, java: str) -> "SparkSession":
    from pyspark.sql import SparkSession

    # Spark would take the first python3 on the PATH, which may be outside this virtual environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("sqsqlite").master(master)
    for name, value in {**_QUIET, "spark.jars": str(jar), **conf}.items():
        builder = builder.config(name, value)
    with tempfile.TemporaryFile() as log:
        try:
            # The JVM inherits standard error for its whole life, so its words go to a file without a name.
            with _standard_error_in(log.fileno()):
                session = _started(builder)
        except Exception as error:
            check_java(java)
            log.seek(0)
            lines = log.read().decode(errors="replace").splitlines()[-_LOG_LINES:]
            raise SparkFailed("\n".join((f"Spark did not start: {error}", *lines))) from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _started(builder: "SparkSession.Builder") -> "SparkSession":
    """Start the JVM with a low priority, so that a report does not slow down the queue's own work.

    On Linux each thread has a priority, and a child process inherits that of the thread that started it. So a new
    thread starts the JVM, and this process, which takes the snapshot, keeps its priority.
    """
    outcome: Future[None] = Future()

    def start() -> None:
        with contextlib.suppress(AttributeError, OSError):  # Windows has no os.setpriority
            os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        try:
            builder.getOrCreate()
        except BaseException as error:  # noqa: BLE001 # raised by outcome.result()
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    # A daemon thread, so that Ctrl-C does not wait until the JVM is up. The JVM ends with this process.
    threading.Thread(target=start, name="spark-start", daemon=True).start()
    outcome.result()
    return builder.getOrCreate()  # the same session, now known to this thread too


@contextmanager
def _standard_error_in(descriptor: int) -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
