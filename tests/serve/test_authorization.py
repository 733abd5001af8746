# SPDX-License-Identifier: Apache-2.0
"""Accounts of one file have no access to each other, except by the policies of their queues."""

import base64
import json
import sys
import threading
import urllib.request
from datetime import UTC, datetime

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from sqsqlite.access.access import Access
from sqsqlite.access.authorization import authorize
from sqsqlite.access.exchange import Identity
from sqsqlite.access.keys import add_key, make_session, remove_key
from sqsqlite.access.rules import Rules
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract.policy import read_policy
from sqsqlite.contract.policy_permissions import GRANTABLE, OWNER_ONLY
from sqsqlite.contract.requests import SendMessage
from sqsqlite.contract.shapes import ACTIONS
from tests.serve.exchanges import exchange
from tests.serve.raw import ask, json_of
from tests.serve.serving import client_of, new_client, serving

OWNER, GUEST, STRANGER = "111111111111", "222222222222", "333333333333"


@pytest.fixture
def url(store):
    with serving(store, Access(store, look_seconds=0)) as found:
        yield found


@pytest.fixture
def owner(store, url):
    return new_client(store, url, OWNER)


@pytest.fixture
def guest(store, url):
    return new_client(store, url, GUEST)


@pytest.fixture
def queue(owner):
    """The URL of the owner's queue, with a few messages. Another queue sends its dead letters there."""
    queue_url = owner.create_queue(QueueName="orders")["QueueUrl"]
    policy = {"deadLetterTargetArn": arn("orders"), "maxReceiveCount": 3}
    owner.create_queue(QueueName="source", Attributes={"RedrivePolicy": json.dumps(policy)})
    for _ in range(5):
        owner.send_message(QueueUrl=queue_url, MessageBody="of the owner")
    return queue_url


def arn(name, account_id=OWNER):
    return f"arn:aws:sqs:us-east-1:{account_id}:{name}"


def denied(call, **parameters):
    """The message with which a call is denied."""
    with pytest.raises(ClientError) as refused:
        call(**parameters)
    found = refused.value.response
    assert found["Error"]["Code"] == "AccessDenied"
    assert found["ResponseMetadata"]["HTTPStatusCode"] == 403
    return found["Error"]["Message"]


def handle_of(owner, queue):
    return owner.receive_message(QueueUrl=queue)["Messages"][0]["ReceiptHandle"]


# Each grantable action as a guest calls it, with the guest's client, the owner's client and the queue's URL.
CALLS = {
    "SendMessage": lambda guest, owner, url: guest.send_message(QueueUrl=url, MessageBody="hi"),
    "SendMessageBatch": lambda guest, owner, url: guest.send_message_batch(
        QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "hi"}]
    ),
    "ReceiveMessage": lambda guest, owner, url: guest.receive_message(QueueUrl=url),
    "DeleteMessage": lambda guest, owner, url: guest.delete_message(
        QueueUrl=url, ReceiptHandle=handle_of(owner, url)
    ),
    "DeleteMessageBatch": lambda guest, owner, url: guest.delete_message_batch(
        QueueUrl=url, Entries=[{"Id": "1", "ReceiptHandle": handle_of(owner, url)}]
    ),
    "ChangeMessageVisibility": lambda guest, owner, url: guest.change_message_visibility(
        QueueUrl=url, ReceiptHandle=handle_of(owner, url), VisibilityTimeout=60
    ),
    "ChangeMessageVisibilityBatch": lambda guest, owner, url: guest.change_message_visibility_batch(
        QueueUrl=url, Entries=[{"Id": "1", "ReceiptHandle": handle_of(owner, url), "VisibilityTimeout": 60}]
    ),
    "GetQueueAttributes": lambda guest, owner, url: guest.get_queue_attributes(
        QueueUrl=url, AttributeNames=["All"]
    ),
    "GetQueueUrl": lambda guest, owner, url: guest.get_queue_url(
        QueueName="orders", QueueOwnerAWSAccountId=OWNER
    ),
    "ListDeadLetterSourceQueues": lambda guest, owner, url: guest.list_dead_letter_source_queues(
        QueueUrl=url
    ),
    "PurgeQueue": lambda guest, owner, url: guest.purge_queue(QueueUrl=url),
}
OWNERS_CALLS = {
    "AddPermission": lambda guest, url: guest.add_permission(
        QueueUrl=url, Label="x", AWSAccountIds=[GUEST], Actions=["*"]
    ),
    "RemovePermission": lambda guest, url: guest.remove_permission(QueueUrl=url, Label="everything"),
    "DeleteQueue": lambda guest, url: guest.delete_queue(QueueUrl=url),
    "SetQueueAttributes": lambda guest, url: guest.set_queue_attributes(
        QueueUrl=url, Attributes={"DelaySeconds": "1"}
    ),
    "TagQueue": lambda guest, url: guest.tag_queue(QueueUrl=url, Tags={"a": "b"}),
    "UntagQueue": lambda guest, url: guest.untag_queue(QueueUrl=url, TagKeys=["a"]),
    "ListQueueTags": lambda guest, url: guest.list_queue_tags(QueueUrl=url),
    "StartMessageMoveTask": lambda guest, url: guest.start_message_move_task(SourceArn=arn("orders")),
    "ListMessageMoveTasks": lambda guest, url: guest.list_message_move_tasks(SourceArn=arn("orders")),
}
# Actions on an account, not on a queue; and the action that needs a task.
APART = {"CreateQueue", "ListQueues", "CancelMessageMoveTask"}


