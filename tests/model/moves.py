# SPDX-License-Identifier: Apache-2.0
"""Message move tasks. Contract, section 10.3.

A task goes once through its source: oldest first, or FIFO group by group. Of what was there at its start it takes what
can be received when its turn comes, and passes the rest; where a message has no queue to go to, it stays, and the task
fails in the end. What it moves is a new message.
"""

# ruff: noqa: N803 - SQS's parameters have SQS's names

import itertools
from dataclasses import dataclass

from tests.model import fairness, sending
from tests.model.queues import sources_of
from tests.model.receiving import of_group, remove
from tests.model.state import (
    SECOND,
    Message,
    Queue,
    Refusal,
    counts,
    invalid,
    is_expired,
    is_visible,
    missing,
)

RUNNING, COMPLETED, CANCELLED, FAILED = "RUNNING", "COMPLETED", "CANCELLED", "FAILED"
LONGEST = 36 * 3600 * SECOND
MEMORY = 10  # the number of a source's tasks that are remembered


@dataclass(eq=False)
class Task:
    """`paid_until`: with a rate each message takes its part of a second; the parts up to here are used."""

    handle: str
    source: Queue
    source_arn: str
    destination_arn: str | None
    rate: int | None
    purged_at: int | None
    last_number: int
    to_move: int
    started_at: int
    paid_until: int
    status: str = RUNNING
    reason: str | None = None
    moved: int = 0
    cursor: tuple[int, int] = (-1, -1)

    @property
    def due_at(self):
        """When the next messages may go. With a rate, they go in portions of a tenth of a second."""
        if self.rate is None:
            return self.started_at
        return self.paid_until + _takes(self.rate, max(1, self.rate // 10))


def _takes(rate, count):
    return -(-count * SECOND // rate)


def start_message_move_task(state, SourceArn, DestinationArn=None, MaxNumberOfMessagesPerSecond=None):
    source = _existing(state, SourceArn, "SourceArn")
    if not sources_of(state, SourceArn):
        raise invalid("Source queue must be configured as a Dead Letter Queue.")
    if DestinationArn is not None:
        destination = _existing(state, DestinationArn, "DestinationArn")
        if destination is source or destination.fifo != source.fifo:
            raise invalid(f"Value {DestinationArn} for parameter DestinationArn is invalid.", whole=False)
    if any(task.status == RUNNING and task.source_arn == SourceArn for task in state.tasks):
        raise invalid(
            "There is already a task running. "
            "Only one active task is allowed for a source queue arn at a given time."
        )
    task = Task(
        handle=f"task {state.number()}",
        source=source,
        source_arn=SourceArn,
        destination_arn=DestinationArn,
        rate=MaxNumberOfMessagesPerSecond,
        purged_at=source.purged_at,
        last_number=state.number(),
        to_move=counts(state, source)[0],
        started_at=state.now,
        paid_until=state.now,
    )
    state.tasks.append(task)
    return {"TaskHandle": task.handle}


def _existing(state, arn, parameter):
    queue = state.queue_of_arn(arn)
    if queue is None:
        text = f"The resource that you specified for the {parameter} parameter doesn't exist."
        raise Refusal("ResourceNotFoundException", text)
    return queue


def list_message_move_tasks(state, SourceArn, MaxResults=1):
    _existing(state, SourceArn, "SourceArn")
    tasks = [task for task in state.tasks if task.source_arn == SourceArn]
    return {"Results": [_shown(task) for task in reversed(tasks[-min(MaxResults, MEMORY) :])]}


def _shown(task):
    running = task.status == RUNNING
    shown = {
        "TaskHandle": task.handle if running else None,
        "Status": task.status,
        "SourceArn": task.source_arn,
        "DestinationArn": task.destination_arn,
        "MaxNumberOfMessagesPerSecond": task.rate,
        "ApproximateNumberOfMessagesMoved": task.moved,
        "ApproximateNumberOfMessagesToMove": task.to_move,
        "FailureReason": None if running else task.reason,
        "StartedTimestamp": task.started_at,
    }
    return {name: value for name, value in shown.items() if value is not None}


def cancel_message_move_task(state, TaskHandle):
    if not TaskHandle:
        raise missing("TaskHandle")
    task = next((task for task in state.tasks if task.handle == TaskHandle), None)
    if task is None:
        raise invalid("Value for parameter TaskHandle is invalid.")
    _existing(state, task.source_arn, "SourceArn")
    if task.status != RUNNING:
        raise Refusal("ResourceNotFoundException")
    _end(state, task, CANCELLED)
    return {"ApproximateNumberOfMessagesMoved": task.moved}


def _end(state, task, status, reason=None):
    task.status = status
    task.reason = reason
    state.happened[f"move task {status.lower()}"] += 1


def go_on(state):
    """Continue the running tasks as far as possible by now. The task that has waited longest comes first."""
    while True:
        due = [task for task in state.tasks if task.status == RUNNING and task.due_at <= state.now]
        if not due:
            return
        _go_on(state, min(due, key=lambda task: task.due_at))


def _go_on(state, task):
    source = state.queue_of_arn(task.source_arn)
    if source is not task.source or source.purged_at != task.purged_at:
        _end(state, task, COMPLETED)
    elif state.now - task.started_at >= LONGEST:
        _end(state, task, FAILED, "MaximumTaskDurationExceeded")
    elif task.destination_arn is not None and state.queue_of_arn(task.destination_arn) is None:
        _end(state, task, FAILED, "AWS.SimpleQueueService.NonExistentQueue")
    else:
        chosen, is_last = _choose(state, task)
        moved = [message for messages in chosen.values() for message in messages]
        for destination, messages in chosen.items():
            for message in messages:
                _put(state, destination, message)
                state.happened["moved back in a chain"] += len(_steps_left(destination, message)) > 0
        for message in moved:
            remove(state, message)
        task.moved += len(moved)
        state.happened["moved by a task"] += len(moved)
        if is_last:
            _end(state, task, COMPLETED if task.reason is None else FAILED, task.reason)


def _choose(state, task):
    """The next messages by their destinations, and whether these are the last."""
    allowed = _allowed(state, task)
    chosen = {}
    for place, message in _by_group(state, task.source) if task.source.fifo else _by_age(task.source):
        if place <= task.cursor or message.number > task.last_number:
            continue
        if _is_movable(state, task, message):
            destination = _destination(state, task, message)
            if destination is not None:
                if not allowed:
                    return chosen, False
                chosen.setdefault(destination, []).append(message)
                allowed -= 1
                if task.rate is not None:
                    task.paid_until += _takes(task.rate, 1)
        task.cursor = place
    return chosen, True


def _allowed(state, task):
    """How many messages may go now: as many as the time since the last ones allows, but a second's worth at most."""
    if task.rate is None:
        return len(task.source.messages)
    task.paid_until = max(task.paid_until, state.now - SECOND)
    return (state.now - task.paid_until + 1) * task.rate // SECOND


def _by_age(queue):
    """Each message with its place."""
    found = [((one.sent_at, one.number), one) for one in queue.messages]
    return sorted(found, key=lambda item: item[0])


def _by_group(state, queue):
    """The same of what can be received from a FIFO queue: from each group that is free what nothing hidden precedes."""
    found = []
    for group_id, group in sorted(queue.groups.items(), key=lambda item: item[1].number):
        if group.ready_at <= state.now:
            front = itertools.takewhile(lambda one: is_visible(state, one), of_group(queue, group_id))
            found += [((group.number, one.number), one) for one in front]
    return found


def _is_movable(state, task, message):
    """Whether the message can be received, and was here at the start."""
    if message.died_at > task.started_at:
        return False
    return is_visible(state, message) and not is_expired(state, message.queue, message)


def _destination(state, task, message):
    arn = task.destination_arn or message.source_arn
    if arn is None:
        task.reason = task.reason or "CouldNotDetermineMessageSource"
        return None
    destination = state.queue_of_arn(arn)
    if destination is None:
        task.reason = task.reason or "AWS.SimpleQueueService.NonExistentQueue"
    return destination


def _steps_left(destination, message):
    """The remaining steps of a message's earlier way, after a move one step back, or to any other queue."""
    return message.source_arns[:-1] if message.source_arn == destination.arn else ()


def _put(state, destination, message):
    """A new message with the old one's content: visible at once, and a duplicate of no other."""
    number = state.number()
    copy = Message(
        number=number,
        queue=destination,
        message_id=f"message {number}",
        body=message.body,
        attributes=message.attributes,
        trace=message.trace,
        group=message.group,
        deduplication_id=message.deduplication_id,
        sequence=number if destination.fifo else None,
        sent_at=state.now,
        visible_at=0,
        source_arns=_steps_left(destination, message),
    )
    sending.put(state, destination, copy)
    if not destination.fifo:
        fairness.draw(state, destination, copy)
