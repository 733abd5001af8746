# SPDX-License-Identifier: Apache-2.0
"""Late workers write no second row: rows = messages, exactly. And the other actors of the long storm, one by one."""

import random

import pytest

from tests.durability.long_storm import run

SECONDS, SLOW_SECONDS = 4, 48


def storm(tmp_path, names, seconds, **options):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"storm of {', '.join(names)} with seed {seed}")
    figures, faults = run(tmp_path, names, seconds, seed, **options)
    print(dict(figures))
    assert faults == []
    return figures


@pytest.mark.timeout(900)  # a hang
def test_each_message_has_one_row(tmp_path):
    figures = storm(tmp_path, ["late"], SECONDS, calm=(0.4, 0.9))
    assert figures["late: rows"] == figures["late: messages"] > 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_message_has_one_row_under_every_kind_of_lateness(tmp_path):
    figures = storm(tmp_path, ["late"], SLOW_SECONDS)
    assert figures["late: rows"] == figures["late: messages"]
    # Otherwise nothing was tested.
    assert [reason for reason in ("gone", "ended", "replaced") if not figures[f"late: late {reason}"]] == []
    assert figures["late: received"] > 1_000
    assert figures["late: kills"] > 0
    assert figures["late: stops"] > 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["hops", "line", "openings", "cursors", "tasks", "signals", "room"])
def test_sums_of_each_actor_hold(tmp_path, name):
    figures = storm(tmp_path, [name], SLOW_SECONDS / 4)
    assert figures[f"{name}: kills"] + figures[f"{name}: stops"] > 0
