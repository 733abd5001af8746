# SPDX-License-Identifier: Apache-2.0
"""All benchmarks, one after the other: `make bench`, or `make bench ARGS="flat purge"` for some of them.

    python benchmarks/run.py [NAME ...] [--quick] [--folder DIRECTORY] [--results DIRECTORY] [--page FILE]

Every row is printed as it comes. A whole run takes about twenty minutes and needs the machine to itself.
"""

import argparse
import importlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import report
import throughput
from rows import Figure, Row

HERE = Path(__file__).parent
FIGURES = (
    *("group_commit", "waits", "beside_engines"),
    *("flat", "purge", "memory", "wake_up", "fifo", "fair", "moves"),
)
NAMES = ("throughput", *FIGURES)


def main() -> None:
    options = _options()
    throughput.ROUNDS = options.rounds
    circumstances = report.Circumstances.now()
    print(circumstances.sentence())
    rows: list[Row] = []
    figures: list[Figure] = []
    tables: dict[str, list[Row | Figure]] = {}
    for name in options.names or NAMES:
        print(f"\n{name}: {' | '.join(Row.HEADINGS if name == 'throughput' else Figure.HEADINGS)}")
        for found in _measure(name, options.folder, quick=options.quick):
            print(" | ".join(found.cells()), flush=True)
            if isinstance(found, Row):
                rows.append(found)
                tables.setdefault(found.file, []).append(found)
            else:
                figures.append(found)
                tables.setdefault(name, []).append(found)
    if options.results is not None:
        report.save(options.results, circumstances, tables)
        print(f"\nadded to the CSV files in {options.results}")
    if options.page is not None:
        report.put_into(options.page, report.markdown(circumstances, rows, figures))
        print(f"written: {options.page}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The benchmarks of SQSQLite.")
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="few messages: whether it runs, not how fast")
    parser.add_argument(
        "--rounds", type=int, default=throughput.ROUNDS, help="of each throughput row: medians"
    )
    parser.add_argument("--folder", type=Path, help="where the queues' files go: the disk that is measured")
    parser.add_argument("--results", type=Path, help="where the CSV files are (not when quick)")
    parser.add_argument("--page", type=Path, help="a Markdown page with markers to put the tables in")
    options = parser.parse_args()
    if options.results is None and not options.quick:
        options.results = HERE / "results"
    return options


def _measure(name: str, folder: Path | None, *, quick: bool) -> Iterator[Row | Figure]:
    """Each comparison in an empty folder of its own."""
    if name == "throughput":
        for number, cell in enumerate(throughput.cells(quick=quick), 1):
            with tempfile.TemporaryDirectory(dir=folder) as own:
                yield from throughput.rows(number, cell, Path(own))
    else:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            yield from importlib.import_module(name).figures(Path(own), quick=quick)


if __name__ == "__main__":
    main()
