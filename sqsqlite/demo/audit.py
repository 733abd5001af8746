# SPDX-License-Identifier: Apache-2.0
"""The audit of the demo. It compares the messages sent, the tables of the file and what the workers printed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqsqlite.demo.ledger import Parsed, Receive


class Kill(NamedTuple):
    """The kill of a worker at work, `at` milliseconds since 1970 UTC. `held`: the unfinished messages it held."""

    worker: str
    at: int
    held: tuple[str, ...]


class DeadMessage(NamedTuple):
    """A message in the dead-letter queue. `parses`: whether the parent could parse its file."""

    message_id: str
    path: str
    receive_count: int
    parses: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the audit compares.

    Attributes:
        sent: the path of every message sent, by message id.
        parsed: the rows of the application's table.
        acknowledged: the ids of the messages whose commit a worker printed.
        late_count: how many receives ended with the outcome "late".
        max_receive_count: of the queue's RedrivePolicy.
        left: how many messages are still in the queue, in any state.
        integrity: what SQLite's integrity_check says about the file; "ok" if it is sound.
    """

    sent: Mapping[str, str]
    receives: Sequence[Receive]
    parsed: Sequence[Parsed]
    acknowledged: Sequence[str]
    late_count: int
    dead_letters: Sequence[DeadMessage]
    max_receive_count: int
    left: int
    kill: Kill | None
    integrity: str


def find_returns(kill: Kill | None, receives: Sequence[Receive]) -> list[Receive]:
    """The first receive, by another worker, of each message that the killed worker held. In order."""
    first: dict[str, Receive] = {}
    for receive in receives:
        if kill and receive.message_id in kill.held and receive.worker != kill.worker:
            first.setdefault(receive.message_id, receive)
    return list(first.values())


def find_faults(evidence: Evidence) -> list[str]:
    """What does not add up, a sentence each; empty when everything does."""
    parts = (_in_the_sum, _in_the_results, _in_the_dead_letters, _after_the_kill)
    faults = [fault for part in parts for fault in part(evidence)]
    return faults if evidence.integrity == "ok" else [*faults, f"integrity_check says: {evidence.integrity}"]


def _in_the_sum(evidence: Evidence) -> Iterator[str]:
    sent, parsed, dead = len(evidence.sent), len(evidence.parsed), len(evidence.dead_letters)
    if sent != parsed + dead:
        yield f"{sent} sent, but {parsed} processed and {dead} dead letters make {parsed + dead}"
    if evidence.left:
        yield f"{evidence.left} messages are still in the queue"
    for id_ in evidence.sent.keys() - _finished(evidence):
        yield f"{evidence.sent[id_]} ({id_}) was lost"


def _in_the_results(evidence: Evidence) -> Iterator[str]:
    rows = Counter(row.message_id for row in evidence.parsed)
    for id_, count in rows.items():
        if count > 1:
            yield f"{id_} was processed {count} times"
    for row in evidence.parsed:
        if evidence.sent.get(row.message_id) != row.path:
            yield f"{row.message_id} ({row.path}) was processed, but not sent as that"
    for id_ in set(evidence.acknowledged) - rows.keys():
        yield f"{id_}: its commit was reported, but its row is gone"


def _in_the_dead_letters(evidence: Evidence) -> Iterator[str]:
    parsed = {row.message_id for row in evidence.parsed}
    if not evidence.dead_letters:
        yield "no file was unparsable, so the dead-letter queue saw no use"
    for id_, path, count, parses in evidence.dead_letters:
        letter = f"{path} ({id_})"
        if parses:
            yield f"{letter} is a dead letter, but it parses"
        if count != evidence.max_receive_count:
            yield f"{letter} is a dead letter after {count} receives, not after {evidence.max_receive_count}"
        if id_ in parsed:
            yield f"{letter} was processed and is a dead letter as well"
        if evidence.sent.get(id_) != path:
            yield f"{letter} is a dead letter, but was not sent as that"


def _after_the_kill(evidence: Evidence) -> Iterator[str]:
    if evidence.kill is None or not evidence.kill.held:
        yield "no worker was killed while it held messages"
        return
    killed, _, held = evidence.kill
    finished = _finished(evidence)
    # maxReceiveCount may have allowed no receive after the killed worker's.
    came_back = {
        receive.message_id
        for receive in find_returns(evidence.kill, evidence.receives)
        if receive.receive_count > 1
    }
    came_back |= {letter.message_id for letter in evidence.dead_letters}
    for id_ in held:
        if id_ not in came_back:
            yield f"{id_} was held by the killed {killed}, and no other worker received it again"
        if id_ not in finished:
            yield f"{id_} was held by the killed {killed}, and no other worker finished it"
    for row in evidence.parsed:
        if row.worker == killed and row.message_id in held:
            yield f"{row.message_id} was held by {killed} when it was killed, and yet finished by it"


def _finished(evidence: Evidence) -> set[str]:
    return {row.message_id for row in evidence.parsed} | {one.message_id for one in evidence.dead_letters}