def test_each_action_has_a_case_in_this_module():
    assert {action.removesuffix("Batch") for action in CALLS} | {"*"} == GRANTABLE
    assert OWNERS_CALLS.keys() | APART == OWNER_ONLY
    assert CALLS.keys() | OWNERS_CALLS.keys() | APART == ACTIONS.keys()


@pytest.mark.parametrize("action", CALLS)
def test_permission_grants_its_action_to_its_account_alone(action, store, url, owner, guest, queue):
    """The policy grants no other action."""
    other = "PurgeQueue" if action != "PurgeQueue" else "SendMessage"
    stranger = new_client(store, url, STRANGER)
    text = f"Access to the resource {queue} is denied."
    assert denied(CALLS[action], guest=guest, owner=owner, url=queue) == text
    owner.add_permission(
        QueueUrl=queue, Label="x", AWSAccountIds=[GUEST], Actions=[action.removesuffix("Batch")]
    )
    assert denied(CALLS[action], guest=stranger, owner=owner, url=queue) == text
    assert denied(CALLS[other], guest=guest, owner=owner, url=queue) == text
    CALLS[action](guest, owner, queue)
    owner.remove_permission(QueueUrl=queue, Label="x")
    assert denied(CALLS[action], guest=guest, owner=owner, url=queue) == text


@pytest.mark.parametrize("action", OWNERS_CALLS)
def test_actions_of_owners_are_denied_to_others_under_any_policy(action, owner, guest, queue):
    statement = {"Sid": "everything", "Effect": "Allow", "Principal": "*", "Action": "*"}
    owner.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": json.dumps({"Statement": statement})})
    guest.send_message(QueueUrl=queue, MessageBody="granted")
    assert (
        denied(OWNERS_CALLS[action], guest=guest, url=queue) == f"Access to the resource {queue} is denied."
    )


def test_move_task_is_cancelled_by_its_account_alone(owner, guest, queue):
    handle = owner.start_message_move_task(SourceArn=arn("orders"), MaxNumberOfMessagesPerSecond=1)[
        "TaskHandle"
    ]
    denied(guest.cancel_message_move_task, TaskHandle=handle)
    owner.cancel_message_move_task(TaskHandle=handle)


def kill(client, queue_url):
    """Receive all messages of a queue until they are moved to its dead-letter queue."""
    for _ in range(4):
        client.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10, VisibilityTimeout=0)


def deny(owner, queue_url, action, user_name="worker"):
    """Deny a user of the owner's account one action."""
    principal = {"AWS": f"arn:aws:iam::{OWNER}:user/{user_name}"}
    statement = {"Effect": "Deny", "Principal": principal, "Action": f"SQS:{action}"}
    owner.set_queue_attributes(
        QueueUrl=queue_url, Attributes={"Policy": json.dumps({"Statement": statement})}
    )


