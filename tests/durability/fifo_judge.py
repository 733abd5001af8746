# SPDX-License-Identifier: Apache-2.0
"""The judge of a storm on a FIFO queue: the events and verdicts of `judge.py`, and the promises of groups.
 Message `7:3` is number 3 of the group 7. A producer sends a number after the previous one was acknowledged (or
together with it). Each send of a number has the same deduplication id. So if a number is stored, all before it were
stored. Consumers settle a group's messages from the front, and give them back from the end.
"""

from collections import defaultdict
from dataclasses import dataclass

from tests.durability.judge import Judge


@dataclass(frozen=True)
class FifoVerdict:
    """Violations, by keys of messages or by groups, and the amount that was judged."""

    violations: dict[str, list[str]]
    sent_count: int
    deleted_count: int
    receive_count: int
    redelivered_count: int


class FifoJudge:
    """Receives events, then gives a verdict."""

    def __init__(self) -> None:
        self.deaths = 0
        self._messages = Judge()
        # By key: each message id and sequence number under which it was seen.
        self._stored: defaultdict[str, set[str]] = defaultdict(set)
        # By key: acknowledged deletes, as (who asked, start, end).
        self._deleted: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)
        # By key: deletes that may have happened, with their worker and time.
        self._attempts: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._fronts: defaultdict[str, int] = defaultdict(int)  # By group: all smaller numbers are deleted.
        self._out_of_order: set[str] = set()

    def hear(self, line: str) -> None:
        """One event: those of `judge.py`, but for

        `send-ack WHO KEY ID/SEQUENCE`, `receive WHO CALLED RETURNED TIMEOUT_NS KEY=ID/SEQUENCE ...` with all that one
        receive gave, in its order, `delete-refused WHO KEY` and in the end `deaths WHO COUNT`.
        """
        kind, who, *words = line.split()
        match kind:
            case "send-ack":
                key, stored = words
                self._stored[key].add(stored)
                self._messages.hear(f"send-ack {who} {key}")
                return
            case "receive":
                self._hear_receive(who, words[:3], [word.split("=") for word in words[3:]])
                return
            case "deaths":
                self.deaths = int(words[0])
                return
            case "delete-refused":
                self._attempts[words[0]].pop(who, None)
                return
            case "delete-attempt":
                self._attempts[words[0]][who] = int(words[1])
            case "delete-ack":
                at = int(words[1])
                self._deleted[words[0]].append((who, self._attempts[words[0]].get(who, at), at))
        self._messages.hear(line)

    def _hear_receive(self, who: str, times: list[str], received: list[list[str]]) -> None:
        called = int(times[0])
        for key, stored in received:
            self._stored[key].add(stored)
            self._messages.hear(f"receive {who} {key} {' '.join(times)}")
            # The message is here, so no earlier attempt has deleted it; nor can a later one, with a replaced handle.
            attempts = self._attempts[key]
            self._attempts[key] = {whose: at for whose, at in attempts.items() if at > called}
        for place, (key, _) in enumerate(received):
            self._look_before(key, {earlier for earlier, _ in received[:place]})

    def _look_before(self, key: str, handed_out: set[str]) -> None:
        """All earlier messages of the group are deleted by now, or came before it in the same receive."""
        group, number = _split(key)
        while f"{group}:{self._fronts[group]}" in self._deleted:
            self._fronts[group] += 1
        earlier = (f"{group}:{each}" for each in range(self._fronts[group], number))
        if any(each not in handed_out and not self._may_be_deleted(each) for each in earlier):
            self._out_of_order.add(key)

    def _may_be_deleted(self, key: str) -> bool:
        return key in self._deleted or bool(self._attempts[key])

    def verdict(self) -> FifoVerdict:
        """The violations, given that the queue is empty in the end."""
        verdict = self._messages.verdict(set())
        lives = self._messages.lives
        found = {
            "lost": [key for key, life in lives.items() if life.sent and not self._may_be_deleted(key)],
            "resurrected": verdict.resurrected,
            "invented": verdict.invented,
            "held twice": self._groups_held_twice(),
            "deleted by others": [key for key in self._deleted if self._is_deleted_by_others(key)],
            "out of order": sorted(self._out_of_order),
            "stored twice": [key for key, stored in self._stored.items() if len(stored) > 1],
            "numbered wrongly": self._numbered_wrongly(),
        }
        return FifoVerdict(
            {name: keys for name, keys in found.items() if keys},
            verdict.sent_count,
            verdict.deleted_count,
            verdict.receive_count,
            verdict.redelivered_count,
        )

    def _groups_held_twice(self) -> list[str]:
        """Groups of which two receives held messages at once: the same message, or another one."""
        spans: dict[tuple[str, str, int], tuple[int, int]] = {}
        for key, life in self._messages.lives.items():
            for held in life.receives:
                receive = (_split(key)[0], held.receiver, held.called)
                since, until = spans.get(receive, (held.since, held.until))
                spans[receive] = (since, max(until, held.until))
        groups = set()
        latest: defaultdict[str, int] = defaultdict(int)
        for (group, _, _), (since, until) in sorted(spans.items(), key=lambda span: span[1]):
            if since < latest[group]:
                groups.add(group)
            latest[group] = max(latest[group], until)
        return sorted(groups)

    def _is_deleted_by_others(self, key: str) -> bool:
        """Whether a delete by one worker was accepted while another surely held the message."""
        return any(
            held.receiver != who and held.since < asked and answered < held.until
            for held in self._messages.lives[key].receives
            for who, asked, answered in self._deleted[key]
        )

    def _numbered_wrongly(self) -> list[str]:
        """Messages whose sequence number is not above that of their predecessor in the group."""
        latest: dict[str, int] = {}
        wrong = []
        for key in sorted(self._stored, key=_split):
            group, _ = _split(key)
            sequence = min(int(stored.partition("/")[2]) for stored in self._stored[key])
            if sequence <= latest.get(group, 0):
                wrong.append(key)
            latest[group] = sequence
        return wrong


def _split(key: str) -> tuple[str, int]:
    group, _, number = key.partition(":")
    return group, int(number)
