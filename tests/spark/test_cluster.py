# SPDX-License-Identifier: Apache-2.0
"""Spark as users run it: a session that runs already, spark-submit, a cluster with two workers, a stream.

Each in processes of its own, so these are slow: a JVM or four a test.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sqsqlite
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

JOB = ROOT / "docs" / "examples" / "backlog_job.py"
STREAM = ROOT / "docs" / "examples" / "live_backlog.py"


@pytest.fixture
def spark_home(jar):
    import pyspark

    return Path(pyspark.__file__).parent


@pytest.fixture
def environment(tmp_path):
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "TMPDIR": str(tmp_path),
    }


def run(environment, *words):
    done = subprocess.run(
        list(map(str, words)), env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def read(folder):
    """The rows of Parquet files, read by a Spark of another process: this one may have no session."""
    program = (
        "import json, sys\nfrom sqsqlite.spark import spark_session\n"
        "with spark_session(master='local[1]') as session:\n"
        "    print(json.dumps([json.loads(row) for row in session.read.parquet(sys.argv[1]).toJSON().collect()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True, timeout=600
    )
    return json.loads(done.stdout)


QUEUES = {"dead", "empty", "forgotten", "frail", "graves", "jobs.fifo", "later.fifo", "orders", "shared"}


def test_a_running_session_gets_the_driver(busy_file, jar, environment):
    """`spark.jars` would come too late."""
    program = (
        "import sys\nfrom pyspark.sql import SparkSession\n"
        "own = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "from sqsqlite.spark import make_report, spark_session, tables_of\n"
        "with spark_session() as session, tables_of(session, [sys.argv[1]], ['backlog']) as taken:\n"
        "    assert session is own or session._jsparkSession.equals(own._jsparkSession)\n"
        "    print(make_report('backlog', taken.tables).count())\n"
        "print(own.range(3).count())\n"  # the session goes on
    )
    assert run(environment, sys.executable, "-c", program, busy_file).stdout.split() == ["9", "3"]


def test_spark_submit_runs_the_example(busy_file, spark_home, environment, tmp_path):
    submit = [spark_home / "bin" / "spark-submit", "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    done = run(environment, *submit, JOB, tmp_path / "out", tmp_path, busy_file, tmp_path / "none.db")
    assert f"left out: {tmp_path}/none.db: there is no such file" in done.stdout
    rows = read(tmp_path / "out")
    assert {row["queue"] for row in rows} == QUEUES
    assert {row["taken_at"][:2] for row in rows} == {"20"}


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def cluster(request, spark_home, environment, tmp_path):
    """A standalone master and two workers on the loopback interface: their URL, and the workers' folders.

    A parameter says before which daemons (0 the master, then the workers) other words stand on the command line.
    """
    (tmp_path / "lake").mkdir()
    port, launch = free_port(), spark_home / "bin" / "spark-class"
    url = f"spark://127.0.0.1:{port}"
    folders = [tmp_path / f"worker-{number}" for number in range(2)]
    master = [
        "org.apache.spark.deploy.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--webui-port",
        free_port(),
    ]
    worker = [
        "org.apache.spark.deploy.worker.Worker",
        "--host",
        "127.0.0.1",
        "--cores",
        1,
        "--memory",
        "512m",
    ]
    workers = [[*worker, "--webui-port", free_port(), "--work-dir", folder, url] for folder in folders]
    apart: dict[int, list[str]] = getattr(request, "param", {})
    with contextlib.ExitStack() as started:
        for number, words in enumerate([master, *workers]):
            log = started.enter_context((tmp_path / f"daemon-{number}.log").open("wb"))
            daemon = subprocess.Popen(
                [*apart.get(number, []), str(launch), *map(str, words)],
                cwd=tmp_path,
                env=environment,
                stdout=log,
                stderr=log,
            )
            started.callback(daemon.wait, 30)
            started.callback(daemon.terminate)
        deadline = time.monotonic() + 600
        while (tmp_path / "daemon-0.log").read_text(errors="replace").count("Registering worker") < 2:
            assert time.monotonic() < deadline, (tmp_path / "daemon-0.log").read_text(errors="replace")
            time.sleep(0.2)
        yield url, folders


EXECUTORS = ("spark.executor.memory=512m", "spark.driver.host=127.0.0.1")


def test_two_workers_of_a_cluster_share_a_report(busy_file, cluster, environment, tmp_path):
    url, folders = cluster
    program = "import sys; from sqsqlite.cli import main; main(sys.argv[1:], 'sqsqlite')"
    words = ["--db", busy_file, "report", "backlog", "--output", "json", "--master", url, "--partitions", "4"]
    words += ["--snapshot-dir", tmp_path, *(word for setting in EXECUTORS for word in ("--conf", setting))]
    done = run(environment, sys.executable, "-c", program, *words)
    assert {row["queue"] for row in json.loads(done.stdout)} == QUEUES
    assert [len(list(folder.glob("app-*/*"))) for folder in folders] == [1, 1]


# As far as the folder goes, a machine of its own: it mounts another file system at the `lake` of the others.
APART = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs own lake && exec "$@"', "sh"]


@pytest.mark.parametrize(
    ("cluster", "written"),
    [({}, 34), ({1: APART, 2: APART}, 0)],
    indirect=["cluster"],
    ids=["shared", "apart"],
)
def test_an_export_to_a_folder_that_executors_do_not_share_is_an_error(
    cluster, written, environment, tmp_path
):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    path = tmp_path / "queues.db"
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send_many(["hello"] * 34)
    url, _ = cluster
    program = "import sys; from sqsqlite.cli import main; main(sys.argv[1:], 'sqsqlite')"
    words = ["--db", path, "export", "--parquet", tmp_path / "lake", "--output", "json", "--master", url]
    words += ["--partitions", "4", "--snapshot-dir", tmp_path]
    words += [word for setting in EXECUTORS for word in ("--conf", setting)]
    ran = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    if written:
        assert (ran.returncode, json.loads(ran.stdout)[0]["messages"]) == (0, 34), ran.stderr[-4000:]
        return
    assert (ran.returncode, ran.stdout) == (1, ""), ran.stderr[-4000:]
    assert (
        f"ExportIncomplete: {tmp_path}/lake: this machine sees 0 of 34 messages of the snapshot" in ran.stderr
    )
    assert list((tmp_path / "lake").iterdir()) == []


def test_spark_submit_to_a_cluster_runs_the_example(busy_file, cluster, spark_home, environment, tmp_path):
    url, folders = cluster
    settings = [word for setting in EXECUTORS for word in ("--conf", setting)]
    submit = [spark_home / "bin" / "spark-submit", "--master", url, *settings]
    run(environment, *submit, JOB, tmp_path / "out", tmp_path, busy_file)
    assert {row["queue"] for row in read(tmp_path / "out")} == QUEUES
    assert [len(list(folder.glob("app-*/*"))) for folder in folders] == [1, 1]


def test_a_stream_of_snapshots_is_a_batch_a_tick(busy_file, jar, environment, tmp_path):
    program = (
        "import importlib.util, sys, time\n"
        "from sqsqlite.spark import spark_session\n"
        "spec = importlib.util.spec_from_file_location('live_backlog', sys.argv[1])\n"
        "live_backlog = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(live_backlog)\n"
        "with spark_session(master='local[2]'):\n"
        "    query = live_backlog.start(sys.argv[2], sys.argv[3], 1)\n"
        "    while query.isActive and (query.lastProgress or {}).get('batchId', 0) < 3:\n"
        "        time.sleep(0.1)\n"
        "    assert query.exception() is None, query.exception()\n"
        "    query.stop()\n"
    )
    run(environment, sys.executable, "-c", program, STREAM, busy_file, tmp_path)
    rows = read(tmp_path / "backlog")
    batches = {row["batch"] for row in rows}
    assert {0, 1, 2} <= batches
    assert {row["queue"] for row in rows} == QUEUES


def test_plain_python_runs_the_stream_too(busy_file, jar, environment, tmp_path):
    stream = subprocess.Popen(
        [sys.executable, STREAM, str(busy_file), str(tmp_path), "1"], env=environment, stderr=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + 600
        while len(list(tmp_path.glob("backlog/batch=*/_SUCCESS"))) < 2:
            assert stream.poll() is None, stream.stderr.read().decode(errors="replace")
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        stream.terminate()
        stream.communicate(timeout=600)
    assert {row["queue"] for row in read(tmp_path / "backlog")} == QUEUES
