# SPDX-License-Identifier: Apache-2.0
"""The judge of FIFO storms is tested too: it sees each kind of violation, and only real ones."""

import pytest

from tests.durability.fifo_judge import FifoJudge

TIMEOUT = 10_000_000_000


def violations(*lines):
    judge = FifoJudge()
    for line in lines:
        judge.hear(line)
    return judge.verdict().violations


def sent(count, group="g"):
    """The first messages of a group, sent and acknowledged."""
    events = []
    for number in range(count):
        key = f"{group}:{number}"
        events += [f"send-attempt p {key}", f"send-ack p {key} {stored(key)}"]
    return events


def stored(key):
    group, _, number = key.partition(":")
    return f"id-{group}-{number}/{int(number) + 1:020}"


def receive(who, called, *keys, group="g"):
    """The event of a receive that takes one second."""
    found = [f"{group}:{key}={stored(f'{group}:{key}')}" for key in keys]
    return f"receive {who} {seconds(called)} {seconds(called + 1)} {TIMEOUT} {' '.join(found)}"


def deleted(who, at, *keys, group="g"):
    events = []
    for key in keys:
        events += [f"delete-attempt {who} {group}:{key} {seconds(at)}"]
        events += [f"delete-ack {who} {group}:{key} {seconds(at)}"]
    return events


def seconds(number):
    return int(number * 1_000_000_000)


def test_group_received_and_deleted_in_order_is_in_order():
    events = [
        *sent(3),
        receive("c", 1, 0, 1),
        *deleted("c", 3, 0, 1),
        receive("d", 4, 2),
        *deleted("d", 6, 2),
    ]
    assert violations(*events) == {}


def test_each_group_is_judged_by_itself():
    events = [*sent(1, "g"), *sent(1, "h"), receive("c", 1, 0, group="h"), receive("d", 1, 0)]
    events += [*deleted("c", 3, 0, group="h"), *deleted("d", 3, 0)]
    assert violations(*events) == {}


# Order


def test_message_before_an_earlier_one_was_deleted_is_out_of_order():
    events = [*sent(2), receive("c", 1, 1), *deleted("c", 3, 1), receive("c", 4, 0), *deleted("c", 6, 0)]
    assert violations(*events) == {"out of order": ["g:1"]}


def test_later_message_after_the_earlier_ones_timeout_is_out_of_order():
    """Redelivery begins with the lowest message that is not deleted."""
    events = [*sent(2), receive("c", 1, 0), receive("d", 12, 1), *deleted("d", 14, 1)]
    events += [receive("d", 15, 0), *deleted("d", 17, 0)]
    assert violations(*events) == {"out of order": ["g:1"]}


def test_gap_in_one_receive_is_out_of_order():
    events = [
        *sent(3),
        receive("c", 1, 0, 2),
        *deleted("c", 3, 0, 2),
        receive("c", 4, 1),
        *deleted("c", 6, 1),
    ]
    assert violations(*events) == {"out of order": ["g:2"]}


def test_one_receive_in_reverse_order_is_out_of_order():
    assert violations(*sent(2), receive("c", 1, 1, 0), *deleted("c", 3, 0, 1)) == {"out of order": ["g:1"]}


def test_message_behind_one_whose_send_was_never_acknowledged_is_out_of_order():
    """The producer sends a number only when all before it are stored."""
    events = ["send-attempt p g:0", "send-attempt p g:1", f"send-ack p g:1 {stored('g:1')}"]
    assert violations(*events, receive("c", 1, 1), *deleted("c", 3, 1)) == {"out of order": ["g:1"]}


def test_message_behind_a_refused_delete_is_out_of_order():
    events = [*sent(2), receive("c", 1, 0), "delete-attempt c g:0 2000000000", "delete-refused c g:0"]
    events += [receive("d", 12, 1), *deleted("d", 14, 1), receive("d", 15, 0), *deleted("d", 17, 0)]
    assert violations(*events) == {"out of order": ["g:1"]}


def test_message_behind_a_delete_that_was_undone_is_out_of_order():
    """The process that attempted it died. The message came again, which shows that it was not deleted."""
    events = [*sent(2), receive("c", 1, 0), "delete-attempt c g:0 2000000000", receive("d", 12, 0)]
    events += [receive("e", 24, 1), *deleted("e", 26, 1), receive("e", 27, 0), *deleted("e", 29, 0)]
    assert violations(*events) == {"out of order": ["g:1"]}


def test_message_behind_a_delete_that_may_have_happened_is_in_order():
    events = [*sent(2), receive("c", 1, 0), "delete-attempt c g:0 2000000000"]
    assert violations(*events, receive("d", 2, 1), *deleted("d", 4, 1)) == {}


def test_receive_reported_late_is_in_order():
    """It was called first and reported last: others have received again and deleted meanwhile."""
    events = [*sent(2), receive("d", 12, 0, 1), *deleted("d", 14, 0, 1), receive("c", 1, 0, 1)]
    assert violations(*events) == {}