@pytest.mark.parametrize("action", ["ReceiveMessage", "DeleteMessage"])
def test_redrive_needs_the_right_to_receive_and_delete(action, store, url, owner, queue):
    worker = new_client(store, url, OWNER, "worker")
    target = owner.create_queue(QueueName="target")["QueueUrl"]
    deny(owner, queue, action)
    for destination in ({}, {"DestinationArn": arn("target")}):
        text = denied(worker.start_message_move_task, SourceArn=arn("orders"), **destination)
        assert text == f"Access to the resource {queue} is denied."
    assert worker.receive_message(QueueUrl=target).get("Messages") is None
    new_client(store, url, OWNER, "other").start_message_move_task(SourceArn=arn("orders"))


def test_redrive_needs_the_right_to_send_to_the_destination(store, url, owner, queue):
    worker = new_client(store, url, OWNER, "worker")
    target = owner.create_queue(QueueName="target")["QueueUrl"]
    deny(owner, target, "SendMessage")
    text = denied(worker.start_message_move_task, SourceArn=arn("orders"), DestinationArn=arn("target"))
    assert text == f"Access to the resource {target} is denied."
    worker.start_message_move_task(SourceArn=arn("orders"))


def test_redrive_needs_the_right_to_send_to_the_source_queues(store, url, owner, queue):
    """Even if that queue has another dead-letter queue by now."""
    worker = new_client(store, url, OWNER, "worker")
    source = queue.replace("orders", "source")
    owner.send_message(QueueUrl=source, MessageBody="dies")
    kill(owner, source)
    owner.create_queue(
        QueueName="new-source",
        Attributes={
            "RedrivePolicy": json.dumps({"deadLetterTargetArn": arn("orders"), "maxReceiveCount": 3})
        },
    )
    owner.set_queue_attributes(QueueUrl=source, Attributes={"RedrivePolicy": ""})
    deny(owner, source, "SendMessage")
    text = denied(worker.start_message_move_task, SourceArn=arn("orders"))
    assert text == f"Access to the resource {source} is denied."
    worker.start_message_move_task(SourceArn=arn("orders"), DestinationArn=arn("new-source"))


def test_move_task_whose_queue_is_gone_is_not_cancelled_by_another_account(owner, guest, queue):
    handle = owner.start_message_move_task(SourceArn=arn("orders"), MaxNumberOfMessagesPerSecond=1)[
        "TaskHandle"
    ]
    owner.delete_queue(QueueUrl=queue)
    denied(guest.cancel_message_move_task, TaskHandle=handle)


def test_dead_letters_and_move_tasks_stay_inside_an_account(owner, guest, queue):
    with pytest.raises(ClientError) as refused:
        guest.create_queue(
            QueueName="q",
            Attributes={
                "RedrivePolicy": json.dumps({"deadLetterTargetArn": arn("orders"), "maxReceiveCount": 3})
            },
        )
    assert refused.value.response["Error"]["Code"] == "InvalidParameterValue"
    guest.create_queue(QueueName="q")
    with pytest.raises(ClientError) as refused:
        owner.start_message_move_task(SourceArn=arn("orders"), DestinationArn=arn("q", GUEST))
    assert refused.value.response["Error"]["Code"] == "ResourceNotFoundException"


def test_two_accounts_may_each_have_a_queue_of_the_same_name(owner, guest, queue):
    own = guest.create_queue(QueueName="orders")["QueueUrl"]
    assert own == queue.replace(OWNER, GUEST)
    assert guest.receive_message(QueueUrl="orders").get("Messages") is None
    assert guest.list_queues()["QueueUrls"] == [own]
    assert sorted(owner.list_queues()["QueueUrls"]) == [queue, queue.replace("orders", "source")]
    guest.delete_queue(QueueUrl=own)
    assert owner.receive_message(QueueUrl=queue)["Messages"][0]["Body"] == "of the owner"


