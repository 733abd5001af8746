# SPDX-License-Identifier: Apache-2.0
"""Settling in a transaction of the caller's: it succeeds only if it settles, whatever the mode. docs/transactions.md.

In a block the running lease's handle alone deletes or changes a message; what a batch leaves unsettled keeps the block
from committing until the caller has accepted it.
"""

# ruff: noqa: N803 - SQS's parameters have SQS's names

import copy

from tests.model import sending, settling
from tests.model.receiving import remove
from tests.model.state import Refusal, bad_value, is_visible, missing


class Block:
    """A transaction on the model's state, until `commit` or `roll_back`.

    Attributes:
        unsettled: the refusals of batch entries that the caller has not accepted.
        ended: ids of the messages that were deleted in it.
    """

    def __init__(self, state):
        self.state = state
        self.unsettled = []
        self.ended = []
        self._before = copy.deepcopy(state)

    def roll_back(self):
        """Restore the earlier state, except for outcomes that the caller already knows."""
        self._before.happened = self.state.happened
        return self._before

    def accept(self):
        accepted, self.unsettled = self.unsettled, []
        return accepted

    def call(self, action, params):
        """Carry an action out. Raises Refusal, and then has no effect."""
        return ACTIONS[action](self, **params)

    def delete(self, QueueUrl, ReceiptHandle):
        return self._delete(self.state.queue(QueueUrl), ReceiptHandle)

    def delete_batch(self, QueueUrl, Entries):
        queue = self.state.queue(QueueUrl)
        sending.check_batch("DeleteMessageBatchRequestEntry", Entries)
        return self._each(Entries, lambda entry: self._delete(queue, entry["ReceiptHandle"]))

    def delete_many(self, QueueUrl, Handles, MissingOk):
        """Delete all or none. The same message given twice counts once."""
        queue = self.state.queue(QueueUrl)
        going = []
        for place, handle in enumerate(Handles):
            try:
                message = settling.find_receipt(self.state, queue, handle).message
                standing = self._standing(queue, handle, message)
                if standing == "current" and message not in going:
                    going.append(message)
                if standing != "current" and not (MissingOk and standing == "gone"):
                    raise self._lost_delete(handle, standing)
            except Refusal as refusal:
                raise Refusal(
                    refusal.code, f"message {place}: {refusal.text}", reason=refusal.reason
                ) from None
        for message in going:
            self._remove(message)
        return {}

    def change(self, QueueUrl, ReceiptHandle, VisibilityTimeout):
        return self._change(
            self.state.queue(QueueUrl), ReceiptHandle, VisibilityTimeout, settling.unavailable
        )

    def change_batch(self, QueueUrl, Entries):
        queue = self.state.queue(QueueUrl)
        sending.check_batch("ChangeMessageVisibilityBatchRequestEntry", Entries)
        return self._each(
            Entries,
            lambda entry: self._change(
                queue, entry["ReceiptHandle"], entry["VisibilityTimeout"], settling.unavailable_entry
            ),
        )

    def send(self, **params):
        return sending.send_message(self.state, **params)

    def _each(self, entries, action):
        answer = sending.each_entry(entries, action)
        self.unsettled += [entry["refusal"] for entry in answer.get("Failed", ())]
        return answer

    def _standing(self, queue, handle, message):
        """A held message can also be deleted beyond its retention."""
        if settling.is_held(self.state, queue, handle, message):
            return "current"
        return settling.standing_of(self.state, queue, handle, message)

    def _delete(self, queue, handle):
        message = settling.find_receipt(self.state, queue, handle).message
        standing = self._standing(queue, handle, message)
        self.state.happened[f"delete in a block: {standing}"] += 1
        if standing != "current":
            raise self._lost_delete(handle, standing)
        self._remove(message)
        return {}

    def _remove(self, message):
        self.ended.append(message.message_id)
        remove(self.state, message)

    @staticmethod
    def _lost_delete(handle, standing):
        text = "Message does not exist." if standing == "gone" else "The receipt handle has expired."
        return bad_value(handle, "ReceiptHandle", text).because(standing)

    def _change(self, queue, handle, timeout, unavailable):
        state = self.state
        if not handle:
            raise missing("ReceiptHandle")
        settling.check_timeout(timeout)
        receipt = settling.find_receipt(state, queue, handle)
        standing = settling.standing_of(state, queue, handle, receipt.message)
        state.happened[f"change in a block: {standing}"] += 1
        if standing == "gone":
            raise unavailable(handle).because(standing)
        if standing != "current" and state.compat == "aws":
            raise self._lost_delete(handle, standing)
        if standing != "current":
            raise Refusal("AWS.SimpleQueueService.MessageNotInflight").because(standing)
        assert not is_visible(state, receipt.message)
        settling.change(state, queue, receipt, timeout)
        return {}


ACTIONS = {
    "SendMessage": Block.send,
    "DeleteMessage": Block.delete,
    "DeleteMessageBatch": Block.delete_batch,
    "delete_many": Block.delete_many,
    "ChangeMessageVisibility": Block.change,
    "ChangeMessageVisibilityBatch": Block.change_batch,
}
