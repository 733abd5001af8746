# SPDX-License-Identifier: Apache-2.0
"""The judge of a storm: it gets each process's attempts and their answers, and names the broken promises.
 It runs outside of the killed processes and gets one line an event, written at once, which SIGKILL cannot tear. Times
are nanoseconds of the boot-time clock, by which queues on this machine measure leases too. A promise that only may be
broken does not count: an interval in which a message was surely held begins when the receive returned and ends a
timeout after it was called, or with its holder's first attempt to settle it.
"""

from collections import defaultdict
from dataclasses import dataclass, field

# Leases end on whole milliseconds.
ROUNDING_NS = 2_000_000


@dataclass
class Held:
    """One receive of a message: surely in its receiver's hands from `since` to `until`."""

    receiver: str
    called: int
    since: int
    until: int


@dataclass
class Life:
    """All events of one message."""

    sent: bool = False  # acknowledged
    attempted: bool = False
    delete_attempted: bool = False
    deleted_at: int | None = None  # the time of the first acknowledgement
    receives: list[Held] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """Keys of messages by violation, and the amount that was judged."""

    lost: list[str]
    resurrected: list[str]
    held_twice: list[str]
    invented: list[str]
    sent_count: int
    deleted_count: int
    receive_count: int
    redelivered_count: int

    @property
    def violations(self) -> dict[str, list[str]]:
        """The violations, where there are any."""
        found = {
            "lost": self.lost,
            "resurrected": self.resurrected,
            "held twice": self.held_twice,
            "invented": self.invented,
        }
        return {name: keys for name, keys in found.items() if keys}


class Judge:
    """Receives events, then gives a verdict. A message is known by its key, which is its body."""

    def __init__(self) -> None:
        self.lives: defaultdict[str, Life] = defaultdict(Life)

    def hear(self, line: str) -> None:
        """One event: its kind, who tells, the message's key, and times.

        `send-attempt WHO KEY`, `send-ack WHO KEY`, `receive WHO KEY CALLED RETURNED TIMEOUT_NS`,
        `return-attempt WHO KEY NOW`, `delete-attempt WHO KEY NOW`, `delete-ack WHO KEY NOW`.
        """
        kind, who, key, *times = line.split()
        numbers = [int(time) for time in times]
        life = self.lives[key]
        match kind:
            case "send-attempt":
                life.attempted = True
            case "send-ack":
                life.sent = True
            case "receive":
                called, returned, timeout = numbers
                life.receives.append(Held(who, called, returned, called + timeout - ROUNDING_NS))
            case "return-attempt" | "delete-attempt":
                life.delete_attempted |= kind == "delete-attempt"
                for held in life.receives:
                    if held.receiver == who:
                        held.until = min(held.until, numbers[0])
            case "delete-ack":
                life.deleted_at = min(numbers[0], life.deleted_at or numbers[0])
            case _:
                raise ValueError(f"not an event: {line!r}")

    def verdict(self, drained: set[str]) -> Verdict:
        """The violations, given that `drained` (keys) was left in the end."""
        lives = self.lives
        return Verdict(
            lost=[
                k for k, life in lives.items() if life.sent and not life.delete_attempted and k not in drained
            ],
            resurrected=[k for k, life in lives.items() if _is_resurrected(life)],
            held_twice=[k for k, life in lives.items() if _is_held_twice(life)],
            invented=[k for k, life in lives.items() if life.receives and not life.attempted],
            sent_count=sum(life.sent for life in lives.values()),
            deleted_count=sum(life.deleted_at is not None for life in lives.values()),
            receive_count=sum(len(life.receives) for life in lives.values()),
            redelivered_count=sum(max(0, len(life.receives) - 1) for life in lives.values()),
        )


def _is_resurrected(life: Life) -> bool:
    return life.deleted_at is not None and any(held.called > life.deleted_at for held in life.receives)


def _is_held_twice(life: Life) -> bool:
    held = sorted(life.receives, key=lambda each: each.since)
    latest = 0
    for each in held:
        if each.since < latest:
            return True
        latest = max(latest, each.until)
    return False
