# SPDX-License-Identifier: Apache-2.0
"""One Spark session for all tests of a process. The tests that use it are slow, except for a sample.

Spark's start and its first queries cost as much processor time as a thousand tests of a queue.
`make test` has two processes, and this folder is the first: work stealing gives the first process the first half of the
tests in their order, and the other one steals from its end. So one process alone starts a session.
"""

import os

import pytest

from sqsqlite.spark import driver
from sqsqlite.spark.errors import AnalyticsError
from tests.spark.busy_file import fill

# There are few rows, so settings for millions of them cost more than they save: half the time of the tests.
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

# Tests with a session that `make test` runs too, and the fault that each would be the first to notice.
SAMPLE = {
    "test_a_view_read_by_jdbc_equals_what_sqlite_reads[sqs_report_queues]": "the driver, and the types of columns",
    "test_backlog_as_json_has_these_keys_in_this_order[snapshot]": "the command, from a snapshot to its rows",
    "test_report_equals_plain_sql[live-all-groups]": "a live report, read from the file itself",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marked here and not one by one, so that a new test with a session is slow unless it is put into the sample."""
    for item in items:
        if "session" in getattr(item, "fixturenames", ()) and item.name not in SAMPLE:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def jar():
    """The driver, found or fetched. Without it or Java, a developer's run skips the tests, and CI's fails."""
    try:
        driver.java_command()
        return driver.driver_jar()
    except AnalyticsError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def session(jar):
    from sqsqlite.spark import session as spark

    spark.NICE = 0  # The other process of the tests would leave it little memory.
    with spark.spark_session(master="local[2]", conf=QUICK, jar=jar) as session:
        yield session


@pytest.fixture(scope="session")
def busy_file(tmp_path_factory):
    """A file in which every report has rows. Tests must not change it."""
    path = tmp_path_factory.mktemp("busy") / "queues.db"
    fill(path)
    return path
