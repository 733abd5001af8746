# SPDX-License-Identifier: Apache-2.0
"""AddPermission and RemovePermission: their effect on the queue's Policy, and their errors."""

import json
import re

import pytest

from tests.behaviour.refusals import INVALID, MISSING, NO_SUCH_QUEUE, bad_value, refused

JANE, JOE = "111122223333", "444455556666"
OWNER_ONLY = "Only the queue owner is allowed to invoke this action."
UNKNOWN_ACTION = "Please refer to the appropriate WSDL for a list of valid actions. "


def add(queue, label="jane", accounts=(JANE,), actions=("SendMessage",)):
    return queue.client.add_permission(
        QueueUrl=queue.url, Label=label, AWSAccountIds=list(accounts), Actions=list(actions)
    )


def remove(queue, label="jane"):
    return queue.client.remove_permission(QueueUrl=queue.url, Label=label)


def policy(queue):
    return json.loads(queue.attributes("Policy")["Policy"])


def labels(queue):
    return [statement["Sid"] for statement in policy(queue)["Statement"]]


@pytest.mark.rule("permission.1", "permission.2", "permission.3")
def test_the_first_permission_writes_the_policy(queue):
    """In Amazon's spelling: no space, one value without a list, the action with SQS: before it."""
    assert add(queue).keys() == {"ResponseMetadata"}
    arn = "arn:aws:sqs:us-east-1:000000000000:q"
    assert queue.attributes("Policy", "DelaySeconds") == {
        "DelaySeconds": "0",
        "Policy": (
            f'{{"Version":"2008-10-17","Id":"{arn}/SQSDefaultPolicy","Statement":[{{"Sid":"jane","Effect":"Allow",'
            f'"Principal":{{"AWS":"arn:aws:iam::{JANE}:root"}},"Action":"SQS:SendMessage","Resource":"{arn}"}}]}}'
        ),
    }


@pytest.mark.rule("permission.2")
def test_several_accounts_and_actions_are_lists(queue):
    add(queue, accounts=[JOE, JANE], actions=["*", "ReceiveMessage"])
    [statement] = policy(queue)["Statement"]
    assert statement["Principal"]["AWS"] == [f"arn:aws:iam::{JOE}:root", f"arn:aws:iam::{JANE}:root"]
    assert statement["Action"] == ["SQS:*", "SQS:ReceiveMessage"]


@pytest.mark.rule("permission.4")
def test_later_permissions_come_after_the_earlier_ones(queue):
    for label in ("b", "a", "c"):
        add(queue, label)
    assert labels(queue) == ["b", "a", "c"]


@pytest.mark.rule("permission.4", "permission.5")
def test_a_permission_is_removed_by_its_label(queue):
    for label in ("a", "b", "c"):
        add(queue, label)
    assert remove(queue, "b").keys() == {"ResponseMetadata"}
    assert labels(queue) == ["a", "c"]
    add(queue, "b")
    assert labels(queue) == ["a", "c", "b"]


@pytest.mark.rule("permission.6")
def test_removing_the_last_permission_removes_the_policy(queue):
    add(queue)
    remove(queue)
    assert queue.attributes("Policy") == {}
    assert "Policy" not in queue.attributes("All")


@pytest.mark.rule("permission.4", "permission.19")
def test_a_permission_is_added_to_a_policy_that_was_set(queue):
    own = {
        "Version": "2012-10-17",
        "Id": "mine",
        "Statement": [
            {"Sid": "all", "Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": queue.arn}
        ],
    }
    queue.set(Policy=own)
    add(queue)
    assert (policy(queue)["Version"], policy(queue)["Id"], labels(queue)) == (
        "2012-10-17",
        "mine",
        ["all", "jane"],
    )
    remove(queue)
    assert policy(queue) == own
    remove(queue, "all")
    assert queue.attributes("Policy") == {}


def test_a_permission_outlives_the_client(open_sqs):
    sqs = open_sqs()
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    sqs.add_permission(QueueUrl=url, Label="jane", AWSAccountIds=[JANE], Actions=["*"])
    sqs.close()
    again = open_sqs().get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])
    assert '"Sid":"jane"' in again["Attributes"]["Policy"]


def test_permissions_added_at_the_same_time_are_all_kept(queue, background):
    names = [str(number) for number in range(20)]
    for added in [background(add, queue, name) for name in names]:
        added.result(20)
    assert sorted(labels(queue)) == sorted(names)


@pytest.mark.rule("permission.8")
def test_permissions_are_each_queues_own(make_queue):
    one, other = make_queue("one"), make_queue("other")
    add(one)
    assert other.attributes("Policy") == {}
    with refused(other.client, INVALID, bad_value("jane", "Label", "can't find label.")):
        remove(other)
    assert policy(one)["Statement"][0]["Resource"] == one.arn


@pytest.mark.rule("permission.18")
def test_a_permission_changes_nothing_else(queue, clock):
    queue.set(VisibilityTimeout=60, KmsMasterKeyId="alias/aws/sqs")
    queue.client.tag_queue(QueueUrl=queue.url, Tags={"team": "blue"})
    queue.send()
    before = queue.attributes("All")
    clock.advance(90)
    add(queue)
    modified = str(int(before["LastModifiedTimestamp"]) + 90)
    after = {**before, "LastModifiedTimestamp": modified, "Policy": queue.attributes("Policy")["Policy"]}
    assert queue.attributes("All") == after
    remove(queue)
    assert queue.attributes("All") == {**before, "LastModifiedTimestamp": modified}
    assert queue.client.list_queue_tags(QueueUrl=queue.url)["Tags"] == {"team": "blue"}


