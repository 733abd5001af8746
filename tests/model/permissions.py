# SPDX-License-Identifier: Apache-2.0
"""AddPermission and RemovePermission: statements of the queue's Policy. Contract, sections 3.19, 3.20 and 12."""

# ruff: noqa: N803 - SQS's parameters have SQS's names

import json

from tests.model.state import Refusal, bad_value, invalid, missing

GRANTABLE = (
    "*",
    "SendMessage",
    "ReceiveMessage",
    "DeleteMessage",
    "ChangeMessageVisibility",
    "GetQueueAttributes",
    "GetQueueUrl",
    "ListDeadLetterSourceQueues",
    "PurgeQueue",
)
OWNERS = (
    "AddPermission",
    "RemovePermission",
    "CreateQueue",
    "DeleteQueue",
    "ListQueues",
    "SetQueueAttributes",
)


def add_permission(state, QueueUrl, Label, AWSAccountIds, Actions):
    queue = state.queue(QueueUrl)
    if not AWSAccountIds:
        raise invalid("Value [] for parameter PrincipalId is invalid. Reason: Unable to verify.")
    if not Actions:
        raise missing("Actions")
    if len(Actions) > 7:
        raise Refusal("OverLimit", f"{len(Actions)} Actions were found, maximum allowed is 7.")
    for action in Actions:
        _check_action(action)
    policy = json.loads(queue.attributes.get("Policy", "{}")) or {
        "Version": "2008-10-17",
        "Id": f"{queue.arn}/SQSDefaultPolicy",
        "Statement": [],
    }
    if any(statement["Sid"] == Label for statement in policy["Statement"]):
        raise bad_value(Label, "Label", "Already exists.")
    policy["Statement"].append(
        {
            "Sid": Label,
            "Effect": "Allow",
            "Principal": {"AWS": _one_or_more([f"arn:aws:iam::{account}:root" for account in AWSAccountIds])},
            "Action": _one_or_more([f"SQS:{action}" for action in Actions]),
            "Resource": queue.arn,
        }
    )
    queue.attributes["Policy"] = json.dumps(policy)
    queue.modified_at = state.now
    return {}


def _check_action(action):
    if action in OWNERS:
        raise bad_value(
            f"SQS:{action}", "ActionName", "Only the queue owner is allowed to invoke this action."
        )
    if action not in GRANTABLE:
        reason = "Please refer to the appropriate WSDL for a list of valid actions. "
        raise bad_value(f"SQS:{action}", "ActionName", reason)


def _one_or_more(values):
    return values[0] if len(values) == 1 else values


def remove_permission(state, QueueUrl, Label):
    queue = state.queue(QueueUrl)
    policy = json.loads(queue.attributes.get("Policy", "{}"))
    kept = [statement for statement in policy.get("Statement", []) if statement["Sid"] != Label]
    if len(kept) == len(policy.get("Statement", [])):
        raise bad_value(Label, "Label", "can't find label.")
    if kept:
        queue.attributes["Policy"] = json.dumps({**policy, "Statement": kept})
    else:
        del queue.attributes["Policy"]
    queue.modified_at = state.now
    return {}
