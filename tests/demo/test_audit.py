"""A sum that does not add up is told, whatever is wrong with it: each test spoils a run in which all was well."""

from dataclasses import replace

import pytest

from sqsqlite.demo.audit import DeadLetter, Evidence, find_faults
from sqsqlite.demo.journal import Kill, Receive
from sqsqlite.demo.ledger import Parsed

SENT = {"a": "abc.py", "b": "ast.py", "c": "cgi.py", "d": "bad.py"}


def parsed(message_id: str, worker: str = "worker-1", receive_count: int = 1) -> Parsed:
    return Parsed(
        message_id, SENT.get(message_id, "nowhere.py"), 3, 1, 90, worker, receive_count, 1_000, 1_005
    )


ROWS = (parsed("a"), parsed("b", "worker-2", 2), parsed("c", "worker-2", 2))
DEAD = DeadLetter("d", "bad.py", 3, parses=False)
RETURNS = (Receive("worker-2", "b", 2, 5_000), Receive("worker-2", "c", 2, 5_000))

SOUND = Evidence(
    sent=SENT,
    parsed=ROWS,
    acknowledged=["a", "b", "c"],
    dead_letters=[DEAD],
    max_receive_count=3,
    left=0,
    kill=Kill("worker-1", 2_000, ("b", "c")),
    returns=RETURNS,
    integrity="ok",
)


def test_a_sound_run_has_no_faults():
    assert find_faults(SOUND) == []


def test_a_row_whose_report_was_cut_off_by_the_kill_is_no_fault():
    """The commit came first: the pipe may have lost what the file has."""
    assert find_faults(replace(SOUND, acknowledged=["b", "c"])) == []


def test_a_dead_letter_of_the_killed_worker_is_no_fault():
    """Where the killed worker's receive was the last that maxReceiveCount allows, there is none by another."""
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
            {"dead_letters": [replace(DEAD, parses=True)]},
            ["bad.py (d) is a dead letter, but it parses"],
        ),
        (
            {"dead_letters": [replace(DEAD, receive_count=2)]},
            ["bad.py (d) is a dead letter after 2 receives, not after 3"],
        ),
        (
            {"dead_letters": [DEAD, DeadLetter("a", "abc.py", 3, parses=False)]},
            [
                "4 sent, but 3 processed and 2 dead letters make 5",
                "abc.py (a) was processed and is a dead letter as well",
            ],
        ),
        (
            {"dead_letters": [DEAD, DeadLetter("y", "yes.py", 3, parses=False)]},
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
            {"returns": RETURNS[:1]},
            ["c was held by the killed worker-1, and no other received it again"],
        ),
        (
            {"returns": (RETURNS[0], replace(RETURNS[1], receive_count=1))},
            ["c was held by the killed worker-1, and no other received it again"],
        ),
        (
            {"parsed": ROWS[:2], "acknowledged": ["a", "b"]},
            [
                "4 sent, but 2 processed and 1 dead letters make 3",
                "cgi.py (c) was lost",
                "c was held by the killed worker-1, and nobody finished it",
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
        "nobody killed",
        "killed with nothing in hand",
        "a held message not received again",
        "a held message received as if for the first time",
        "a held message that nobody finished",
        "a damaged file",
    ],
)
def test_each_fault_is_told(spoilt, faults):
    assert sorted(find_faults(replace(SOUND, **spoilt))) == sorted(faults)
