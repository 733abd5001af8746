"""A Spark session that says nothing of its own, made here or found where one is running already."""

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
# Of the JVM, as nice(1) has it: 0 is an ordinary process, 19 the last.
NICE = 10

_QUIET: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Results are small; Spark's own 200 would be mostly empty tasks.
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    # Not INT96, which other readers of Parquet take for something of the past.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@contextmanager
def spark_session(
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    jar: str | os.PathLike[str] | None = None,
) -> Iterator["SparkSession"]:
    """A session that has the JDBC driver.

    One that is running in this process is used as it is, and so is what spark-submit gives: neither has its settings
    changed, both get the driver by ADD JAR. Otherwise one is made, and stopped at the block's end.

    Args:
        master: where Spark runs; `local[*]`, all cores of this machine, unless said.
        conf: Spark's own settings; they win over ours.
        jar: the driver; see `driver_jar`.

    Raises:
        SparkMissing, JavaMissing, DriverMissing: that is not there.
        SparkFailed: Spark did not start; or `master` or `conf` was given where a session runs already.
    """
    found = driver_jar(jar)
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(f"PySpark is not installed: {install_command('spark')}") from error
    check_driver(found)
    running = _running()
    if running is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        if master or conf:
            raise SparkFailed("Spark is running already: what it is to be told, tell whoever started it")
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
    """The session of this process, whichever thread has made it."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def add_driver(session: "SparkSession", jar: Path) -> None:
    """Give a running session the driver: `spark.jars` is only read when a session starts."""
    if any(row[0].endswith(f"/{jar.name}") for row in session.sql("LIST JARS").collect()):
        return
    name = str(jar).replace("\\", "\\\\").replace("'", "\\'")
    session.sql(f"ADD JAR '{name}'")


def _start(master: str, conf: Mapping[str, str], jar: Path, java: str) -> "SparkSession":
    from pyspark.sql import SparkSession

    # Spark would take the first python3 on the PATH, which may know nothing of this environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("sqsqlite").master(master)
    for name, value in {**_QUIET, "spark.jars": str(jar), **conf}.items():
        builder = builder.config(name, value)
    with tempfile.TemporaryFile() as log:
        try:
            # The JVM inherits standard error for its whole life: what it writes there goes into a file without a name.
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
    """Start the JVM with a low priority: reports give way to the queue's own work on the machine.

    On Linux a priority is a thread's, and a child's is that of the thread that started it. So a thread starts it, and
    this process, which takes the snapshot, stays as quick as it was.
    """
    outcome: Future[None] = Future()

    def start() -> None:
        with contextlib.suppress(AttributeError, OSError):  # no such thing on Windows
            os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        try:
            builder.getOrCreate()
        except BaseException as error:  # noqa: BLE001 # handed on
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    # Nobody joins it: Ctrl-C need not wait until the JVM is there, which ends when this process does.
    threading.Thread(target=start, name="spark-start", daemon=True).start()
    outcome.result()
    return builder.getOrCreate()  # the same one, known to this thread too


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