def test_sender_id_is_the_account_that_sent_the_message(owner, guest, queue):
    owner.purge_queue(QueueUrl=queue)
    owner.add_permission(QueueUrl=queue, Label="x", AWSAccountIds=[GUEST], Actions=["*"])
    owner.send_message(QueueUrl=queue, MessageBody=OWNER)
    guest.send_message(QueueUrl=queue, MessageBody=GUEST)
    guest.send_message_batch(QueueUrl=queue, Entries=[{"Id": "1", "MessageBody": GUEST}])
    received = guest.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, MessageSystemAttributeNames=["SenderId"]
    )["Messages"]
    assert sorted((one["Body"], one["Attributes"]["SenderId"]) for one in received) == [
        (OWNER, OWNER),
        (GUEST, GUEST),
        (GUEST, GUEST),
    ]


def test_source_queues_of_dead_letters_are_the_owner_s(owner, guest, queue):
    owner.add_permission(
        QueueUrl=queue, Label="x", AWSAccountIds=[GUEST], Actions=["ListDeadLetterSourceQueues"]
    )
    found = guest.list_dead_letter_source_queues(QueueUrl=queue)["queueUrls"]
    assert found == [queue.replace("orders", "source")]


# Each as a guest calls it on the owner's queue, by the queue's URL and name.
PROBES = {
    "SendMessage": lambda guest, url, name: guest.send_message(QueueUrl=url, MessageBody="hi"),
    "ReceiveMessage": lambda guest, url, name: guest.receive_message(QueueUrl=url),
    "ReceiveMessage, too many": lambda guest, url, name: guest.receive_message(
        QueueUrl=url, MaxNumberOfMessages=11
    ),
    "DeleteMessage": lambda guest, url, name: guest.delete_message(QueueUrl=url, ReceiptHandle="x"),
    "GetQueueAttributes": lambda guest, url, name: guest.get_queue_attributes(QueueUrl=url),
    "GetQueueUrl": lambda guest, url, name: guest.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=OWNER),
    "DeleteQueue": lambda guest, url, name: guest.delete_queue(QueueUrl=url),
    "ListQueueTags": lambda guest, url, name: guest.list_queue_tags(QueueUrl=url),
    "StartMessageMoveTask": lambda guest, url, name: guest.start_message_move_task(SourceArn=arn(name)),
    "StartMessageMoveTask, to it": lambda guest, url, name: guest.start_message_move_task(
        SourceArn=arn("dead", GUEST), DestinationArn=arn(name)
    ),
    "ListMessageMoveTasks": lambda guest, url, name: guest.list_message_move_tasks(SourceArn=arn(name)),
    "CancelMessageMoveTask": lambda guest, url, name: guest.cancel_message_move_task(
        TaskHandle=base64.b64encode(f'{{"taskId":"x","sourceArn":"{arn(name)}"}}'.encode()).decode()
    ),
    "CreateQueue": lambda guest, url, name: guest.create_queue(
        QueueName="q",
        Attributes={"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn(name), "maxReceiveCount": 3})},
    ),
}


@pytest.mark.parametrize("probe", PROBES)
def test_no_answer_reveals_whether_another_account_has_a_queue_of_a_name(probe, guest, queue):
    guest.create_queue(QueueName="dead")
    redrive = {"deadLetterTargetArn": arn("dead", GUEST), "maxReceiveCount": 3}
    guest.create_queue(QueueName="alive", Attributes={"RedrivePolicy": json.dumps(redrive)})
    answers = []
    for name in ("orders", "nobody"):
        with pytest.raises(ClientError) as refused:
            PROBES[probe](guest, queue.replace("orders", name), name)
        found = refused.value.response
        answers.append(
            (found["ResponseMetadata"]["HTTPStatusCode"], repr(found["Error"]).replace(name, "NAME"))
        )
    assert answers[0] == answers[1]


def test_deny_binds_the_owner_except_for_changes_of_the_policy(owner, queue):
    statement = {"Sid": "s", "Effect": "Deny", "Principal": "*", "Action": "SQS:*"}
    owner.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": json.dumps({"Statement": [statement]})})
    for action, call in CALLS.items():
        if not action.startswith(("Delete", "Change")):  # they need a receive
            denied(call, guest=owner, owner=owner, url=queue)
    denied(owner.delete_queue, QueueUrl=queue)
    denied(owner.start_message_move_task, SourceArn=arn("orders"))
    owner.add_permission(QueueUrl=queue, Label="x", AWSAccountIds=[GUEST], Actions=["*"])
    owner.remove_permission(QueueUrl=queue, Label="s")
    owner.send_message(QueueUrl=queue, MessageBody="again")
    owner.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": ""})


