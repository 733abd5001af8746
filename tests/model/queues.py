# SPDX-License-Identifier: Apache-2.0
"""Queues: create, delete, find, list, purge, attributes, tags. Contract, sections 3.1 to 3.8 and 3.16 to 3.18."""

# ruff: noqa: N803 - SQS's parameters have SQS's names

import re

from tests.model import attributes
from tests.model.receiving import delays_changed
from tests.model.state import MINUTE, SECOND, Queue, Refusal, invalid, missing


def create_queue(state, QueueName, Attributes=None, tags=None):
    supplied = Attributes or {}
    fifo = supplied.get("FifoQueue", "").lower() == "true"
    _check_name(QueueName, fifo, supplied)
    queue = state.queues.get(QueueName)
    if queue is not None:
        parsed = attributes.parse(state, QueueName, supplied, fifo=fifo, current=queue.attributes)
        name = attributes.different(queue, parsed)
        if name is not None:
            text = f"A queue already exists with the same name and a different value for attribute {name}"
            raise Refusal("QueueAlreadyExists", text)
        return {"QueueUrl": queue.url}
    parsed = attributes.parse(state, QueueName, supplied, fifo=fifo, current=None)
    if state.now - state.deleted.get(QueueName, -MINUTE) < MINUTE:
        raise Refusal(
            "AWS.SimpleQueueService.QueueDeletedRecently",
            "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
        )
    made = {**attributes.DEFAULTS, **(attributes.FIFO_DEFAULTS if fifo else {})}
    attributes.apply(made, parsed)
    queue = Queue(QueueName, fifo, state.now, state.now, made, dict(tags or {}))
    state.queues[QueueName] = queue
    return {"QueueUrl": queue.url}


def _check_name(name, fifo, supplied):
    plain = re.fullmatch("[A-Za-z0-9_-]{1,80}", name)
    if fifo:
        if not (re.fullmatch("[A-Za-z0-9_-]{1,75}[.]fifo", name)):
            raise invalid(
                "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, "
                "must end with .fifo suffix and be 1 to 80 in length."
            )
    elif not plain:
        raise invalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
    elif "FifoQueue" in supplied:
        raise attributes.unknown("FifoQueue")


def delete_queue(state, QueueUrl):
    queue = state.queue(QueueUrl)
    queue.forget_messages()
    del state.queues[queue.name]
    state.deleted[queue.name] = state.now
    return {}


def get_queue_url(state, QueueName):
    return {"QueueUrl": state.queue(QueueName).url}


def list_queues(state, QueueNamePrefix="", MaxResults=1000):
    """The first page; its NextToken is the walk's to compare."""
    urls = sorted(queue.url for name, queue in state.queues.items() if name.startswith(QueueNamePrefix))
    return _page("QueueUrls", urls, MaxResults)


def list_dead_letter_source_queues(state, QueueUrl, MaxResults=1000):
    target = state.queue(QueueUrl)
    urls = sorted(queue.url for queue in sources_of(state, target.arn))
    return {"queueUrls": [], **_page("queueUrls", urls, MaxResults)}


def sources_of(state, arn):
    """The queues whose dead letters go to the queue of this ARN."""
    return [
        queue
        for queue in state.queues.values()
        if f'"deadLetterTargetArn": "{arn}"' in queue.attributes.get("RedrivePolicy", "")
    ]


def _page(key, urls, most):
    answer = {key: urls[:most]} if urls else {}
    if len(urls) > most:
        answer["NextToken"] = "..."
    return answer


def get_queue_attributes(state, QueueUrl, AttributeNames=()):
    queue = state.queue(QueueUrl)
    shown = attributes.show(state, queue, AttributeNames)
    return {"Attributes": shown} if shown else {}


def set_queue_attributes(state, QueueUrl, Attributes):
    queue = state.queue(QueueUrl)
    parsed = attributes.parse(state, queue.name, Attributes, fifo=queue.fifo, current=queue.attributes)
    before = queue.seconds("DelaySeconds")
    attributes.apply(queue.attributes, parsed)
    queue.modified_at = state.now
    if queue.fifo and queue.seconds("DelaySeconds") != before:
        delays_changed(state, queue, before * SECOND)
    return {}


def purge_queue(state, QueueUrl):
    queue = state.queue(QueueUrl)
    if queue.purged_at is not None and state.now - queue.purged_at < MINUTE:
        text = f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds."
        raise Refusal("AWS.SimpleQueueService.PurgeQueueInProgress", text)
    queue.forget_messages()
    queue.purged_at = state.now
    return {}


def tag_queue(state, QueueUrl, Tags):
    queue = state.queue(QueueUrl)
    if not Tags:
        raise missing("Tags")
    if len(queue.tags.keys() | Tags.keys()) > 50:
        raise invalid(f"Too many tags added for queue {queue.name}.")
    queue.tags.update(Tags)
    return {}


def untag_queue(state, QueueUrl, TagKeys):
    queue = state.queue(QueueUrl)
    if not TagKeys:
        raise invalid("Tag keys must be between 1 and 128 characters in length.")
    for key in TagKeys:
        queue.tags.pop(key, None)
    return {}


def list_queue_tags(state, QueueUrl):
    queue = state.queue(QueueUrl)
    return {"Tags": dict(queue.tags)} if queue.tags else {}
