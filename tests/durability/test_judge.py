# SPDX-License-Identifier: Apache-2.0
"""The judge is tested too: it sees each kind of violation, and only real ones."""

import pytest

from tests.durability.judge import Judge

SECOND = 1_000_000_000


def verdict(*lines, drained=()):
    judge = Judge()
    for line in lines:
        judge.hear(line)
    return judge.verdict(set(drained)).violations


SENT = ("send-attempt p a", "send-ack p a")


def test_received_and_deleted_message_is_in_order():
    assert (
        verdict(
            *SENT,
            f"receive c a {1 * SECOND} {2 * SECOND} {10 * SECOND}",
            f"delete-attempt c a {3 * SECOND}",
            f"delete-ack c a {4 * SECOND}",
        )
        == {}
    )


def test_message_left_to_the_end_is_in_order():
    assert verdict(*SENT, drained={"a"}) == {}


def test_acknowledged_message_that_never_comes_is_lost():
    assert verdict(*SENT) == {"lost": ["a"]}


def test_message_received_but_missing_in_the_end_is_lost():
    assert verdict(*SENT, f"receive c a 0 1 {SECOND}") == {"lost": ["a"]}


def test_message_of_an_unacknowledged_send_may_exist_or_not():
    assert verdict("send-attempt p a") == {}
    assert verdict("send-attempt p a", f"receive c a 0 1 {SECOND}", drained={"a"}) == {}


def test_message_of_an_unacknowledged_delete_may_exist_or_not():
    events = (*SENT, f"receive c a 0 1 {SECOND}", "delete-attempt c a 2")
    assert verdict(*events) == {}
    assert verdict(*events, drained={"a"}) == {}


def test_message_received_after_its_acknowledged_delete_is_resurrected():
    events = (*SENT, f"receive c a 0 1 {SECOND}", "delete-attempt c a 2", "delete-ack c a 3")
    assert verdict(*events, f"receive d a 4 5 {SECOND}") == {"resurrected": ["a"]}


def test_receive_called_before_the_acknowledgement_is_in_order():
    events = (*SENT, f"receive c a 0 1 {SECOND}", "delete-attempt c a 2", "delete-ack c a 9")
    assert verdict(*events, f"receive d a 4 10 {SECOND}") == {}


@pytest.mark.parametrize("told_first", [0, 1], ids=["in order", "told the other way round"])
def test_message_received_by_two_consumers_at_once_is_held_twice(told_first):
    receives = [f"receive c a 0 1 {10 * SECOND}", f"receive d a {5 * SECOND} {6 * SECOND} {10 * SECOND}"]
    if told_first:
        receives.reverse()
    assert verdict(*SENT, *receives, drained={"a"}) == {"held twice": ["a"]}


def test_receive_after_the_timeout_is_in_order():
    events = (f"receive c a 0 1 {10 * SECOND}", f"receive d a {9 * SECOND} {10 * SECOND} {10 * SECOND}")
    assert verdict(*SENT, *events, drained={"a"}) == {}


@pytest.mark.parametrize("settling", ["return-attempt", "delete-attempt"])
def test_receive_after_the_holder_gave_it_up_is_in_order(settling):
    events = (f"receive c a 0 1 {10 * SECOND}", f"{settling} c a 2", f"receive d a 3 4 {10 * SECOND}")
    assert verdict(*SENT, *events, drained={"a"}) == {}


def test_late_settling_by_others_does_not_end_the_holders_lease():
    """A late consumer deletes a message that another one holds by now."""
    events = (
        f"receive c a 0 1 {2 * SECOND}",
        f"receive d a {3 * SECOND} {4 * SECOND} {10 * SECOND}",
        f"delete-attempt c a {5 * SECOND}",
        f"receive e a {6 * SECOND} {7 * SECOND} {10 * SECOND}",
    )
    assert verdict(*SENT, *events) == {"held twice": ["a"]}


def test_message_that_was_never_sent_is_invented():
    assert verdict(f"receive c a 0 1 {SECOND}", drained={"a"}) == {"invented": ["a"]}


def test_line_that_is_not_an_event_is_an_error():
    with pytest.raises(ValueError, match="not an event"):
        verdict("confused p a")
