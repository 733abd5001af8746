"""By how much a file's clock jumped ahead at each boot, and what that means for messages stored before.

At the first open after a boot the clock goes to wall time. What it passes over there (the machine was off, a virtual
machine was paused, the wall clock was set late) is no age of a message: else one boot could make a whole backlog
expire. So the jumps are kept in the file, and a message expires once the clock has counted its retention without them.
"""

import json
from typing import NamedTuple

from sqsqlite.contract.limits import SQS

# Jumps kept at most: a laptop that boots four times a day makes as many within the longest retention. Each costs a
# receive some 50 ns for as long as it is within the queue's retention.
MOST_JUMPS = 64
_LONGEST_RETENTION_SECONDS = SQS.message_retention_period_seconds.high


class Jump(NamedTuple):
    """One jump: the clock showed `at_ms - length_ms` or less, and next `at_ms`.

    Attributes:
        at_ms: where it ended, milliseconds since 1970 UTC.
        length_ms: more than 0.
    """

    at_ms: int
    length_ms: int


class Jumps(NamedTuple):
    """The jumps that may still matter to a message, newest first."""

    newest_first: tuple[Jump, ...] = ()

    def expired_at(self, retention_seconds: int, now_ms: int) -> int:
        """Messages sent at or before this instant are beyond the retention.

        Exact for messages sent before, between and after jumps. One whose time of sending is within a jump, which
        happens because the file knows the last instant before it only by the minute, counts as sent at its end.
        """
        expired_at = now_ms - retention_seconds * 1000
        for at_ms, length_ms in self.newest_first:
            if expired_at >= at_ms:
                break
            expired_at -= length_ms
        return expired_at

    def expires_at(self, retention_seconds: int, sent_at: int) -> int:
        """The first instant at which a message sent at `sent_at` is beyond the retention, if no jump follows."""
        counted_from = sent_at
        for at_ms, length_ms in reversed(self.newest_first):
            if counted_from < at_ms:
                counted_from = min(counted_from + length_ms, at_ms)
        return counted_from + retention_seconds * 1000

    def steps(self, now_ms: int) -> list[tuple[int, int]]:
        """For SQL, which computes `expired_at` of many queues: `(above_ms, length_ms)`.

        The end of a retention longer than `above_ms` milliseconds is earlier by `length_ms` than it would be.
        """
        found = []
        counted_ms = now_ms
        for at_ms, length_ms in self.newest_first:
            found.append((counted_ms - at_ms, length_ms))
            counted_ms -= length_ms
        return found

    def after(self, last_at: int, now_ms: int) -> "Jumps":
        """With a jump from `last_at` to `now_ms`, and without those that matter to no message any more.

        Where there are too many, the two oldest become one: a message sent between them may stay longer than its
        retention, never shorter.
        """
        jumps = self.newest_first
        if jumps:
            last_at = max(last_at, jumps[0].at_ms)
        if now_ms > last_at:
            jumps = (Jump(now_ms, now_ms - last_at), *jumps)
        expired_at = now_ms - _LONGEST_RETENTION_SECONDS * 1000
        kept: list[Jump] = []
        for jump in jumps:
            if expired_at >= jump.at_ms:
                break
            expired_at -= jump.length_ms
            kept.append(jump)
        while len(kept) > MOST_JUMPS:
            oldest = kept.pop()
            kept[-1] = Jump(kept[-1].at_ms, kept[-1].length_ms + oldest.length_ms)
        return Jumps(tuple(kept))

    def to_bytes(self) -> bytes:
        """As it stands in the file."""
        return json.dumps(self.newest_first).encode()

    @staticmethod
    def from_bytes(stored: bytes | None) -> "Jumps":
        """From what `to_bytes` made; none where nothing was stored."""
        return Jumps(tuple(Jump(*pair) for pair in json.loads(stored or b"[]")))
