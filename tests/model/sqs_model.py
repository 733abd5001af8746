# SPDX-License-Identifier: Apache-2.0
"""Amazon SQS in plain Python: lists, and a clock that `advance` moves. It imports nothing of `sqsqlite`.

Written from the contract, not from the engine, as short as the rules allow and without regard for speed: it finds each
answer by a look at all messages. `SQS.call` takes and returns what a boto3 client does, but raises `Refusal` and makes
up ids of its own ("message ...", "receipt ..."); a sequence number is an int.
"""

from tests.model import moves, permissions, queues, receiving, sending, settling
from tests.model.state import FIVE_MINUTES, MINUTE, SECOND, State

ACTIONS = {
    "CreateQueue": queues.create_queue,
    "DeleteQueue": queues.delete_queue,
    "GetQueueUrl": queues.get_queue_url,
    "ListQueues": queues.list_queues,
    "ListDeadLetterSourceQueues": queues.list_dead_letter_source_queues,
    "GetQueueAttributes": queues.get_queue_attributes,
    "SetQueueAttributes": queues.set_queue_attributes,
    "PurgeQueue": queues.purge_queue,
    "TagQueue": queues.tag_queue,
    "UntagQueue": queues.untag_queue,
    "ListQueueTags": queues.list_queue_tags,
    "AddPermission": permissions.add_permission,
    "RemovePermission": permissions.remove_permission,
    "SendMessage": sending.send_message,
    "SendMessageBatch": sending.send_message_batch,
    "ReceiveMessage": receiving.receive_message,
    "DeleteMessage": settling.delete_message,
    "DeleteMessageBatch": settling.delete_message_batch,
    "ChangeMessageVisibility": settling.change_message_visibility,
    "ChangeMessageVisibilityBatch": settling.change_message_visibility_batch,
    "StartMessageMoveTask": moves.start_message_move_task,
    "ListMessageMoveTasks": moves.list_message_move_tasks,
    "CancelMessageMoveTask": moves.cancel_message_move_task,
}


class SQS:
    """An account's queues.

    Args:
        now: the instant, milliseconds since 1970 UTC; `advance` moves it.
        compat: "docs" or "aws": what the contract's section 0 tells apart.
        in_flight_limits: how many messages a standard and a FIFO queue may have in flight.
    """

    def __init__(self, now, compat="docs", in_flight_limits=None):
        if in_flight_limits is None:
            in_flight_limits = (120_000, 20_000 if compat == "docs" else 120_000)
        self.state = State(compat=compat, in_flight_limits=in_flight_limits, now=now)

    def call(self, action, params):
        """Carry an action out. Raises Refusal."""
        return ACTIONS[action](self.state, **params)

    def advance(self, milliseconds):
        self.state.now += milliseconds

    def upkeep(self):
        """Do the work that may be done at any time: remove expired messages, and continue move tasks."""
        for queue in list(self.state.queues.values()):
            receiving.expire(self.state, queue)
        moves.go_on(self.state)

    def instants(self):
        """The future instants at which the state changes by itself, in order."""
        state = self.state
        found = {deleted_at + MINUTE for deleted_at in state.deleted.values()}
        for queue in state.queues.values():
            retention = queue.seconds("MessageRetentionPeriod") * SECOND
            found |= {message.visible_at for message in queue.messages}
            found |= {message.sent_at + retention for message in queue.messages}
            found |= {sent.at + FIVE_MINUTES for groups in queue.sent.values() for sent in groups.values()}
            found |= {attempt.at + FIVE_MINUTES for attempt in queue.attempts.values()}
            if queue.purged_at is not None:
                found.add(queue.purged_at + MINUTE)
        return sorted(instant for instant in found if instant > state.now)
