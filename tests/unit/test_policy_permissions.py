# SPDX-License-Identifier: Apache-2.0
"""Permissions as statements of a policy: added at the end, removed by their label."""

import json

import pytest

from sqsqlite.contract.limits import SQS
from sqsqlite.contract.policy import check_policy
from sqsqlite.contract.policy_permissions import (
    GRANTABLE,
    OWNER_ONLY,
    check_permission,
    with_permission,
    without_permission,
)
from sqsqlite.contract.shapes import ACTIONS
from sqsqlite.errors import InvalidAttributeValue, InvalidParameterValue, OverLimit

ARN = "arn:aws:sqs:us-east-1:000000000000:q"
JANE, JOE = "111122223333", "444455556666"


def added(text, label="jane", accounts=(JANE,), actions=("SendMessage",)):
    return with_permission(text, label, accounts, actions, ARN, SQS)


def test_every_action_is_grantable_the_owners_own_or_a_batch():
    """A permission of an action includes its batch."""
    batches = {f"{action}Batch" for action in GRANTABLE} & ACTIONS.keys()
    assert GRANTABLE - {"*"} | OWNER_ONLY | batches == ACTIONS.keys()
    assert not GRANTABLE & OWNER_ONLY


@pytest.mark.rule("permission.1", "permission.3")
def test_the_first_permission_makes_the_policy():
    assert json.loads(added(None)) == {
        "Version": "2008-10-17",
        "Id": f"{ARN}/SQSDefaultPolicy",
        "Statement": [
            {
                "Sid": "jane",
                "Effect": "Allow",
                "Principal": {"AWS": f"arn:aws:iam::{JANE}:root"},
                "Action": "SQS:SendMessage",
                "Resource": ARN,
            }
        ],
    }


def test_several_values_are_a_list_in_the_order_given():
    [statement] = json.loads(added(None, accounts=(JOE, JANE), actions=("SendMessage", "*")))["Statement"]
    assert statement["Principal"] == {"AWS": [f"arn:aws:iam::{JOE}:root", f"arn:aws:iam::{JANE}:root"]}
    assert statement["Action"] == ["SQS:SendMessage", "SQS:*"]


@pytest.mark.rule("permission.19")
def test_other_parts_of_the_policy_stay():
    own = {
        "Version": "2012-10-17",
        "Id": "mine",
        "Statement": {
            "Effect": "Deny",
            "NotPrincipal": {"Service": "sns.amazonaws.com"},
            "NotAction": ["sqs:Get*"],
            "Condition": {"Bool": {"aws:SecureTransport": False}, "NumericEquals": {"aws:x": [1, 2.5]}},
        },
    }
    longer = json.loads(added(json.dumps(own)))
    assert [longer["Version"], longer["Id"], longer["Statement"][0]] == list(own.values())
    assert [statement.get("Sid") for statement in longer["Statement"]] == [None, "jane"]
    assert json.loads(without_permission(json.dumps(longer), "jane")) == own | {
        "Statement": [own["Statement"]]
    }


@pytest.mark.rule("permission.6")
def test_removing_the_last_statement_removes_the_policy():
    two = added(added(None), label="joe")
    one = without_permission(two, "jane")
    assert [statement["Sid"] for statement in json.loads(one)["Statement"]] == ["joe"]
    assert without_permission(one, "joe") is None


@pytest.mark.rule("permission.8")
@pytest.mark.parametrize("text", [None, added(None), '{"Statement":[]}'])
def test_a_missing_label_is_refused(text):
    with pytest.raises(InvalidParameterValue) as refused:
        without_permission(text, "joe")
    assert refused.value.message == "Value joe for parameter Label is invalid. Reason: can't find label."


@pytest.mark.rule("permission.7")
def test_an_existing_label_is_refused():
    with pytest.raises(InvalidParameterValue) as refused:
        added(added(None), accounts=(JOE,))
    assert refused.value.message == "Value jane for parameter Label is invalid. Reason: Already exists."


def test_an_unreadable_policy_is_left_unchanged():
    """Another program may have written the document into the file."""
    for change in (added, lambda text: without_permission(text, "jane")):
        with pytest.raises(InvalidAttributeValue, match="parameter Policy"):
            change('{"Statement":[{"Sid":"jane"}]}')


def with_statements(count):
    text = None
    for number in range(count):
        text = added(text, label=str(number))
    return text


@pytest.mark.rule("permission.16")
def test_a_policy_has_at_most_20_permissions():
    with pytest.raises(OverLimit) as refused:
        with_statements(21)
    assert refused.value.message == "21 Statements were found, maximum allowed is 20."
    check_policy(with_statements(20), SQS)


@pytest.mark.rule("permission.17")
def test_a_policy_has_at_most_50_principals():
    accounts = [f"{number:012}" for number in range(50)]
    full = added(None, accounts=accounts)
    with pytest.raises(OverLimit) as refused:
        added(full, label="more")
    assert refused.value.message == "51 Principals were found, maximum allowed is 50."


def test_a_policy_grows_to_8192_bytes():
    filler = {"Id": "", "Statement": []}
    room = 8_192 - len(added(json.dumps(filler)))
    assert len(added(json.dumps(filler | {"Id": "x" * room}))) == 8_192
    with pytest.raises(OverLimit) as refused:
        added(json.dumps(filler | {"Id": "x" * (room + 1)}))
    assert refused.value.message == "8193 bytes were found in the policy, maximum allowed is 8192."


@pytest.mark.rule("permission.14")
@pytest.mark.parametrize(
    ("accounts", "shown"),
    [
        ([], "[]"),
        (["1"], "[1]"),
        ([JANE, "x"], f"[{JANE}, x]"),
        (["*"], "[*]"),
        ([f"arn:aws:iam::{JANE}:root"], f"[arn:aws:iam::{JANE}:root]"),
        (["\u0661" * 12], "[" + "\u0661" * 12 + "]"),  # digits, but not 0 to 9
    ],
)
def test_permissions_are_for_accounts_alone(accounts, shown):
    with pytest.raises(InvalidParameterValue) as refused:
        check_permission(accounts, ["SendMessage"], SQS)
    assert refused.value.message == (
        f"Value {shown} for parameter PrincipalId is invalid. Reason: Unable to verify."
    )


@pytest.mark.parametrize("action", sorted(GRANTABLE))
def test_the_grantable_actions_can_be_permitted(action):
    check_permission([JANE], [action] * 7, SQS)


@pytest.mark.rule("permission.11")
@pytest.mark.parametrize("action", sorted(OWNER_ONLY))
def test_actions_of_the_owner_cannot_be_permitted(action):
    with pytest.raises(InvalidParameterValue) as refused:
        check_permission([JANE], ["SendMessage", action], SQS)
    assert refused.value.message == (
        f"Value SQS:{action} for parameter ActionName is invalid. "
        "Reason: Only the queue owner is allowed to invoke this action."
    )


@pytest.mark.rule("permission.12")
@pytest.mark.parametrize(
    "action", ["", "Nothing", "sendmessage", "SQS:SendMessage", "Send*", "SendMessageBatch"]
)
def test_other_actions_are_unknown(action):
    with pytest.raises(InvalidParameterValue) as refused:
        check_permission([JANE], [action], SQS)
    assert refused.value.message == (
        f"Value SQS:{action} for parameter ActionName is invalid. "
        "Reason: Please refer to the appropriate WSDL for a list of valid actions. "
    )
