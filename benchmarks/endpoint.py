"""The endpoint beside other servers that speak SQS, one at a time, each asked by the same generator (wrk).

    python benchmarks/endpoint.py                    all of it, about 12 minutes
    python benchmarks/endpoint.py --seconds 2 --rounds 1 --warm-up 2 --only sqsqlite

A table of SendMessage over JSON and one of ReceiveMessage and DeleteMessage, medians over rounds in which the servers
take turns; then what idle long polls cost, and how long a message takes to a receive that waits. No server
authenticates. Needs wrk (apt-get install wrk); ElasticMQ's rows need Java and Maven: left out where those are missing.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import endpoint_load
import endpoint_polls
from endpoint_contestants import BARE, CONTESTANTS, SIGNED, missing
from report import Circumstances

START_SECONDS = 120
STOP_SECONDS = 20
WORKLOADS = ("SendMessage", "ReceiveMessage and DeleteMessage")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def call(contestant, action, **parameters):
    """One request; its answer as a dict."""
    body = json.dumps(parameters)
    headers = endpoint_load.headers(contestant.port, action, body, contestant.key)
    request = urllib.request.Request(f"http://127.0.0.1:{contestant.port}/", body.encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"{}")


@contextlib.contextmanager
def running(contestant, folder):
    """The server's process and its queue's URL, from its first answer on."""
    log = folder / "log"
    with log.open("wb") as told:
        process = subprocess.Popen(
            contestant.command,
            cwd=folder,
            env={**os.environ, **contestant.environment},
            stdout=told,
            stderr=told,
            start_new_session=True,
        )
    try:
        yield process, _first_answer(contestant, process, log)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(STOP_SECONDS)


def _first_answer(contestant, process, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            return call(contestant, "CreateQueue", QueueName="bench")["QueueUrl"]
        time.sleep(0.2)
    raise SystemExit(f"{contestant.command} does not start:\n{log.read_text()[-2000:]}")


def measure(name, folder, arguments):
    """Its durability; messages a second and latencies of each workload, on a new server."""
    contestant = CONTESTANTS[name](free_port(), folder)
    with running(contestant, folder) as (_, url):
        told = {"seconds": arguments.seconds, "connections": arguments.connections, "body_bytes": 100}
        warm_up = {**told, "seconds": arguments.warm_up}
        both = (
            (endpoint_load.SEND,)
            if contestant.key
            else (endpoint_load.SEND, endpoint_load.RECEIVE_AND_DELETE)
        )
        for workload in both if arguments.warm_up else ():
            endpoint_load.run(workload, contestant, url, folder, **warm_up)
        sent = endpoint_load.run(endpoint_load.SEND, contestant, url, folder, **told)
        found = {WORKLOADS[0]: _rate(sent, "requests")}
        if name not in {BARE, SIGNED}:  # each handle would need a signature of its own
            taken = endpoint_load.run(endpoint_load.RECEIVE_AND_DELETE, contestant, url, folder, **told)
            found[WORKLOADS[1]] = _rate(taken, "deleted")
            if not call(contestant, "ReceiveMessage", QueueUrl=url).get("Messages"):
                print(
                    f"{name}: the queue ran empty, so receives were slower than they could be",
                    file=sys.stderr,
                )
    return contestant.durability, found


def _rate(found, counted):
    if found["bad"]:
        print(f"{found['bad']} of {found['requests']} requests failed", file=sys.stderr)
    return found[counted] / found["seconds"], found["p50_ms"], found["p99_ms"]


def compare(names, arguments):
    """Every contestant in each round, in turns that begin with another one each time."""
    found = {}
    for turn in range(arguments.rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
                durability, measured = measure(name, Path(temporary), arguments)
            for workload, numbers in measured.items():
                found.setdefault(workload, {}).setdefault((name, durability), []).append(numbers)
    for workload, servers in found.items():
        print_table(workload, servers)


def present(names):
    """Those whose programs are here; what the others lack is said."""
    for name in names:
        if missing(name):
            print(f"{name} is left out: apt-get install openjdk-17-jre-headless maven", file=sys.stderr)
    return [name for name in names if not missing(name)]


def print_table(workload, servers):
    rates = {name: statistics.median(rate for rate, _, _ in rounds) for (name, _), rounds in servers.items()}
    print(f"\n{workload}\n\n| server | durability | messages/s | p50 ms | p99 ms | sqsqlite to it |")
    print("|---|---|---:|---:|---:|---:|")
    for (name, durability), rounds in servers.items():
        p50, p99 = (statistics.median(one[place] for one in rounds) for place in (1, 2))
        ratio = f"{rates['sqsqlite'] / rates[name]:.2f}" if "sqsqlite" in rates and rates[name] else ""
        print(f"| {name} | {durability} | {rates[name]:,.0f} | {p50:.2f} | {p99:.2f} | {ratio} |")


def polls(arguments):
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        folder, port = Path(temporary), free_port()
        with running(CONTESTANTS["sqsqlite"](port, folder), folder) as (process, url):
            median, high = asyncio.run(endpoint_polls.latency(port, url, rounds=arguments.polls))
            before, resident, share = asyncio.run(
                endpoint_polls.idle(port, process.pid, url, polls=arguments.polls, seconds=10)
            )
    print(f"\nfrom a send to a receive that waits: median {median:.2f} ms, p99 {high:.2f} ms")
    print(
        f"{arguments.polls:,} idle long polls: {resident / 2**20:.0f} MiB resident ({before / 2**20:.0f} before), "
        f"{share:.1%} of a core"
    )


def main():
    parser = argparse.ArgumentParser(description="Compare servers that speak SQS.")
    parser.add_argument("--seconds", type=int, default=5, help="of each workload, each round")
    parser.add_argument("--warm-up", type=int, default=10, help="seconds before: Java compiles what is hot")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--polls", type=int, default=1000, help="0: not measured")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=[*CONTESTANTS])
    parser.add_argument("--folder", help="where the files go; default: where temporary files do")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing: apt-get install wrk")
    print(Circumstances.now().sentence())
    compare(present(arguments.only), arguments)
    if arguments.polls:
        polls(arguments)


if __name__ == "__main__":
    main()
