# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM end a report at any point, at once and without output. Processes with a JVM of their own."""

import os
import signal
import subprocess
import sys
import time

import pytest

from sqsqlite.cli import spark_options
from sqsqlite.cli.failures import Terminated

# Slows down only the moment of interest, and reports it.
PROGRAM = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background hands on that it is ignored
from sqsqlite.cli import main
{patch}
main(sys.argv[1:], "sqsqlite")
"""
STARTING = """
from pyspark.sql import SparkSession
def start(builder):
    print("here", flush=True)
    time.sleep(1_700)
SparkSession.Builder.getOrCreate = start
"""
COUNTING = """
from sqsqlite import spark
def make_report(name, tables, options):
    print("here", flush=True)
    slow = tables["queues"].sparkSession.range(1 << 42).selectExpr("sum(hash(id))")
    slow.collect()
spark.make_report = make_report
"""
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize(
    "patch",
    [pytest.param(STARTING, id="starting"), pytest.param(COUNTING, id="counting", marks=pytest.mark.slow)],
)
def test_a_signal_ends_the_report_without_output(jar, busy_file, tmp_path, patch, number):
    words = [
        "--db",
        busy_file,
        "report",
        "backlog",
        "--output",
        "json",
        "--master",
        "local[1]",
        "--jdbc-jar",
        jar,
    ]
    report = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(patch=patch), *map(str, words)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert report.stdout.readline() == "here\n"
        time.sleep(0.5)  # time to enter the call
        report.send_signal(number)
        out, err = report.communicate(timeout=600)
    finally:
        report.kill()
    assert (report.returncode, out, err) == (CODES[number], "", "")
    assert [path.name for path in tmp_path.iterdir() if "facts" in path.name] == []


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_a_signal_that_python_loses_is_sent_again(number, capsys):
    class Held:
        def __del__(self):
            signal.raise_signal(number)

    def work():
        held = Held()
        del held
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt) as ended, spark_options._ended_by_signals():
        work()
    assert isinstance(ended.value, Terminated) == (number == signal.SIGTERM)
    assert capsys.readouterr() == ("", "")


def test_an_error_caused_by_a_signal_ends_like_the_signal():
    def send():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ConnectionError from None

    with pytest.raises(Terminated), spark_options._ended_by_signals():
        send()
    with pytest.raises(ConnectionError), spark_options._ended_by_signals():
        raise ConnectionError