@pytest.mark.rule("permission.7")
def test_a_label_that_exists_is_refused(queue):
    add(queue)
    before = queue.attributes("Policy")
    with refused(queue.client, INVALID, bad_value("jane", "Label", "Already exists.")):
        add(queue, accounts=[JOE])
    assert queue.attributes("Policy") == before


@pytest.mark.rule("permission.8")
def test_a_missing_label_cannot_be_removed(queue):
    """With a policy or without one; labels differ by letter case."""
    with refused(queue.client, INVALID, bad_value("jane", "Label", "can't find label.")):
        remove(queue)
    add(queue)
    with refused(queue.client, INVALID, bad_value("Jane", "Label", "can't find label.")):
        remove(queue, "Jane")
    assert labels(queue) == ["jane"]


@pytest.mark.rule("permission.9")
@pytest.mark.parametrize("label", ["a b", "x" * 81, "ä", "a.b", "*"])
def test_a_label_is_1_to_80_letters_digits_hyphens_and_underscores(queue, label):
    with refused(
        queue.client, INVALID, re.compile(f"^Value {re.escape(label)} for parameter Label is invalid.")
    ):
        add(queue, label)
    assert queue.attributes("Policy") == {}
    add(queue, "x" * 78 + "-_")


@pytest.mark.rule("permission.10")
def test_an_empty_label_is_a_missing_parameter(queue):
    for call in (add, remove):
        with refused(queue.client, MISSING, "The request must contain the parameter Label."):
            call(queue, "")


@pytest.mark.rule("permission.11", "permission.12")
@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("AddPermission", OWNER_ONLY),
        ("SetQueueAttributes", OWNER_ONLY),
        ("TagQueue", OWNER_ONLY),
        ("StartMessageMoveTask", OWNER_ONLY),
        ("Nothing", UNKNOWN_ACTION),
        ("SQS:SendMessage", UNKNOWN_ACTION),
    ],
)
def test_not_every_action_can_be_permitted(queue, action, reason):
    with refused(queue.client, INVALID, bad_value(f"SQS:{action}", "ActionName", reason)):
        add(queue, actions=["SendMessage", action])
    assert queue.attributes("Policy") == {}


@pytest.mark.rule("permission.13")
def test_more_than_7_actions_are_over_the_limit(queue):
    seven = [
        "SendMessage",
        "ReceiveMessage",
        "DeleteMessage",
        "PurgeQueue",
        "GetQueueUrl",
        "GetQueueAttributes",
        "*",
    ]
    add(queue, actions=seven)
    with refused(queue.client, "OverLimit", "8 Actions were found, maximum allowed is 7."):
        add(queue, "more", actions=[*seven, "ChangeMessageVisibility"])
    assert labels(queue) == ["jane"]


@pytest.mark.rule("permission.14")
@pytest.mark.parametrize(
    ("accounts", "shown"), [([], "[]"), (["jane"], "[jane]"), ([JANE, "*"], f"[{JANE}, *]")]
)
def test_a_permission_is_for_accounts(queue, accounts, shown):
    with refused(queue.client, INVALID, bad_value(shown, "PrincipalId", "Unable to verify.")):
        add(queue, accounts=accounts)


@pytest.mark.rule("permission.15")
def test_a_permission_without_actions_is_a_missing_parameter(queue):
    with refused(queue.client, MISSING, "The request must contain the parameter Actions."):
        add(queue, actions=[])


@pytest.mark.rule("permission.16")
def test_a_policy_has_at_most_20_permissions(queue):
    for number in range(20):
        add(queue, str(number))
    with refused(queue.client, "OverLimit", "21 Statements were found, maximum allowed is 20."):
        add(queue)
    remove(queue, "0")
    add(queue)
    assert len(labels(queue)) == 20


@pytest.mark.rule("permission.17")
def test_a_policy_has_at_most_50_principals(queue):
    add(queue, accounts=[f"{number:012}" for number in range(50)])
    with refused(queue.client, "OverLimit", "51 Principals were found, maximum allowed is 50."):
        add(queue, "more")


def test_a_policy_grows_to_8192_bytes(queue):
    queue.set(Policy={"Id": "x" * 8100, "Statement": []})
    with refused(queue.client, "OverLimit", re.compile(r"^\d{4} bytes were found in the policy")):
        add(queue)
    assert len(queue.attributes("Policy")["Policy"]) < 8192


def test_a_missing_queue_is_reported_before_any_other_error(sqs):
    for label, actions in (("jane", ["*"]), ("a b", ["Nothing"])):
        with refused(sqs, "QueueDoesNotExist", NO_SUCH_QUEUE):
            sqs.add_permission(QueueUrl="nobody", Label=label, AWSAccountIds=[], Actions=actions)
    with refused(sqs, "QueueDoesNotExist", NO_SUCH_QUEUE):
        sqs.remove_permission(QueueUrl="nobody", Label="")
