# SPDX-License-Identifier: Apache-2.0
"""The audit names each fault of a run. Each test spoils one thing in a sound run."""

from dataclasses import replace

import pytest

from sqsqlite.demo.audit import DeadMessage, Evidence, Kill, find_faults
from sqsqlite.demo.ledger import Parsed, Receive

SENT = {"a": "abc.py", "b": "ast.py", "c": "cgi.py", "d": "bad.py"}


def parsed(message_id: str, worker: str = "worker-1", receive_count: int = 1) -> Parsed:
    return Parsed(message_id, SENT.get(message_id, "nowhere.py"), worker, receive_count, 1_005, 3, 1, 90)


ROWS = (parsed("a"), parsed("b", "worker-2", 2), parsed("c", "worker-2", 2))
DEAD = DeadMessage("d", "bad.py", 3, parses=False)
RETURNS = (Receive("b", "worker-2", 2, 5_000), Receive("c", "worker-2", 2, 5_000))

SOUND = Evidence(
    sent=SENT,
    receives=RETURNS,
    parsed=ROWS,
    acknowledged=["a", "b", "c"],
    late_count=0,
    dead_letters=[DEAD],
    max_receive_count=3,
    left=0,
    kill=Kill("worker-1", 2_000, ("b", "c")),
    integrity="ok",
)


def test_a_sound_run_has_no_faults():
    assert find_faults(SOUND) == []


def test_a_row_that_the_killed_worker_did_not_report_is_not_a_fault():
    """The commit came first: the worker may have died before it printed its line."""
    assert find_faults(replace(SOUND, acknowledged=["b", "c"])) == []


def test_a_dead_letter_of_the_killed_worker_is_not_a_fault():
    """If maxReceiveCount allows no receive after the killed worker's, no other worker receives the message."""
    assert find_faults(replace(SOUND, kill=Kill("worker-1", 2_000, ("b", "c", "d")))) == []


@pytest.mark.parametrize(
    ("spoilt", "faults"),
    [
        (
            {"parsed": ROWS[1:], "acknowledged": ["b", "c"]},
            ["4 sent, but 2 processed and 1 dead letters make 3", "abc.py (a) was lost"],
        ),
        (
            {"parsed": ROWS[1:]},
            [
                "4 sent, but 2 processed and 1 dead letters make 3",
                "abc.py (a) was lost",
                "a: its commit was reported, but its row is gone",
            ],
        ),
        (
            {"parsed": (*ROWS, parsed("a", "worker-2", 2))},
            ["4 sent, but 4 processed and 1 dead letters make 5", "a was processed 2 times"],
        ),
        (
            {"parsed": (*ROWS[1:], parsed("b")), "acknowledged": ["b", "c"]},
            [
                "abc.py (a) was lost",
                "b was processed 2 times",
                "b was held by worker-1 when it was killed, and yet finished by it",
            ],
        ),
        (
            {"parsed": (*ROWS, parsed("z"))},
            [
                "4 sent, but 4 processed and 1 dead letters make 5",
                "z (nowhere.py) was processed, but not sent as that",
            ],
        ),
        (
            {"sent": SENT | {"a": "asyncio.py"}},
            ["a (abc.py) was processed, but not sent as that"],
        ),
        ({"left": 1}, ["1 messages are still in the queue"]),
        (
            {"dead_letters": [DEAD._replace(parses=True)]},
            ["bad.py (d) is a dead letter, but it parses"],
        ),
        (
            {"dead_letters": [DEAD._replace(receive_count=2)]},
            ["bad.py (d) is a dead letter after 2 receives, not after 3"],
        ),
        (
            {"dead_letters": [DEAD, DeadMessage("a", "abc.py", 3, parses=False)]},
            [
                "4 sent, but 3 processed and 2 dead letters make 5",
                "abc.py (a) was processed and is a dead letter as well",
            ],
        ),
        (
            {"dead_letters": [DEAD, DeadMessage("y", "yes.py", 3, parses=False)]},
            [
                "4 sent, but 3 processed and 2 dead letters make 5",
                "yes.py (y) is a dead letter, but was not sent as that",
            ],
        ),
        (
            {"dead_letters": [], "sent": {"a": "abc.py", "b": "ast.py", "c": "cgi.py"}},
            ["no file was unparsable, so the dead-letter queue saw no use"],
        ),
        ({"kill": None}, ["no worker was killed while it held messages"]),
        ({"kill": Kill("worker-1", 2_000, ())}, ["no worker was killed while it held messages"]),
        (
            {"receives": RETURNS[:1]},
            ["c was held by the killed worker-1, and no other worker received it again"],
        ),
        (
            {"receives": (RETURNS[0], RETURNS[1]._replace(receive_count=1))},
            ["c was held by the killed worker-1, and no other worker received it again"],
        ),
        (
            {"parsed": ROWS[:2], "acknowledged": ["a", "b"]},
            [
                "4 sent, but 2 processed and 1 dead letters make 3",
                "cgi.py (c) was lost",
                "c was held by the killed worker-1, and no other worker finished it",
            ],
        ),
        (
            {"integrity": "row 7 missing from index sqs_ix_leases_age"},
            ["integrity_check says: row 7 missing from index sqs_ix_leases_age"],
        ),
    ],
    ids=[
        "a row missing",
        "a reported row missing",
        "a message processed twice",
        "one lost and one processed twice",
        "a stranger's row",
        "another path than the one sent",
        "a message left",
        "a dead letter that parses",
        "a dead letter too early",
        "a dead letter that was processed",
        "a dead letter that was not sent",
        "no dead letter",
        "no kill",
        "killed with nothing in hand",
        "a held message not received again",
        "a held message received as if for the first time",
        "a held message not finished",
        "a damaged file",
    ],
)
def test_each_fault_has_its_sentence(spoilt, faults):
    assert sorted(find_faults(replace(SOUND, **spoilt))) == sorted(faults)
