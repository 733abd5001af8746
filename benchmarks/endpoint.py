# SPDX-License-Identifier: Apache-2.0
"""The endpoint compared with other servers that speak SQS, one at a time, each under the same load from wrk.

    python benchmarks/endpoint.py [--quick] [--only SERVER ...] [--folder DIRECTORY] [--results DIRECTORY]

SendMessage over JSON, and ReceiveMessage with DeleteMessage, in rounds of all servers; then the cost of idle polls,
and the time from a send to a receive that waits for it. A whole run takes about twenty minutes and needs the machine
to itself. Needs wrk (apt-get install wrk); ElasticMQ needs Java and Maven (apt-get install
openjdk-17-jre-headless maven). What can't run is a row that says why.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import endpoint_load
import endpoint_polls
from endpoint_process import call, free_port, running
from endpoint_rows import Load, ServerRow, row
from peers.servers import BARE, CONTESTANTS, OURS, CannotRun, Contestant
from report import Circumstances, save, table
from rows import Figure

RESULTS = Path(__file__).parent / "results"
SEND, RECEIVE = "SendMessage", "ReceiveMessage and DeleteMessage"
WORKLOADS = {SEND: (endpoint_load.SEND, "requests"), RECEIVE: (endpoint_load.RECEIVE_AND_DELETE, "deleted")}
FILES = {SEND: "endpoint_send", RECEIVE: "endpoint_receive_delete"}
GOALS = {"ElasticMQ": "at least 1.5", BARE: "at least 0.35"}
BODY_BYTES = 100
UNSIGNABLE = "not measured: each handle needs a signature of its own, which wrk does not make"


@dataclass
class Taken:
    """A contestant's rounds.

    Attributes:
        made: as it was run last; None: it never was.
        loads: by workload, those of each round.
        wrong: why it does not run.
        ran_empty: receives found nothing in some round, and were slower than they could be.
    """

    made: Contestant | None = None
    loads: dict[str, list[Load]] = field(default_factory=dict)
    wrong: str = ""
    ran_empty: bool = False


def compare(names, options):
    """Rounds of every contestant. Another contestant begins each round."""
    found = {name: Taken() for name in names}
    for turn in range(options.rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            if not found[name].wrong:
                with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
                    measure(name, found[name], Path(temporary), options)
    return found


def measure(name, taken, folder, options):
    """One round of each workload, on a new server. The warm-up does not count, because Java compiles hot code."""
    try:
        contestant = taken.made = CONTESTANTS[name](free_port(), folder)
        workloads = [SEND] if contestant.key else [*WORKLOADS]
        with running(contestant, folder) as (_, url):
            for seconds, counts in ((options.warm_up, False), (options.seconds, True)):
                for workload in workloads:
                    load = _load(workload, contestant, url, folder, seconds, options.connections)
                    if counts:
                        taken.loads.setdefault(workload, []).append(load)
                        told = f"{load.messages_per_second:,.0f}/s, p50 {load.p50_ms:.2f} ms"
                        print(f"{name}, {workload}: {told}", flush=True)
            if RECEIVE in workloads and not call(contestant, "ReceiveMessage", QueueUrl=url).get("Messages"):
                taken.ran_empty = True
    except CannotRun as error:
        taken.wrong = str(error)
        print(f"{name}: {error}", file=sys.stderr)


def _load(workload, contestant, url, folder, seconds, connections):
    script, counted = WORKLOADS[workload]
    told = {"seconds": seconds, "connections": connections, "body_bytes": BODY_BYTES}
    found = endpoint_load.run(script, contestant, url, folder, **told)
    return Load(found[counted] / found["seconds"], found["p50_ms"], found["p99_ms"], found["bad"])


def rows(found):
    """A row for each workload and contestant, measured or not."""
    ours = found.get(OURS, Taken()).loads
    return [
        _row(workload, name, taken, ours.get(workload, []))
        for workload in WORKLOADS
        for name, taken in found.items()
    ]


def _row(workload, name, taken, ours):
    version, durability = (taken.made.version, taken.made.durability) if taken.made else ("", "")
    loads = taken.loads.get(workload, [])
    goal = GOALS.get(name, "")
    if taken.wrong or not loads:
        note = f"not measured: {taken.wrong}" if taken.wrong else UNSIGNABLE
        return ServerRow(workload, name, version, durability, 0, goal=goal, note=note)
    notes = ["the queue ran empty"] if taken.ran_empty and workload == RECEIVE else []
    return row(workload, name, version, durability, loads, ours, goal, notes)


def figures(options):
    """Figures of long polls: how soon a message reaches one, and what they cost."""
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder, port = Path(temporary), free_port()
        with running(CONTESTANTS[OURS](port, folder), folder) as (process, url):
            middle, high = asyncio.run(endpoint_polls.latency(port, url, rounds=options.polls))
            before, resident, share = asyncio.run(
                endpoint_polls.idle(port, process.pid, url, polls=options.polls, seconds=10)
            )
    sqlite = Circumstances.now().sqlite
    polls = f"{options.polls:,} idle long polls"
    return [
        Figure(
            "from a send's request to the answer of a long poll", middle, "ms", "FULL", sqlite,
            "under 5 ms, median", f"p99 {high:.2f} ms of {options.polls:,}",
        ),
        Figure(
            f"resident with {polls}", resident / 1e6, "MB", "FULL", sqlite, "under 100 MB",
            f"{before / 1e6:.0f} MB before",
        ),
        Figure(f"CPU of {polls}", share * 100, "% of a core", "FULL", sqlite, "under 2 %", "over 10 s"),
    ]  # fmt: skip


def page(circumstances, servers, waits, options):
    """The whole run in Markdown."""
    told = (
        f"wrk with one thread and {options.connections} connections, bodies of {BODY_BYTES} bytes, medians of "
        f"{options.rounds} rounds of {options.seconds} s, each on a new server after {options.warm_up} s of the same."
    )
    parts = [circumstances.sentence(), told]
    parts += [
        table(ServerRow.HEADINGS, [one.cells() for one in servers if one.workload == name])
        for name in WORKLOADS
    ]
    if waits:
        parts.append(table(Figure.HEADINGS, [figure.cells() for figure in waits]))
    return "\n\n".join(parts) + "\n"


def _options():
    parser = argparse.ArgumentParser(description="Compare servers that speak SQS.")
    parser.add_argument("--seconds", type=int, default=5, help="of each workload, each round")
    parser.add_argument("--warm-up", type=int, default=10, help="seconds of each workload before")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--polls", type=int, default=1000, help="0: not measured")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=[*CONTESTANTS])
    parser.add_argument(
        "--quick", action="store_true", help="whether it runs, not how fast; nothing is written"
    )
    parser.add_argument("--folder", help="where the queues' files go: the disk that is measured")
    parser.add_argument("--results", type=Path, help="where the CSV files are")
    options = parser.parse_args()
    if options.quick:
        options.seconds = options.warm_up = options.rounds = 1
        options.polls = 20
    elif options.results is None:
        options.results = RESULTS
    return options


def main():
    options = _options()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing: apt-get install wrk")
    circumstances = Circumstances.now()
    print(circumstances.sentence())
    servers = rows(compare(options.only, options))
    waits = figures(options) if options.polls else []
    text = page(circumstances, servers, waits, options)
    print(f"\n{text}")
    if options.results is not None:
        tables = {
            FILES[workload]: [one for one in servers if one.workload == workload] for workload in WORKLOADS
        }
        save(options.results, circumstances, tables | {"endpoint_polls": waits})
        print(f"added to the CSV files in {options.results}")


if __name__ == "__main__":
    main()
