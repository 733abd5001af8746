# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite demo` as typed."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import sqsqlite
from sqsqlite.cli import demo, main
from sqsqlite.demo import performance, worker
from sqsqlite.demo.audit import Evidence


def run(folder, *arguments, **environment):
    program = "import sys; from sqsqlite.cli import main; main(sys.argv[1:], 'sqsqlite')"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,  # s: the demo hangs
    )


def test_the_demo_shows_its_sum_and_leaves_its_file(tmp_path):
    done = run(tmp_path, "demo", "--limit", "40", "--workers", "2", PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[:2] == ["sent", "40"]
    assert "It adds up" in done.stderr
    assert "sqsqlite queues:" in done.stderr
    assert "left out: JavaMissing: Spark needs Java 17 or newer" in done.stderr
    [told] = [line for line in done.stderr.splitlines() if line.endswith("demo.db peek source-files-dead")]
    shown = subprocess.run(
        told,
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert json.loads(shown.stdout.splitlines()[0])["state"] == "visible"
    stats = [line.split() for line in done.stdout.splitlines() if line.startswith("source-files ")]
    assert [cells[:4] for cells in stats] == [["source-files", "0", "0", "0"]]
    with sqsqlite.connect(tmp_path / "demo-output" / "demo.db") as sqs:
        assert len(sqs.queue(worker.DEAD_LETTER_QUEUE)) >= 1


@pytest.mark.parametrize(
    ("found", "script", "told"),
    [
        ("/bin/sqsqlite", "sqsqlite", "sqsqlite"),
        (None, "my programs/sqsqlite", "'my programs/sqsqlite'"),
        (None, "elsewhere.py", f"{sys.executable} -m sqsqlite.cli"),
    ],
)
def test_commands_to_try_next_name_an_existing_program(tmp_path, monkeypatch, found, script, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my programs").mkdir()
    (tmp_path / "my programs" / "sqsqlite").touch(mode=0o755)
    monkeypatch.setattr(demo.shutil, "which", lambda _: found)
    monkeypatch.setattr(sys, "argv", [script])
    assert demo.program() == told


def test_a_second_demo_uses_a_new_file_and_never_that_of_the_environment(tmp_path):
    """SQSQLITE_DB names the user's own file, and a demo in there would be a nuisance."""
    (tmp_path / "demo-output").mkdir()
    (tmp_path / "demo-output" / "demo.db").touch()
    done = run(tmp_path, "demo", "--limit", "20", "--output", "json", SQSQLITE_DB="mine.db")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["path"], told["faults"]) == ("demo-output/demo-2.db", [])
    assert told["totals"]["sent"] == 20 == told["totals"]["processed once"] + told["totals"]["dead letters"]
    assert not (tmp_path / "mine.db").exists()


def test_an_existing_file_is_refused(tmp_path):
    path = tmp_path / "orders.db"
    path.write_bytes(b"mine")
    done = CliRunner().invoke(main, ["demo", "--db", str(path)])
    assert done.exit_code == 2
    assert "the demo begins with a new file. --db names another" in done.stderr
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("form", ["table", "json"])
def test_error_about_a_wrong_sum_names_the_faults(tmp_path, monkeypatch, form):
    path = tmp_path / "demo.db"

    def perform_badly(path, **_):
        with sqsqlite.connect(path) as sqs:
            sqs.create_queue(worker.QUEUE)
        evidence = Evidence({"a": "abc.py"}, [], [], [], 0, [], 3, 0, None, "ok")
        faults = performance.find_faults(evidence)
        return performance.Outcome(path, 4, 1.0, evidence, faults)

    monkeypatch.setattr(performance, "perform", perform_badly)
    done = CliRunner().invoke(main, ["demo", "--db", str(path), "--output", form, "--no-report"])
    assert done.exit_code == 1
    assert (
        "It does not add up:\n1 sent, but 0 processed and 0 dead letters make 0\nabc.py (a) was lost"
        in done.stderr
    )
    assert "It adds up" not in done.output
