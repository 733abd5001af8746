# SPDX-License-Identifier: Apache-2.0
"""Who may do what with a queue. Its own account may do everything that its Policy does not deny; others what it allows.

Source: SQS developer guide, "Overview of managing access in Amazon SQS", "Amazon SQS API permissions"; IAM user guide,
"Policy evaluation logic", for an account whose users have no policies of their own.
"""

from collections.abc import Mapping
from datetime import datetime

from sqsqlite.access.exchange import Exchange, Identity
from sqsqlite.access.keys import find_policy
from sqsqlite.access.rules import rules_of, single
from sqsqlite.actions import move_tasks, queue_rows
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract import requests
from sqsqlite.contract.names import is_queue_arn, queue_arn, queue_name, queue_url
from sqsqlite.contract.policy_permissions import GRANTABLE
from sqsqlite.errors import AccessDenied
from sqsqlite.store.store import Store

# A policy can't deny these to the queue's account, so that it can repair the policy. Its users can be denied them.
NEVER_DENIED_TO_OWNER = frozenset({"AddPermission", "RemovePermission", "SetQueueAttributes"})
_WITHOUT_QUEUE = (requests.CreateQueue, requests.ListQueues)


def authorize(
    store: Store,
    exchange: Exchange,
    identity: Identity,
    request: requests.Request,
    caller: Caller,
    now: datetime,
) -> Caller:
    """Return the caller for the operation; for another account's queue, with the account as the sender.

    Args:
        now: for conditions on the time.

    Raises:
        AccessDenied: the queue's Policy denies the request; or the queue would be another account's, existing or not,
            and no Policy allows the request.
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
    # A missing queue gets the same answer as a forbidden one: the answer must not show which names exist.
    if row is None or (not is_own and single(request.action) not in GRANTABLE):
        raise denied
    context = context_of(exchange, identity, store.settings.region, now)
    verdict = _verdict(store, identity, request.action, place, row[0], context)
    if verdict is False or (verdict is None and not is_own):
        raise denied
    return caller if is_own else caller._replace(sender_id=caller.account_id)


def authorize_move(
    store: Store,
    exchange: Exchange,
    identity: Identity,
    request: requests.StartMessageMoveTask,
    caller: Caller,
    now: datetime,
) -> None:
    """Check the rights that a move task will use on each of its queues.

    Without a destination the messages return to the queues that they came from. The check then reads all dead letters
    of the source, a second for a million of them, so call it in a thread.

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
            continue  # the operation will refuse it
        row = find_policy(store, *place)
        if row is not None and _verdict(store, identity, action, place, row[0], context) is False:
            raise _denied(caller, *place)


def _origins(store: Store, request: requests.StartMessageMoveTask, caller: Caller) -> list[str]:
    """Return the ARNs of the queues that the messages of a move task's source came from."""
    with store.reading() as snapshot:
        return move_tasks.list_origins(snapshot, request.source_arn, caller)


def _denied(caller: Caller, owner: str, name: str) -> AccessDenied:
    return AccessDenied(f"Access to the resource {queue_url(caller.base_url, owner, name)} is denied.")


def _verdict(
    store: Store,
    identity: Identity,
    action: str,
    place: tuple[str, str],
    text: str | None,
    context: Mapping[str, str],
) -> bool | None:
    """Return the decision of the Policy of the queue at `place`, as `Rules.decide`; None without a Policy."""
    rules = None if text is None else rules_of(text, queue_arn(store.settings.region, *place))
    return None if rules is None else rules.decide(identity, action, context)


def place_of(store: Store, request: requests.Request, caller: Caller) -> tuple[str, str] | None:
    """Return (account, name) of the queue that a request is for; None: it names no queue, or an impossible one."""
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


def _place_of_arn(arn: str, caller: Caller) -> tuple[str, str] | None:
    if not is_queue_arn(arn):
        return None
    account_id, name = queue_name(arn)
    return account_id or caller.account_id, name


def context_of(exchange: Exchange, identity: Identity, region: str, now: datetime) -> dict[str, str]:
    """Return the values that conditions can ask for, by their keys in lower case."""
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
