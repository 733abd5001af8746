"""Whether the demo's sum adds up, told by what was sent, what is in the tables, and what the workers said."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqsqlite.demo.journal import Kill, Receive
from sqsqlite.demo.ledger import Parsed


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message found in the dead-letter queue. `parses`: whether its file does, tried again by the parent."""

    message_id: str
    path: str
    receive_count: int
    parses: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a verdict is made of.

    Attributes:
        sent: message id -> path, as the parent sent them.
        parsed: the rows of the application's table.
        acknowledged: ids whose commit a worker reported, as often as it did.
        dead_letters: what the dead-letter queue holds.
        max_receive_count: of the queue's RedrivePolicy.
        left: messages still in the queue, in whatever state.
        kill: the worker killed, and what it held; None if none was.
        returns: the receives of what it held, by others, after the kill.
        integrity: SQLite's own verdict on the file, "ok" or what is wrong.
    """

    sent: Mapping[str, str]
    parsed: Sequence[Parsed]
    acknowledged: Sequence[str]
    dead_letters: Sequence[DeadLetter]
    max_receive_count: int
    left: int
    kill: Kill | None
    returns: Sequence[Receive]
    integrity: str


def find_faults(evidence: Evidence) -> list[str]:
    """What does not add up, a sentence each; empty when everything does."""
    return [
        *_in_the_sum(evidence),
        *_in_the_results(evidence),
        *_in_the_dead_letters(evidence),
        *_after_the_kill(evidence),
        *([] if evidence.integrity == "ok" else [f"integrity_check says: {evidence.integrity}"]),
    ]


def _in_the_sum(evidence: Evidence) -> list[str]:
    sent, parsed, dead = len(evidence.sent), len(evidence.parsed), len(evidence.dead_letters)
    faults = []
    if sent != parsed + dead:
        faults.append(f"{sent} sent, but {parsed} processed and {dead} dead letters make {parsed + dead}")
    if evidence.left:
        faults.append(f"{evidence.left} messages are still in the queue")
    ended = {row.message_id for row in evidence.parsed} | {one.message_id for one in evidence.dead_letters}
    faults += [f"{path} ({id_}) was lost" for id_, path in evidence.sent.items() if id_ not in ended]
    return faults


def _in_the_results(evidence: Evidence) -> list[str]:
    rows = Counter(row.message_id for row in evidence.parsed)
    faults = [f"{id_} was processed {count} times" for id_, count in rows.items() if count > 1]
    faults += [
        f"{row.message_id} ({row.path}) was processed, but not sent as that"
        for row in evidence.parsed
        if evidence.sent.get(row.message_id) != row.path
    ]
    faults += [
        f"{id_}: its commit was reported, but its row is gone"
        for id_ in set(evidence.acknowledged) - rows.keys()
    ]
    return faults


def _in_the_dead_letters(evidence: Evidence) -> list[str]:
    parsed = {row.message_id for row in evidence.parsed}
    faults = [] if evidence.dead_letters else ["no file was unparsable, so the dead-letter queue saw no use"]
    for one in evidence.dead_letters:
        if one.parses:
            faults.append(f"{one.path} ({one.message_id}) is a dead letter, but it parses")
        if one.receive_count != evidence.max_receive_count:
            faults.append(
                f"{one.path} ({one.message_id}) is a dead letter after {one.receive_count} receives, "
                f"not after {evidence.max_receive_count}"
            )
        if one.message_id in parsed:
            faults.append(f"{one.path} ({one.message_id}) was processed and is a dead letter as well")
        if evidence.sent.get(one.message_id) != one.path:
            faults.append(f"{one.path} ({one.message_id}) is a dead letter, but was not sent as that")
    return faults


def _after_the_kill(evidence: Evidence) -> list[str]:
    kill = evidence.kill
    if kill is None or not kill.held:
        return ["no worker was killed while it held messages"]
    dead = {one.message_id for one in evidence.dead_letters}
    finishers = {(row.message_id, row.worker) for row in evidence.parsed}
    finished = {row.message_id for row in evidence.parsed} | dead
    seen_again = {receive.message_id for receive in evidence.returns if receive.receive_count > 1}
    faults = []
    for id_ in kill.held:
        if id_ not in seen_again | dead:  # its last receive may have been the killed worker's
            faults.append(f"{id_} was held by the killed {kill.worker}, and no other received it again")
        if id_ not in finished:
            faults.append(f"{id_} was held by the killed {kill.worker}, and nobody finished it")
        if (id_, kill.worker) in finishers:
            faults.append(f"{id_} was held by {kill.worker} when it was killed, and yet finished by it")
    return faults
