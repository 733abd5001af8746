"""What a RedrivePolicy needs of the other queue: that it exists, is of the same type and allows it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqsqlite.actions import lookup
from sqsqlite.contract import queue_attributes as attributes
from sqsqlite.contract.names import queue_arn
from sqsqlite.errors import QueueDoesNotExist

if TYPE_CHECKING:
    from sqsqlite.actions.caller import Caller
    from sqsqlite.store.transaction import Transaction


def check(
    tx: "Transaction",
    columns: Mapping[str, object],
    supplied: Mapping[str, str],
    *,
    fifo: bool,
    name: str,
    caller: "Caller",
) -> None:
    """Refuse a RedrivePolicy whose target is missing, of the other type, this queue itself, or doesn't permit it.

    compat="aws" takes the queue itself, as Amazon does; what fails there stays receivable.

    Raises:
        InvalidParameterValue: with the policy and the reason.
    Source: developer guide, "Using dead-letter queues".
    """
    target_arn = columns.get("dead_letter_target_arn")
    if not isinstance(target_arn, str):
        return
    policy = supplied["RedrivePolicy"]
    try:
        target = lookup.find_row(tx.execute, target_arn, caller)
    except QueueDoesNotExist:
        raise attributes.redrive_policy_error(policy, "Dead letter target does not exist.") from None
    # The whole ARN: its region and partition find no queue, but name one of somewhere else.
    if target_arn != queue_arn(tx.settings.region, caller.account_id, target["name"]):
        raise attributes.redrive_policy_error(policy, "Dead letter target does not exist.")
    if bool(target["fifo"]) != fifo:
        raise attributes.redrive_policy_error(
            policy, "Dead-letter queue must be same type of queue as the source."
        )
    if target["name"] == name and tx.settings.compat != "aws":
        raise attributes.redrive_policy_error(
            policy, "Dead letter target must not be the source queue itself."
        )
    allowed = target["redrive_allow_policy"]
    source_arn = queue_arn(tx.settings.region, caller.account_id, name)
    if allowed is not None and not attributes.redrive_allowed(allowed, source_arn):
        raise attributes.redrive_policy_error(
            policy, "Queue does not have permission to use the dead-letter queue: see its RedriveAllowPolicy."
        )
