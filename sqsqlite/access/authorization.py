# SPDX-License-Identifier: Apache-2.0
"""Who may do what with a queue: its own account everything, others what its Policy allows, and no one what it denies.

Source: SQS developer guide, "Overview of managing access in Amazon SQS", "Amazon SQS API permissions"; IAM user guide,
"Policy evaluation logic", for an account whose users have no policies of their own.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from sqsqlite.access.keys import find_policy
from sqsqlite.access.rules import rules_of, single
from sqsqlite.actions import move_tasks, queue_rows
from sqsqlite.contract import requests
from sqsqlite.contract.names import is_queue_arn, queue_arn, queue_name, queue_url
from sqsqlite.contract.policy_permissions import GRANTABLE
from sqsqlite.errors import AccessDenied

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqsqlite.access.exchange import Exchange, Identity
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract.requests import Request
    from sqsqlite.store.store import Store

# Whatever a policy denies, its queue's account can mend it: the account itself, not each of its users.
NEVER_DENIED_TO_OWNER = frozenset({"AddPermission", "RemovePermission", "SetQueueAttributes"})
_WITHOUT_QUEUE = (requests.CreateQueue, requests.ListQueues)


def authorize(
    store: "Store",
    exchange: "Exchange",
    identity: "Identity",
    request: "Request",
    caller: "Caller",
    now: datetime,
) -> "Caller":
    """The caller as the operation is to know it: another account's is the sender of its messages.

    Args:
        now: for conditions on the time.

    Raises:
        AccessDenied: the queue's Policy denies it, or the queue is another account's, if it is there, and nothing
            allows it.
    """
    place = place_of(store, request, caller)
    if place is None:
        return caller
    owner, name = place
    is_own = owner == caller.account_id
    if is_own and not identity.user_name and request.action in NEVER_DENIED_TO_OWNER:
        return caller
    denied = _denied(caller, owner, name)
    row = find_policy(store, owner, name)
    if row is None and is_own:
        return caller
    # A queue that is not there is denied like one that nothing allows: the answer must not tell which names there are.
    if row is None or (not is_own and single(request.action) not in GRANTABLE):
        raise denied
    context = context_of(exchange, identity, store.settings.region, now)
    verdict = _verdict(store, identity, request.action, place, row[0], context)
    if verdict is False or (verdict is None and not is_own):
        raise denied
    return caller if is_own else caller._replace(sender_id=caller.account_id)


def authorize_move(
    store: "Store",
    exchange: "Exchange",
    identity: "Identity",
    request: requests.StartMessageMoveTask,
    caller: "Caller",
    now: datetime,
) -> None:
    """What a move task does to its queues, asked of each as if it were requested there.

    Without a destination the messages go back to where they came from, so all dead letters of the source are looked at:
    a second for a million of them. Not for an event loop.

    Args:
        now: for conditions on the time.

    Raises:
        AccessDenied: a Policy denies ReceiveMessage or DeleteMessage of the source, or SendMessage to the destination
            or to a queue that the messages came from.
    """
    context = context_of(exchange, identity, store.settings.region, now)
    asked = [("ReceiveMessage", request.source_arn), ("DeleteMessage", request.source_arn)]
    destinations = [request.destination_arn] if request.destination_arn else _origins(store, request, caller)
    for action, arn in asked + [("SendMessage", arn) for arn in destinations]:
        place = _place_of_arn(arn, caller)
        if place is None or place[0] != caller.account_id:
            continue  # the operation refuses it
        row = find_policy(store, *place)
        if row is not None and _verdict(store, identity, action, place, row[0], context) is False:
            raise _denied(caller, *place)


def _origins(store: "Store", request: requests.StartMessageMoveTask, caller: "Caller") -> list[str]:
    """The ARNs of the queues where the messages of a move task's source died."""
    with store.reading() as snapshot:
        return move_tasks.list_origins(snapshot, request.source_arn, caller)


def _denied(caller: "Caller", owner: str, name: str) -> AccessDenied:
    return AccessDenied(f"Access to the resource {queue_url(caller.base_url, owner, name)} is denied.")


def _verdict(
    store: "Store",
    identity: "Identity",
    action: str,
    place: tuple[str, str],
    text: str | None,
    context: "Mapping[str, str]",
) -> bool | None:
    """What the Policy of the queue at `place` says, as `Rules.decide` gives it; None too where it has none."""
    rules = None if text is None else rules_of(text, queue_arn(store.settings.region, *place))
    return None if rules is None else rules.decide(identity, action, context)


def place_of(store: "Store", request: "Request", caller: "Caller") -> tuple[str, str] | None:
    """(account, name) of the queue that a request is for; None: it is for none, or for none that there can be."""
    if isinstance(request, requests.QueueRequest):
        return queue_rows.place(request.queue_url, caller)
    if isinstance(request, requests.GetQueueUrl):
        return request.queue_owner_aws_account_id or caller.account_id, request.queue_name
    if isinstance(request, _WITHOUT_QUEUE):
        return None
    if isinstance(request, requests.CancelMessageMoveTask):
        with store.reading() as snapshot:
            task = move_tasks.find_task(snapshot, request.task_handle)
        return None if task is None else _place_of_arn(task.source_arn, caller)
    assert isinstance(request, requests.StartMessageMoveTask | requests.ListMessageMoveTasks), request.action
    return _place_of_arn(request.source_arn, caller)


def _place_of_arn(arn: str, caller: "Caller") -> tuple[str, str] | None:
    if not is_queue_arn(arn):
        return None
    account_id, name = queue_name(arn)
    return account_id or caller.account_id, name


def context_of(exchange: "Exchange", identity: "Identity", region: str, now: datetime) -> dict[str, str]:
    """What conditions can ask about, by their keys in lower case."""
    context = {
        "aws:currenttime": now.isoformat(),
        "aws:epochtime": str(int(now.timestamp())),
        "aws:principalaccount": identity.account_id,
        "aws:principalarn": identity.arn,
        "aws:principalisawsservice": "false",
        "aws:principaltype": "User" if identity.user_name else "Account",
        "aws:requestedregion": region,
        "aws:securetransport": str(exchange.scheme == "https").lower(),
        "aws:viaawsservice": "false",
    }
    if exchange.client_address is not None:
        context["aws:sourceip"] = exchange.client_address
    if identity.user_name:
        context["aws:username"] = identity.user_name
    return context