def test_denied_user_of_the_owners_account_cannot_change_the_policy(store, url, owner, queue):
    worker = new_client(store, url, OWNER, "worker")
    principal = {"AWS": f"arn:aws:iam::{OWNER}:user/worker"}
    statement = {"Sid": "s", "Effect": "Deny", "Principal": principal, "Action": "SQS:*"}
    policy = json.dumps({"Statement": [statement]})
    owner.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    denied(worker.send_message, QueueUrl=queue, MessageBody="hi")
    denied(worker.set_queue_attributes, QueueUrl=queue, Attributes={"Policy": ""})
    denied(worker.remove_permission, QueueUrl=queue, Label="s")
    denied(worker.add_permission, QueueUrl=queue, Label="x", AWSAccountIds=[OWNER], Actions=["*"])
    new_client(store, url, OWNER, "other").set_queue_attributes(QueueUrl=queue, Attributes={"Policy": ""})
    worker.send_message(QueueUrl=queue, MessageBody="hi")


def test_deny_is_stronger_than_allow(owner, guest, queue):
    allow = {"Sid": "a", "Effect": "Allow", "Principal": "*", "Action": "*"}
    deny = {"Sid": "d", "Effect": "Deny", "Principal": {"AWS": GUEST}, "Action": "sqs:sendmessage"}
    owner.set_queue_attributes(
        QueueUrl=queue, Attributes={"Policy": json.dumps({"Statement": [deny, allow]})}
    )
    denied(guest.send_message, QueueUrl=queue, MessageBody="hi")
    denied(guest.send_message_batch, QueueUrl=queue, Entries=[{"Id": "1", "MessageBody": "hi"}])
    guest.receive_message(QueueUrl=queue)
    owner.send_message(QueueUrl=queue, MessageBody="hi")


def test_statement_may_name_a_user(store, url, owner, guest, queue):
    worker = new_client(store, url, GUEST, "worker")
    allow = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{GUEST}:user/worker"},
        "Action": "SQS:SendMessage",
    }
    owner.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": json.dumps({"Statement": allow})})
    worker.send_message(QueueUrl=queue, MessageBody="hi")
    denied(guest.send_message, QueueUrl=queue, MessageBody="hi")


def test_conditions_see_the_connection(owner, guest, queue):
    def allow(**conditions):
        statement = {"Effect": "Allow", "Principal": "*", "Action": "*", "Condition": conditions}
        owner.set_queue_attributes(
            QueueUrl=queue, Attributes={"Policy": json.dumps({"Statement": statement})}
        )

    allow(IpAddress={"aws:SourceIp": "127.0.0.0/8"}, Bool={"aws:SecureTransport": "false"})
    guest.send_message(QueueUrl=queue, MessageBody="hi")
    allow(IpAddress={"aws:SourceIp": "10.0.0.0/8"})
    denied(guest.send_message, QueueUrl=queue, MessageBody="hi")
    allow(Bool={"aws:SecureTransport": "true"})
    denied(guest.send_message, QueueUrl=queue, MessageBody="hi")
    allow(DateGreaterThan={"aws:CurrentTime": "2020-01-01T00:00:00Z"})
    guest.send_message(QueueUrl=queue, MessageBody="hi")


def test_removing_all_keys_leaves_each_account_its_queues(store, path):
    with serving(store) as url:
        boss = boto3.client(
            "sqs", endpoint_url=url, region_name="us-east-1", config=Config(signature_version=UNSIGNED)
        )
        own = boss.create_queue(QueueName="own")["QueueUrl"]
        deny = {"Effect": "Deny", "Principal": "*", "Action": "*"}
        boss.set_queue_attributes(QueueUrl=own, Attributes={"Policy": json.dumps({"Statement": deny})})
        boss.send_message(QueueUrl=own, MessageBody="nobody is told apart")
        with pytest.raises(boss.exceptions.QueueDoesNotExist):
            boss.send_message(QueueUrl=own.replace("000000000000", OWNER), MessageBody="hi")
        with store.transaction() as tx:
            tx.execute("UPDATE sqs_queues SET account_id = ?, policy = NULL", (OWNER,))
        denied(boss.send_message, QueueUrl=own.replace("000000000000", OWNER), MessageBody="hi")


