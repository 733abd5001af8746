# SPDX-License-Identifier: Apache-2.0
"""Histories: lists of steps that hypothesis draws, walked one by one."""

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.model import steps, transacting
from tests.model.engine import Engine
from tests.model.walk import NOW, OTHERS, Walk

KINDS = {**OTHERS, **transacting.WEIGHT, **steps.REQUESTS}
TABLE = [kind for kind, (weight, *_) in KINDS.items() for _ in range(weight)]
FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a history does not need a disk
# Limits so low that some histories reach them.
FEW_IN_FLIGHT = (5, 4)
STANDARD_ONLY, FIFO_ONLY, BOTH = range(3)  # the mixes of `steps.pool`
BOTO_DOOR = 4  # one call in this number goes through boto3
HEAD_BYTES, STEP_BYTES = 6, 12


@dataclass(frozen=True)
class History:
    """What kinds of queues, whether standard ones are fair, what they are like at first, and the steps."""

    mix: int
    fair: bool
    opening: bytes
    steps: list[tuple[Callable[..., None], bool, list[int]]]

    @classmethod
    def of(cls, content, mixes):
        """A history from hypothesis's bytes: one draw is fast, and gives hypothesis no parts to repeat in others."""
        mix, fair, *opening = content[:HEAD_BYTES]
        places = range(HEAD_BYTES, len(content), STEP_BYTES)
        drawn = [_step(content[place : place + STEP_BYTES]) for place in places]
        return cls(mixes[mix % len(mixes)], bool(fair % 2), opening, drawn)


def _step(numbers):
    kind = TABLE[numbers[0] * len(TABLE) // 256]
    chosen = [number % most for number, most in zip(numbers[2:], KINDS[kind][1:], strict=False)]
    return kind, numbers[1] % BOTO_DOOR == 0, chosen


def open_queues(walk, opening):
    """All queues but one, in each type the second one the first one's dead-letter queue or not."""
    for name in ("b", "b.fifo", "a", "a.fifo", "c", "c.fifo"):
        if name not in walk.names:
            continue
        attributes = dict(OPENINGS[opening["bac".index(name[0])] % len(OPENINGS)])
        if name.endswith(".fifo"):
            attributes["FifoQueue"] = "true"
            attributes["ContentBasedDeduplication"] = ("true", "false")[opening[3] % 2]
            attributes["DeduplicationScope"] = ("queue", "queue", "messageGroup")[opening[3] % 3]
        if name[0] == "a" and opening[3] % 8 >= 3:
            attributes["RedrivePolicy"] = steps.policy(name.replace("a", "b"), opening[3] % 3 + 1)
        params = {"QueueName": name, "Attributes": attributes, "tags": {"team": "first"}}
        walk.request("CreateQueue", params)


OPENINGS = (
    {},
    {"VisibilityTimeout": "5"},
    {"DelaySeconds": "5"},
    {"MessageRetentionPeriod": "60"},
    {"VisibilityTimeout": "1"},
    {},
    {},
    {},
)


def walk_history(history, happened, *, compat="docs", in_flight_limits=None):
    """Walk one history in a new file. What happened is added to the counter, if nothing went wrong.

    `in_flight_limits`: of a standard and of a FIFO queue; None: SQS's own.
    """
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    try:
        with closing(
            Engine(folder / "queues.db", NOW, compat=compat, in_flight_limits=in_flight_limits)
        ) as engine:
            walk = Walk(
                engine, compat=compat, in_flight_limits=in_flight_limits, mix=history.mix, fair=history.fair
            )
            try:
                open_queues(walk, history.opening)
                for kind, door, numbers in history.steps:
                    walk.step(kind, door, numbers)
                walk.compare_all()
            except Exception as error:
                error.add_note(story(walk))
                raise
            happened.update(walk.model.state.happened)
    finally:
        shutil.rmtree(folder)


def story(walk):
    """The requests, line by line."""
    lines = [f"{number:3} {action} {params}" for number, (action, params) in enumerate(walk.told, 1)]
    return re.sub("x{100,}", lambda found: f"x * {len(found[0])}", "\n".join(lines))


def explore(count, length, *, start=0, mixes=(STANDARD_ONLY, FIFO_ONLY, BOTH), **options):
    """Walk `count` histories of `length` steps, the same ones each time; gives the Counter of what happened.

    Raises:
        Difference, or what else the engine raised: of the shortest history that has been found to end so.
    """
    happened = Counter()
    failed = find_failure(count, length, happened, start=start, mixes=mixes, **options)
    if failed is not None:
        raise failure_of(shorter(failed, **options), Counter(), **options)
    return happened


def find_failure(count, length, happened, *, start=0, mixes=(STANDARD_ONLY, FIFO_ONLY, BOTH), **options):
    """The first history that fails, or None."""
    failed = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(min_size=(size := HEAD_BYTES + STEP_BYTES * length), max_size=size))
    def walk_all(content):
        if failed:
            return
        history = History.of(content, mixes)
        happened["histories"] += 1
        if failure_of(history, happened, **options) is not None:
            failed.append(history)

    walk_all()
    return failed[0] if failed else None


def failure_of(history, happened, **options):
    """The exception in which a history ends, or None if model and engine agree."""
    try:
        walk_history(history, happened, **options)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is a failure
        return error
    return None


def shorter(history, **options):
    """The history without the steps that its failure does not need. Any part of a history is a history."""
    size = len(history.steps)
    while size:
        kept = list(history.steps)
        for start in range(len(kept) - size, -1, -size):
            tried = kept[:start] + kept[start + size :]
            if failure_of(replace(history, steps=tried), Counter(), **options) is not None:
                kept = tried
        size = size // 2 if len(kept) == len(history.steps) else min(size, len(kept))
        history = replace(history, steps=kept)
    return history