# Leases


@pytest.mark.parametrize("second", [0, 1], ids=["the same message", "the next message"])
def test_group_received_by_two_consumers_at_once_is_held_twice(second):
    events = [*sent(2), receive("c", 1, 0, 1), receive("d", 5, *range(second + 1)), *deleted("d", 12, 0, 1)]
    assert violations(*events) == {"held twice": ["g"]}


def test_group_received_again_by_its_own_holder_is_held_twice():
    events = [*sent(2), receive("c", 1, 0), receive("c", 5, 0, 1), *deleted("c", 7, 0, 1)]
    assert violations(*events) == {"held twice": ["g"]}


def test_rest_of_a_group_while_its_first_messages_are_deleted_is_held_twice():
    """A part of what was received together is still in flight, so the group must wait for it."""
    events = [*sent(3), receive("c", 1, 0, 1), *deleted("c", 3, 0), receive("d", 5, 1, 2)]
    assert violations(*events, *deleted("d", 12, 1, 2)) == {"held twice": ["g"]}


def test_group_after_the_timeout_is_not_held_twice():
    events = [*sent(2), receive("c", 1, 0, 1), receive("d", 10.5, 0, 1), *deleted("d", 12, 0, 1)]
    assert violations(*events) == {}


def test_group_after_all_was_given_back_is_not_held_twice():
    returns = [f"return-attempt c g:{key} {seconds(3)}" for key in (1, 0)]
    assert (
        violations(*sent(2), receive("c", 1, 0, 1), *returns, receive("d", 3, 0, 1), *deleted("d", 5, 0, 1))
        == {}
    )


# Deletes and sends


def test_message_received_after_its_acknowledged_delete_is_resurrected():
    events = [*sent(1), receive("c", 1, 0), *deleted("c", 3, 0), receive("d", 4, 0)]
    assert violations(*events) == {"resurrected": ["g:0"]}


def test_message_deleted_while_another_consumer_holds_it_is_deleted_by_others():
    """Its handle has expired."""
    events = [*sent(1), receive("c", 1, 0), receive("d", 12, 0), *deleted("c", 14, 0)]
    assert violations(*events) == {"deleted by others": ["g:0"]}


def test_delete_answered_after_the_others_timeout_is_in_order():
    events = [*sent(1), receive("c", 1, 0), receive("d", 12, 0), f"delete-attempt c g:0 {seconds(14)}"]
    assert violations(*events, f"delete-ack c g:0 {seconds(22)}") == {}


def test_acknowledged_message_that_was_never_received_is_lost():
    assert violations(*sent(1)) == {"lost": ["g:0"]}


def test_message_received_once_and_not_deleted_is_lost():
    assert violations(*sent(1), receive("c", 1, 0)) == {"lost": ["g:0"]}


def test_message_not_received_again_after_a_refused_delete_is_lost():
    events = [*sent(1), receive("c", 1, 0), "delete-attempt c g:0 2000000000", "delete-refused c g:0"]
    assert violations(*events) == {"lost": ["g:0"]}


def test_message_of_an_unacknowledged_send_may_exist_or_not():
    assert violations("send-attempt p g:0") == {}
    assert violations("send-attempt p g:0", receive("c", 1, 0), *deleted("c", 3, 0)) == {}


def test_message_that_was_never_sent_is_invented():
    assert violations(receive("c", 1, 0), *deleted("c", 3, 0)) == {"invented": ["g:0"]}


def test_repeated_send_that_is_answered_with_another_message_is_stored_twice():
    events = [*sent(1), "send-attempt q g:0", f"send-ack q g:0 another/{2:020}"]
    assert violations(*events, receive("c", 1, 0), *deleted("c", 3, 0)) == {"stored twice": ["g:0"]}


def test_copy_received_under_another_id_is_stored_twice():
    """The first send was not acknowledged: only the receives show it."""
    copy = f"receive c {seconds(12)} {seconds(13)} {TIMEOUT} g:0=another/{2:020}"
    events = ["send-attempt p g:0", receive("c", 1, 0), copy, *deleted("c", 14, 0)]
    assert violations(*events) == {"stored twice": ["g:0"]}


def test_sequence_number_that_does_not_grow_is_numbered_wrongly():
    events = [
        "send-attempt p g:0",
        f"send-ack p g:0 a/{7:020}",
        "send-attempt p g:1",
        f"send-ack p g:1 b/{7:020}",
    ]
    both = f"receive c {seconds(1)} {seconds(2)} {TIMEOUT} g:0=a/{7:020} g:1=b/{7:020}"
    assert violations(*events, both, *deleted("c", 3, 0, 1)) == {"numbered wrongly": ["g:1"]}


def test_judge_counts_the_deaths():
    judge = FifoJudge()
    judge.hear("deaths s 12")
    assert judge.deaths == 12


def test_line_that_is_not_an_event_is_an_error():
    with pytest.raises(ValueError, match="not an event"):
        violations("confused p g:0")
