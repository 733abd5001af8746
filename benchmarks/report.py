# SPDX-License-Identifier: Apache-2.0
"""The output of the numbers: CSV files, one a workload, and Markdown tables."""

import csv
import dataclasses
import datetime as dt
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from peers.contestants import PEERS
from rows import Figure, Row

from sqsqlite.store.driver import dbapi

HERE = Path(__file__).parent
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


class Recorded(Protocol):
    """A row of results."""

    def record(self) -> dict[str, object]:
        """Its values by the names of the CSV file's columns."""


@dataclass(frozen=True)
class Circumstances:
    """The time, the machine and the versions of a run."""

    date: str
    commit: str
    cpu_count: int
    system: str
    python: str
    sqlite: str
    load: float

    @classmethod
    def now(cls) -> "Circumstances":
        return cls(
            date=dt.datetime.now(dt.UTC).date().isoformat(),
            commit=_commit(),
            cpu_count=os.cpu_count() or 1,
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            sqlite=dbapi.sqlite_version,
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
        )

    def sentence(self) -> str:
        return (
            f"Measured on {self.date}, commit {self.commit}: {self.cpu_count} CPUs, {self.system}, Python "
            f"{self.python}, SQLite {self.sqlite}; load average at the start {self.load:.1f}."
        )


def _commit() -> str:
    """The commit, with a `+` if the measured code has changed since."""
    try:
        found = _git("rev-parse", "--short=10", "HEAD")
        changed = _git("status", "--porcelain", "--", "sqsqlite", "benchmarks/*.py")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found + ("+" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=HERE.parent, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; empty columns are left out."""
    wanted = [place for place in range(len(headings)) if any(line[place] for line in lines)]
    picked = [[line[place].replace("|", "\\|") for place in wanted] for line in (headings, *lines)]
    return "\n".join(
        "| " + " | ".join(line) + " |" for line in (picked[0], ["---"] * len(wanted), *picked[1:])
    )


def markdown(circumstances: Circumstances, rows: Sequence[Row], figures: Sequence[Figure]) -> str:
    """All tables of a run; docs/speed.md shows a part of them."""
    parts = [circumstances.sentence()]
    if figures:
        parts += ["### Figures", table(Figure.HEADINGS, [figure.cells() for figure in figures])]
    peers = {peer.name for peer in PEERS}
    beside = {row.comparison for row in rows if row.door in peers}
    ours = [row for row in rows if row.comparison not in beside]
    if ours:
        parts += ["### Throughput", table(Row.HEADINGS, [row.cells() for row in ours])]
    if beside:
        others = [row for row in rows if row.comparison in beside]
        parts += ["### Beside other queues", table(Row.HEADINGS, [row.cells() for row in others])]
        parts += [_left_out({row.door: row.leaves_out for row in others if row.leaves_out})]
    return "\n\n".join(parts) + "\n"


def _left_out(leaves_out: dict[str, str]) -> str:
    lines = [[name, _version(name), what] for name, what in leaves_out.items()]
    return table(("queue", "version", "what it leaves out"), lines)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def save(folder: Path, circumstances: Circumstances, tables: Mapping[str, Sequence[Recorded]]) -> None:
    """Append rows to FOLDER/NAME.csv for each table, and the circumstances of the run to FOLDER/runs.csv.

    Each row begins with the date and the commit of its run. Empty tables make no file.

    Args:
        tables: rows by the name of their file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = dataclasses.asdict(circumstances)
    _append(folder / "runs.csv", [run])
    for name, rows in tables.items():
        key = {"date": circumstances.date, "commit": circumstances.commit}
        _append(folder / f"{name}.csv", [key | row.record() for row in rows])


def _append(path: Path, records: Sequence[Mapping[str, object]]) -> None:
    if not records:
        return
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]), lineterminator="\n")
        if is_new:
            writer.writeheader()
        for record in records:
            writer.writerow({name: _cell(value) for name, value in record.items()})


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def put_into(page: Path, tables: str) -> None:
    """Replace the text between the page's two markers."""
    before, found, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise ValueError(f"{page} lacks the markers {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{after}", encoding="utf-8")
