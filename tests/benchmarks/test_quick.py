"""The benchmarks run: on few messages, every one of them, with nothing said about time."""

import json
import subprocess
import sys

import pytest

from tests.packaging.checkout import ROOT

NAMES = ("throughput", "group_commit", "waits", "flat", "purge", "memory", "wake_up", "fifo", "fair", "moves")
DOORS = {"bare", "full", "client", "Queue", "boto3"}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """What a quick run of all benchmarks wrote."""
    folder = tmp_path_factory.mktemp("benchmarks")
    page = folder / "page.md"
    page.write_text("Before.\n<!-- benchmarks: begin -->\nold\n<!-- benchmarks: end -->\nAfter.\n")
    command = [sys.executable, ROOT / "benchmarks" / "run.py", "--quick"]
    places = ["--folder", folder, "--results", folder / "results", "--page", page]
    subprocess.run([*command, *places], check=True, cwd=folder)
    [path] = folder.glob("results/*.json")
    return {"json": json.loads(path.read_text()), "tables": path.with_suffix(".md").read_text(), "page": page}


@pytest.mark.slow
def test_every_door_gives_a_row_for_each_workload(result):
    rows = result["json"]["rows"]
    for workload in ("send", "receive+delete"):
        doors = {row["door"] for row in rows if row["workload"] == workload}
        assert doors >= DOORS
    assert all(row["messages_per_second"] > 0 and row["p50_ms"] <= row["p99_ms"] for row in rows)


@pytest.mark.slow
def test_every_other_benchmark_gives_its_figures(result):
    figures = {figure["name"].partition(" ")[0] for figure in result["json"]["figures"]}
    assert figures >= {
        "sends/s",
        "one",
        "longest",
        "opening",
        "median",
        "receive",
        "purge",
        "a",
        "20",
        "FIFO",
        "fair",
        "p95",
        "move",
    }


@pytest.mark.slow
def test_result_says_when_where_and_of_what(result):
    circumstances = result["json"]["circumstances"]
    assert circumstances.keys() >= {"date", "commit", "cpu_count", "python", "sqlite"}
    assert circumstances["commit"] in result["tables"]


@pytest.mark.slow
def test_tables_replace_what_stood_between_the_markers_of_a_page(result):
    page = result["page"].read_text()
    assert page.startswith("Before.\n")
    assert page.endswith("After.\n")
    assert "\nold\n" not in page
    assert result["tables"] in page


def test_hot_paths_are_compared_with_both_baselines():
    command = [sys.executable, ROOT / "benchmarks" / "hot.py", "--messages", "20", "--rounds", "1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert rows.count("send") == rows.count("receive+delete in tens") == 2


@pytest.mark.slow
def test_two_checkouts_are_compared_in_each_workload():
    command = [sys.executable, ROOT / "benchmarks" / "before_after.py", ROOT, ROOT, "--slices", "2"]
    done = subprocess.run([*command, "--messages", "10"], check=True, capture_output=True, text=True)
    rows = {line.split("  ")[0] for line in done.stdout.splitlines()}
    assert rows >= {"send", "receive+delete", "send, batches of ten", "receive+delete, batches of ten"}


def test_unknown_benchmark_is_refused_by_name():
    command = [sys.executable, ROOT / "benchmarks" / "run.py", "fly"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert all(name in done.stderr for name in NAMES)