# --- decisions

WORKER = Identity(GUEST, "worker")
CONTEXT = {"aws:principalaccount": GUEST, "aws:currenttime": datetime.now(UTC).isoformat()}


def decide(policy, identity, action, queue_arn, context):
    return Rules(policy, queue_arn).decide(identity, action, context)


def decision(*statements, identity=WORKER, action="SendMessage"):
    filled = [{"Principal": "*", "Action": "*", **statement} for statement in statements]
    policy = read_policy(json.dumps({"Statement": filled}))
    return decide(policy, identity, action, arn("orders"), CONTEXT)


def calls_of(action):
    """How many functions the call runs, nested ones included: its cost, independent of the machine's load."""
    count = 0

    def profile(_frame, event, _function):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "element",
    [
        lambda patterns: {"NotResource": patterns},
        lambda patterns: {"Resource": "*", "Condition": {"StringNotLike": {"aws:PrincipalArn": patterns}}},
    ],
    ids=["resources", "condition values"],
)
@pytest.mark.parametrize("form", ["N{}*", "*?N{}"], ids=["stars", "question marks"])
def test_a_policy_of_many_patterns_is_evaluated_cheaply_after_its_first_use(
    form, element, store, owner, queue
):
    """An older version may have left such a policy in the file. SetQueueAttributes no longer accepts it."""
    patterns = [form.format(number) for number in range(1_300)]
    statement = {"Effect": "Allow", "Principal": "*", "Action": "*", **element(patterns)}
    with store.transaction() as tx:
        policy = json.dumps({"Statement": statement})
        tx.execute("UPDATE sqs_queues SET policy = ? WHERE name = 'orders'", (policy,))
    request = SendMessage(queue_url=queue, message_body="hi")

    def ask():
        authorize(store, exchange(), Identity(GUEST), request, Caller(GUEST), datetime.now(UTC))

    ask()
    assert calls_of(ask) < 1_000


ALLOW, DENY = {"Effect": "Allow"}, {"Effect": "Deny"}


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        ("*", True),
        ({"AWS": "*"}, True),
        ({"AWS": GUEST}, True),
        ({"AWS": [OWNER, f"arn:aws:iam::{GUEST}:root"]}, True),
        ({"AWS": f"arn:aws-cn:iam::{GUEST}:user/worker"}, True),
        ({"AWS": f"arn:aws:iam::{GUEST}:user/other"}, None),
        ({"AWS": f"arn:aws:iam::{OWNER}:user/*"}, None),
        ({"AWS": f"arn:aws:sts::{OWNER}:assumed-role/worker/x"}, None),
        ({"AWS": OWNER}, None),
        ({"AWS": "AIDACKCEVSQ6C2EXAMPLE"}, None),
        ({"Service": "*"}, None),
        ({"Federated": GUEST, "CanonicalUser": GUEST}, None),
    ],
)
def test_principal(principal, expected):
    assert decision({**ALLOW, "Principal": principal}) is expected
    assert decision({**DENY, "Principal": principal}) is (None if expected is None else False)


@pytest.mark.parametrize(
    "rest",
    ["user/*", "user/w?rker", "user/team/worker", "role/worker", "group/workers", "federated-user/worker"],
)
@pytest.mark.parametrize("service", ["iam", "sts"])
def test_unclear_principal_is_the_account_in_a_deny_and_matches_none_in_an_allow(service, rest):
    principal = {"AWS": f"arn:aws:{service}::{GUEST}:{rest}"}
    for identity in (WORKER, Identity(GUEST)):
        assert decision({**ALLOW, "Principal": principal}, identity=identity) is None
        assert decision(ALLOW, {**DENY, "Principal": principal}, identity=identity) is False
        deny = json.dumps({"Statement": {**DENY, "NotPrincipal": principal, "Action": "*"}})
        assert decide(read_policy(deny), identity, "SendMessage", arn("orders"), CONTEXT) is False
    stranger = {"aws:principalaccount": STRANGER}
    policy = read_policy(json.dumps({"Statement": {**DENY, "Principal": principal, "Action": "*"}}))
    assert decide(policy, Identity(STRANGER), "SendMessage", arn("orders"), stranger) is None


