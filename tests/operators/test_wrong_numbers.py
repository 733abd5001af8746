# SPDX-License-Identifier: Apache-2.0
"""A number of the wrong kind is refused with its value, before SQLite sees it."""

import pytest

from sqsqlite.errors import BadDump, InvalidParameterValue

WRONG = [0, 2.5, 10**30, "5", None]


@pytest.mark.parametrize("number", WRONG)
@pytest.mark.parametrize("call", ["peek", "tail", "dead_letters"])
def test_a_number_of_messages_must_be_whole_and_in_its_range(queue, call, number):
    with pytest.raises(ValueError, match=r"max_messages=.*1 to [0-9,]+ are allowed"):
        getattr(queue, call)(number)


@pytest.mark.parametrize("seconds", [1.5, "900", None])
def test_seconds_of_a_key_must_be_whole(sqs, seconds):
    made = sqs.keys.add()
    with pytest.raises(InvalidParameterValue, match=f"Value {seconds} for parameter Grace"):
        sqs.keys.rotate(made.access_key_id, seconds)
    with pytest.raises(InvalidParameterValue, match=f"Value {seconds} for parameter DurationSeconds"):
        sqs.keys.session(made.access_key_id, seconds)
    assert len(sqs.keys.list()) == 1


@pytest.mark.parametrize("account_id", [123456789012, None])
def test_an_account_must_be_a_text(sqs, account_id):
    with pytest.raises(InvalidParameterValue, match=f"Value {account_id} for parameter AccountId"):
        sqs.keys.add(account_id)
    assert sqs.keys.list() == ()


@pytest.mark.parametrize("line", [1, None, ["kind"]])
def test_a_dump_has_lines_of_text_or_mappings(sqs, line):
    with pytest.raises(BadDump, match="line 1"):
        sqs.load([line])
