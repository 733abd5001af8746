# SPDX-License-Identifier: Apache-2.0
"""Retention without the jumps of a file's clock, compared with a clock that counts only while it runs."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sqsqlite.store.clock import MOST_JUMPS, Jump, Jumps

FIRST_MS = 1_800_000_000_000
RETENTION = 60
"""Seconds; the lowest, so that the histories below cross it often."""
up_ms = st.integers(0, 100_000)
off_ms = st.integers(0, 1_000_000)


class History:
    """Periods in which a file was in use, each followed by a jump, except the last."""

    def __init__(self, periods, last_up_ms):
        self.jumps, self.points = Jumps(), []  # (the clock's instant, milliseconds counted)
        now_ms, counted_ms = FIRST_MS, 0
        for up, off in periods:
            self._run(now_ms, counted_ms, up)
            now_ms, counted_ms = now_ms + up + off, counted_ms + up
            self.jumps = self.jumps.after(now_ms - off, now_ms)
        self._run(now_ms, counted_ms, last_up_ms)
        self.now_ms, self.counted_ms = self.points[-1]

    def _run(self, now_ms, counted_ms, up):
        self.points += [(now_ms + each, counted_ms + each) for each in {0, up // 3, up // 2, up}]


histories = st.builds(History, st.lists(st.tuples(up_ms, off_ms), max_size=12), up_ms)


@given(histories)
def test_a_message_expires_when_the_clock_has_counted_its_retention(history):
    expired_at = history.jumps.expired_at(RETENTION, history.now_ms)
    for sent_at, counted_ms in history.points:
        assert (sent_at <= expired_at) == (history.counted_ms - counted_ms >= RETENTION * 1000)


@given(histories, st.integers(-200_000, 2_000_000))
def test_the_instant_of_expiry_is_the_first_at_which_it_has_expired(history, after_first_ms):
    sent_at = min(FIRST_MS + after_first_ms, history.now_ms)
    expires_at = history.jumps.expires_at(RETENTION, sent_at)
    for now_ms in (history.now_ms, max(history.now_ms, expires_at), max(history.now_ms, expires_at - 1)):
        is_expired = sent_at <= history.jumps.expired_at(RETENTION, now_ms)
        assert is_expired == (now_ms >= expires_at)


@given(histories, st.integers(60, 1_209_600))
def test_steps_give_sql_the_same_instant(history, retention):
    steps = json.loads(json.dumps(history.jumps.steps(history.now_ms)))
    grace_ms = sum(length_ms for above_ms, length_ms in steps if retention * 1000 > above_ms)
    expired_at = history.jumps.expired_at(retention, history.now_ms)
    assert history.now_ms - retention * 1000 - grace_ms == expired_at


@given(histories)
def test_jumps_are_read_back_from_the_file_as_stored(history):
    assert Jumps.from_bytes(history.jumps.to_bytes()) == history.jumps
    assert Jumps.from_bytes(None) == Jumps()


def test_a_clock_that_does_not_move_forward_has_not_jumped():
    assert Jumps().after(FIRST_MS, FIRST_MS) == Jumps()
    assert Jumps().after(FIRST_MS, FIRST_MS - 1) == Jumps()


def test_jumps_beyond_the_longest_retention_are_forgotten():
    day_ms = 86_400_000
    jumps = Jumps().after(FIRST_MS, FIRST_MS + 1_000)
    kept = jumps.after(FIRST_MS + 14 * day_ms, FIRST_MS + 14 * day_ms + 10)
    assert [each.length_ms for each in kept.newest_first] == [10, 1_000]
    kept = jumps.after(FIRST_MS + 14 * day_ms + 1_000, FIRST_MS + 14 * day_ms + 1_010)
    assert [each.length_ms for each in kept.newest_first] == [10]


def test_a_year_off_between_two_hours_of_use_is_kept():
    """Only time that the clock counted makes a message expire, not time with the machine off."""
    year_ms, hour_ms = 365 * 86_400_000, 3_600_000
    jumps, now_ms = Jumps(), FIRST_MS
    for _ in range(3):
        now_ms += hour_ms + year_ms
        jumps = jumps.after(now_ms - year_ms, now_ms)
    assert len(jumps.newest_first) == 3
    assert jumps.expired_at(1_209_600, now_ms) < FIRST_MS


def test_too_many_jumps_keep_a_message_longer_never_shorter():
    jumps, now_ms = Jumps(), FIRST_MS
    exact = []
    for _ in range(3 * MOST_JUMPS):
        now_ms += 60_000
        exact.insert(0, Jump(now_ms, 1_000))
        jumps = jumps.after(now_ms - 1_000, now_ms)
    assert len(jumps.newest_first) == MOST_JUMPS
    assert all(newer.at_ms > older.at_ms for newer, older in pairwise(jumps.newest_first))
    for retention in range(60, 20_000, 60):
        expired_at = jumps.expired_at(retention, now_ms)
        assert expired_at <= Jumps(tuple(exact)).expired_at(retention, now_ms)
    assert jumps.expired_at(3_000, now_ms) == Jumps(tuple(exact)).expired_at(3_000, now_ms)
