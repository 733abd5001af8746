# SPDX-License-Identifier: Apache-2.0
"""A queue's attributes as Python's keyword arguments: the same in `create_queue` and in `set_attributes`."""

import json
from collections.abc import Mapping
from typing import Any, TypedDict

from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.contract.move_filter import HasArn
from sqsqlite.contract.names import queue_arn, queue_name
from sqsqlite.store.store import Store


class QueueSettings(TypedDict, total=False):
    """The keyword arguments; `SQS.create_queue` tells of each."""

    delay_seconds: int
    maximum_message_size: int
    message_retention_period: int
    receive_message_wait_time_seconds: int
    visibility_timeout: int
    redrive_policy: Mapping[str, Any] | str
    redrive_allow_policy: Mapping[str, Any] | str
    policy: Mapping[str, Any] | str
    kms_master_key_id: str
    kms_data_key_reuse_period_seconds: int
    sqs_managed_sse_enabled: bool
    content_based_deduplication: bool
    deduplication_scope: str
    fifo_throughput_limit: str
    dead_letter_queue: HasArn | str
    max_receive_count: int


_SHORT = ("dead_letter_queue", "max_receive_count")
_SQS_NAMES = {
    name: "".join(word.capitalize() for word in name.split("_"))
    for name in QueueSettings.__annotations__
    if name not in _SHORT
}


def attributes_of(store: Store, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes by SQS's names; a setting that is None is left out.

    Args:
        settings: those of `QueueSettings`.

    Raises:
        TypeError: another name.
        ValueError: only one of `dead_letter_queue` and `max_receive_count`, or either together with `redrive_policy`.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    unknown = given.keys() - QueueSettings.__annotations__.keys()
    if unknown:
        raise TypeError(
            f"{', '.join(sorted(unknown))}: no attribute of a queue; {', '.join(QueueSettings.__annotations__)} are"
        )
    short = [given.pop(name, None) for name in _SHORT]
    attributes = {_SQS_NAMES[name]: value for name, value in given.items()}
    if short != [None, None]:
        if "RedrivePolicy" in attributes:
            raise ValueError(
                "redrive_policy stands alone: dead_letter_queue and max_receive_count say the same"
            )
        attributes["RedrivePolicy"] = _short_policy(store, *short)
    return attributes


def _short_policy(store: Store, queue: Any, max_receive_count: Any) -> dict[str, Any]:
    """The RedrivePolicy of `dead_letter_queue` and `max_receive_count`."""
    if queue is None or max_receive_count is None:
        raise ValueError(
            f"dead_letter_queue={queue!r}, max_receive_count={max_receive_count!r}: "
            "both are needed, a queue and 1 to 1,000 receives"
        )
    return {"deadLetterTargetArn": arn_of(store, queue), "maxReceiveCount": max_receive_count}


def arn_of(store: Store, queue: HasArn | str) -> str:
    """The ARN of a queue that is given itself, or by its name, URL or ARN. It need not exist.

    Raises:
        QueueDoesNotExist: the text is not a name, URL or ARN.
    """
    if not isinstance(queue, str):
        return queue.arn
    account_id, name = queue_name(queue)
    return queue_arn(store.settings.region, account_id or LOCAL.account_id, name)


def attribute_texts(given: Mapping[str, Any]) -> dict[str, str]:
    """Python values as the texts that SQS's attributes are; None is left out."""
    texts = {}
    for name, value in given.items():
        if isinstance(value, bool):
            texts[name] = "true" if value else "false"
        elif isinstance(value, Mapping):
            texts[name] = json.dumps(dict(value))
        elif value is not None:
            texts[name] = str(value)
    return texts
