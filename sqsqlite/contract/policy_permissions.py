# SPDX-License-Identifier: Apache-2.0
"""Permissions: the statements of a queue's policy that AddPermission writes and RemovePermission takes away.

Source: API_AddPermission, API_RemovePermission; developer guide, "Amazon SQS API permissions".
"""

import re
from collections.abc import Sequence

import msgspec

from sqsqlite.contract.limits import Limits
from sqsqlite.contract.parameters import missing
from sqsqlite.contract.policy import Policy, Statement, quota_exceeded, read_policy
from sqsqlite.errors import InvalidParameterValue, OverLimit

GRANTABLE = frozenset(
    {
        "*",
        "ChangeMessageVisibility",
        "DeleteMessage",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
        "ReceiveMessage",
        "SendMessage",
    }
)
"""What AddPermission takes as an action; the right to an action is also that to its batch."""

OWNER_ONLY = frozenset(
    {
        "AddPermission",
        "CancelMessageMoveTask",
        "CreateQueue",
        "DeleteQueue",
        "ListMessageMoveTasks",
        "ListQueueTags",
        "ListQueues",
        "RemovePermission",
        "SetQueueAttributes",
        "StartMessageMoveTask",
        "TagQueue",
        "UntagQueue",
    }
)
"""Actions that no permission gives to another account."""

_is_account_id = re.compile(r"[0-9]{12}").fullmatch


def check_permission(account_ids: Sequence[str], actions: Sequence[str], limits: Limits) -> None:
    """Check whom a permission is for, and to do what.

    Args:
        account_ids: 12 digits each.
        actions: up to 7 of GRANTABLE.

    Raises:
        InvalidParameterValue: no account, a text that is not one, or an action that cannot be permitted.
        MissingParameter: no action.
        OverLimit: more actions.
    Source: API_AddPermission.
    """
    if not account_ids or not all(map(_is_account_id, account_ids)):
        raise InvalidParameterValue(
            f"Value [{', '.join(account_ids)}] for parameter PrincipalId is invalid. Reason: Unable to verify."
        )
    if not actions:
        raise missing("Actions")
    if len(actions) > limits.policy_action_count:
        raise OverLimit(
            f"{len(actions)} Actions were found, maximum allowed is {limits.policy_action_count}."
        )
    for action in actions:
        if action in OWNER_ONLY:
            reason = "Only the queue owner is allowed to invoke this action."
        elif action not in GRANTABLE:
            reason = "Please refer to the appropriate WSDL for a list of valid actions. "
        else:
            continue
        raise InvalidParameterValue(
            f"Value SQS:{action} for parameter ActionName is invalid. Reason: {reason}"
        )


def with_permission(
    text: str | None,
    label: str,
    account_ids: Sequence[str],
    actions: Sequence[str],
    queue_arn: str,
    limits: Limits,
) -> str:
    """The document with one more statement, its last.

    Args:
        text: the queue's present document, None if it has none.
        label: the statement's Sid.
        account_ids, actions: as `check_permission` leaves them.

    Raises:
        InvalidParameterValue: the label exists.
        OverLimit: the document would exceed a quota.
        InvalidAttributeValue: the present document can't be read.
    """
    policy = (
        Policy(version="2008-10-17", id=f"{queue_arn}/SQSDefaultPolicy", statement=[])
        if text is None
        else read_policy(text)
    )
    if any(statement.sid == label for statement in policy.statements):
        raise _bad_label(label, "Already exists.")
    added = Statement(
        sid=label,
        effect="Allow",
        principal={"AWS": _one_or_list([f"arn:aws:iam::{account_id}:root" for account_id in account_ids])},
        action=_one_or_list([f"SQS:{action}" for action in actions]),
        resource=queue_arn,
    )
    policy = msgspec.structs.replace(policy, statement=[*policy.statements, added])
    written = msgspec.json.encode(policy)
    exceeded = quota_exceeded(policy, limits)
    if exceeded is None and len(written) > limits.policy_bytes:
        exceeded = f"{len(written)} bytes were found in the policy, maximum allowed is {limits.policy_bytes}."
    if exceeded is not None:
        raise OverLimit(exceeded)
    return written.decode()


def without_permission(text: str | None, label: str) -> str | None:
    """The document without the statement of this Sid; None if it was the only one.

    Raises:
        InvalidParameterValue: no statement has this label.
        InvalidAttributeValue: the document can't be read.
    """
    policy = None if text is None else read_policy(text)
    statements = [] if policy is None else policy.statements
    left = [statement for statement in statements if statement.sid != label]
    if policy is None or len(left) == len(statements):
        raise _bad_label(label, "can't find label.")
    if not left:
        return None
    return msgspec.json.encode(msgspec.structs.replace(policy, statement=left)).decode()


def _one_or_list(values: Sequence[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else list(values)


def _bad_label(label: str, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"Value {label} for parameter Label is invalid. Reason: {reason}")
