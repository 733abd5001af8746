# SPDX-License-Identifier: Apache-2.0
"""Walks many histories and tells what happened in them: `python -m tests.model.run_histories [HISTORIES [STEPS]]`.

On all processors, 100 histories at a time, each hundred from a seed of its own. One hundred in four goes by
compat="aws", one in eight by small limits of messages in flight. Prints Markdown; docs/model.md shows a part of it.
"""

import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.model.histories import FEW_IN_FLIGHT, explore

AT_A_TIME = 100


def main(histories=20_000, steps=100):
    started = time.monotonic()
    happened = Counter()
    with ProcessPoolExecutor() as pool:
        chunks = range(1, histories // AT_A_TIME + 1)
        for found in pool.map(walk, chunks, [steps] * len(chunks)):
            happened += found
    minutes = (time.monotonic() - started) / 60
    print(
        f"{happened['histories']:,} histories of {steps} steps, {minutes:.0f} minutes on {os.cpu_count()} processors."
    )
    print(f"{sum(happened[outcome] for outcome in happened if outcome[0].isupper()):,} requests.\n")
    print_requests(happened)
    print_outcomes(happened)


def walk(chunk, steps):
    options = {}
    if chunk % 4 == 3:
        options["compat"] = "aws"
    elif chunk % 8 == 5:
        options["in_flight_limits"] = FEW_IN_FLIGHT
    try:
        return explore(AT_A_TIME, steps, start=chunk, **options)
    except BaseException as error:
        error.add_note(f"explore({AT_A_TIME}, {steps}, start={chunk}, **{options})")
        raise


def print_requests(happened):
    print("| request | done | refused |\n|---|---|---|")
    for action in sorted({outcome.split()[0] for outcome in happened if outcome[0].isupper()}):
        some = happened[f"{action} entries failed"]
        done = f"{happened[action] + some:,}" + (f" ({some:,} with failed entries)" if some else "")
        refusals = {
            outcome.partition(" ")[2].rpartition(".")[2]: count
            for outcome, count in sorted(happened.items())
            if outcome.startswith(f"{action} ") and not outcome.endswith("entries failed")
        }
        print(f"| {action} | {done} | {', '.join(f'{code} {count:,}' for code, count in refusals.items())} |")


def print_outcomes(happened):
    print("\n| outcome | times |\n|---|---|")
    for outcome, count in sorted(happened.items()):
        if not outcome[0].isupper() and outcome != "histories":
            print(f"| {outcome} | {count:,} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
