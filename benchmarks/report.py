"""Where the numbers go: the terminal, a JSON file for each run, and Markdown tables."""

import dataclasses
import datetime as dt
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peers.contestants import PEERS
from rows import Figure, Row

from sqsqlite.store.driver import dbapi

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

HERE = Path(__file__).parent
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


@dataclass(frozen=True)
class Circumstances:
    """When, where and of what a run was made."""

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
    """The commit, with a `+` when the code that is measured has changed since."""
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
    """All of a run, as docs/speed.md shows it."""
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


def save(folder: Path, circumstances: Circumstances, rows: Sequence[Row], figures: Sequence[Figure]) -> Path:
    """Write DATE-COMMIT.json and DATE-COMMIT.md; the path of the first is given back."""
    tables = {"rows": rows, "figures": figures}
    return write(folder, circumstances, tables, markdown(circumstances, rows, figures))


def write(
    folder: Path,
    circumstances: Circumstances,
    tables: Mapping[str, Sequence["DataclassInstance"]],
    page: str,
    suffix: str = "",
) -> Path:
    """Write the rows of tables to DATE-COMMIT.json, and a page that shows them to DATE-COMMIT.md.

    Args:
        suffix: stands behind the commit.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{circumstances.date}-{circumstances.commit}{suffix}.json"
    content: dict[str, Any] = {"circumstances": dataclasses.asdict(circumstances)}
    content |= {name: [dataclasses.asdict(row) for row in rows] for name, rows in tables.items()}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(page, encoding="utf-8")
    return path


def put_into(page: Path, tables: str) -> None:
    """Replace what stands between the page's two markers."""
    before, found, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise ValueError(f"{page} lacks the markers {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{after}", encoding="utf-8")