@pytest.mark.parametrize(
    ("actions", "single", "batch"),
    [
        ("SQS:SendMessage", False, False),
        ("SQS:sendmessagebatch", None, False),
        ("SQS:*Batch", None, False),
        ("SQS:DeleteMessageBatch", None, None),
    ],
)
def test_deny_may_name_a_batch(actions, single, batch):
    deny = {**DENY, "Action": actions}
    assert decision(deny) is single
    assert decision(deny, action="SendMessageBatch") is batch


def test_permission_of_the_single_action_decides_about_its_batch():
    assert decision({**ALLOW, "Action": "SQS:SendMessage"}, action="SendMessageBatch") is True
    assert decision({**ALLOW, "Action": "SQS:SendMessageBatch"}, action="SendMessageBatch") is None
    for names, expected in (("SQS:SendMessage", None), ("SQS:SendMessageBatch", False)):
        text = json.dumps({"Statement": {**DENY, "Principal": "*", "NotAction": names}})
        policy = read_policy(text)
        assert decide(policy, WORKER, "SendMessageBatch", arn("orders"), CONTEXT) is expected


def test_deny_of_a_batch_holds_over_the_wire(owner, guest, queue):
    allow = {"Sid": "a", "Effect": "Allow", "Principal": "*", "Action": "*"}
    deny = {"Sid": "d", "Effect": "Deny", "Principal": "*", "Action": "sqs:SendMessageBatch"}
    policy = json.dumps({"Statement": [deny, allow]})
    owner.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    denied(guest.send_message_batch, QueueUrl=queue, Entries=[{"Id": "1", "MessageBody": "hi"}])
    guest.send_message(QueueUrl=queue, MessageBody="hi")


@pytest.mark.parametrize(
    "pattern", [arn("orders"), arn("ord*"), "arn:aws:sqs:*", "arn:aws:sqs:*:*:orders", "*:orders", "arn:*"]
)
def test_resource_is_a_queue_in_any_region(pattern):
    policy = read_policy(
        json.dumps({"Statement": {**DENY, "Principal": "*", "Action": "*", "Resource": pattern}})
    )
    for region in ("us-east-1", "eu-west-1"):
        other = arn("orders").replace("us-east-1", region)
        assert decide(policy, WORKER, "SendMessage", other, CONTEXT) is False
        assert decide(policy, WORKER, "SendMessage", other.replace("orders", "o"), CONTEXT) is (
            False if pattern in ("arn:aws:sqs:*", "arn:*") else None
        )


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("*", True),
        ("SQS:*", True),
        ("sqs:sendmessage", True),
        (["SQS:ReceiveMessage", "SQS:Send*"], True),
        ("SQS:SendMessag?", True),
        ("SQS:ReceiveMessage", None),
        ("SQS:SendMessageBatch", None),
    ],
)
def test_action(actions, expected):
    assert decision({**ALLOW, "Action": actions}) is expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("*", True),
        (arn("orders"), True),
        (arn("ord*"), True),
        ([arn("other"), arn("order?")], True),
        (arn("Orders"), None),
        (arn("orders", GUEST), None),
        (arn("${aws:username}"), None),
    ],
)
def test_resource(resource, expected):
    assert decision({**ALLOW, "Resource": resource}) is expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ({**DENY, "NotPrincipal": {"AWS": OWNER}, "Action": "*"}, False),
        ({**DENY, "NotPrincipal": {"AWS": GUEST}, "Action": "*"}, None),
        ({**ALLOW, "NotPrincipal": {"AWS": OWNER}, "Action": "*"}, None),
        ({**ALLOW, "Principal": "*", "NotAction": "SQS:ReceiveMessage"}, True),
        ({**ALLOW, "Principal": "*", "NotAction": "SQS:Send*"}, None),
        ({**ALLOW, "Principal": "*", "Action": "*", "NotResource": arn("other")}, True),
        ({**ALLOW, "Principal": "*", "Action": "*", "NotResource": arn("ord*")}, None),
        ({**ALLOW, "Principal": "*", "Action": "*", "NotResource": arn("${aws:username}")}, None),
    ],
)
def test_not_elements_match_all_but_the_named(statement, expected):
    """IAM allows NotPrincipal only with Deny."""
    policy = read_policy(json.dumps({"Statement": statement}))
    assert decide(policy, WORKER, "SendMessage", arn("orders"), CONTEXT) is expected


