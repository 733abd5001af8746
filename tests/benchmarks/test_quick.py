# SPDX-License-Identifier: Apache-2.0
"""All benchmarks run, on few messages. The tests check no time."""

import csv
import importlib
import subprocess
import sys

import pytest

from tests.packaging.checkout import ROOT

NAMES = (
    *("throughput", "group_commit", "waits", "beside_engines", "flat", "purge", "memory", "wake_up"),
    *("fifo", "fair", "moves"),
)
DOORS = {"bare", "full", "client", "Queue", "boto3"}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The CSV files and the page of a quick run of all benchmarks."""
    folder = tmp_path_factory.mktemp("benchmarks")
    page = folder / "page.md"
    page.write_text("Before.\n<!-- benchmarks: begin -->\nold\n<!-- benchmarks: end -->\nAfter.\n")
    command = [sys.executable, ROOT / "benchmarks" / "run.py", "--quick"]
    places = ["--folder", folder, "--results", folder / "results", "--page", page]
    subprocess.run([*command, *places], check=True, cwd=folder)
    files = {path.stem: path.read_text().splitlines() for path in (folder / "results").iterdir()}
    files = {name: list(csv.DictReader(lines)) for name, lines in files.items()}
    return {"files": files, "page": page.read_text()}


@pytest.mark.slow
def test_each_workload_has_a_row_for_every_door(result):
    for workload, file in (("send", "send"), ("receive+delete", "receive_delete")):
        rows = result["files"][file]
        assert {row["workload"] for row in rows} == {workload}
        assert {row["door"] for row in rows} >= DOORS
        assert all(float(row["messages_per_second"]) > 0 for row in rows)
        assert all(float(row["p50_ms"]) <= float(row["p99_ms"]) for row in rows)


@pytest.mark.slow
def test_every_other_benchmark_has_its_figures(result):
    for name in NAMES[1:]:
        assert result["files"][name] != []
    figures = {row["what"].partition(" ")[0] for name in NAMES[1:] for row in result["files"][name]}
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
def test_an_application_is_measured_at_each_level_and_pace(result):
    rows = result["files"]["beside_engines"]
    for what in ("longest BEGIN IMMEDIATE", "longest send", "application's transactions/s", "sends/s"):
        found = {
            (row["synchronous"], row["what"].rpartition(" writes ")[2], float(row["value"]) > 0)
            for row in rows
            if row["what"].startswith(what)
        }
        assert found == {
            (level, pace, True) for level in ("FULL", "NORMAL") for pace in ("now and then", "in a loop")
        }


@pytest.mark.slow
def test_result_names_its_date_machine_and_versions(result):
    [run] = result["files"]["runs"]
    assert run.keys() >= {"date", "commit", "cpu_count", "python", "sqlite"}
    rows = [row for name, rows in result["files"].items() if name != "runs" for row in rows]
    assert {(row["date"], row["commit"]) for row in rows} == {(run["date"], run["commit"])}
    assert run["commit"] in result["page"]


@pytest.mark.slow
def test_tables_replace_the_text_between_the_markers_of_a_page(result):
    page = result["page"]
    assert page.startswith("Before.\n")
    assert page.endswith("After.\n")
    assert "\nold\n" not in page
    assert "### Figures" in page


def test_a_second_run_adds_its_rows_to_the_files(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    report, rows = importlib.import_module("report"), importlib.import_module("rows")
    now = report.Circumstances.now()
    for value in (1.0, 2.5):
        report.save(tmp_path, now, {"purge": [rows.Figure("purge", value, "ms", "FULL", "3")], "fair": []})
    with (tmp_path / "purge.csv").open() as file:
        assert [row["value"] for row in csv.DictReader(file)] == ["1", "2.5"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["purge.csv", "runs.csv"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks" / "results").iterdir()), ids=lambda path: path.name
)
def test_committed_results_name_the_date_and_commit_of_their_run(path):
    with path.open() as file, (path.parent / "runs.csv").open() as runs:
        known = {(run["date"], run["commit"]) for run in csv.DictReader(runs)}
        assert {(row["date"], row["commit"]) for row in csv.DictReader(file)} <= known


def test_hot_paths_are_compared_with_both_baselines():
    command = [sys.executable, ROOT / "benchmarks" / "hot.py", "--messages", "20", "--rounds", "1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert rows.count("send") == rows.count("receive+delete, batches of ten") == 2


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