@pytest.mark.parametrize(
    "unknown",
    [
        {"Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}},
        {"Condition": {"BinaryEquals": {"aws:PrincipalAccount": "MTE="}}},
        {"Resource": arn("${aws:username}")},
    ],
)
def test_unclear_statement_allows_no_access(unknown):
    assert decision({**ALLOW, **unknown}) is None
    assert decision(ALLOW, {**DENY, **unknown}) is False


def test_policy_without_a_matching_statement_decides_nothing():
    other = {"Principal": {"AWS": OWNER}}
    assert decision({**ALLOW, **other}, {**DENY, **other}) is None


def test_long_poll_receives_nothing_after_its_permission_was_removed(store, owner, guest):
    queue_url = owner.create_queue(QueueName="empty")["QueueUrl"]
    owner.add_permission(QueueUrl=queue_url, Label="once", AWSAccountIds=[GUEST], Actions=["ReceiveMessage"])
    denials = []
    waiting = threading.Thread(
        target=lambda: denials.append(denied(guest.receive_message, QueueUrl=queue_url, WaitTimeSeconds=20))
    )
    waiting.start()
    store.clock.until_waiting(1)
    owner.remove_permission(QueueUrl=queue_url, Label="once")
    owner.send_message(QueueUrl=queue_url, MessageBody="of the owner")
    waiting.join(300)
    assert len(denials) == 1
    assert len(owner.receive_message(QueueUrl=queue_url)["Messages"]) == 1


def metrics_of(url):
    with urllib.request.urlopen(f"{url}/metrics", timeout=300) as answer:
        return answer.read().decode()


def test_long_poll_of_a_removed_key_is_refused_and_receives_nothing(store, url, owner):
    """Even behind another poll, with a session of that key, and without a message."""
    queue_url = owner.create_queue(QueueName="empty")["QueueUrl"]
    key = store.write(add_key, OWNER, "")
    made = make_session(key.access_key_id, key, 900, datetime.now(UTC).timestamp())
    received, refused = [], []

    def wait_with(client):
        try:
            received.append(client.receive_message(QueueUrl=queue_url, WaitTimeSeconds=20))
        except ClientError as error:
            refused.append(error.response["Error"]["Code"])

    clients = [owner, client_of(url, key), client_of(url, made, aws_session_token=made.token)]
    waiting = [threading.Thread(target=wait_with, args=(client,)) for client in clients]
    for count, thread in enumerate(waiting, 1):
        thread.start()
        while f"\nsqsqlite_waiting_polls {count}\n" not in metrics_of(url):
            assert thread.is_alive()
    store.write(remove_key, key.access_key_id)
    for thread in waiting[1:]:
        thread.join(30)
    assert refused == ["InvalidClientTokenId"] * 2
    assert received == []
    owner.send_message(QueueUrl=queue_url, MessageBody="of the owner")
    waiting[0].join(30)
    [answer] = received
    assert [message["Body"] for message in answer["Messages"]] == ["of the owner"]


def test_unsigned_long_poll_receives_nothing_after_the_first_key_was_added(store, url):
    answers = []
    body = b'{"QueueUrl":"open","WaitTimeSeconds":20}'
    ask(url, json_of(b"CreateQueue", b'{"QueueName":"open"}'))
    waiting = threading.Thread(target=lambda: answers.append(ask(url, json_of(b"ReceiveMessage", body))))
    waiting.start()
    while "\nsqsqlite_waiting_polls 1\n" not in metrics_of(url):
        assert waiting.is_alive()
    key = store.write(add_key, "000000000000", "")
    client_of(url, key).send_message(QueueUrl=f"{url}/000000000000/open", MessageBody="for those with keys")
    waiting.join(300)
    [answer] = answers
    assert (answer.status, b"InvalidSecurity" in answer.body) == (403, True)
