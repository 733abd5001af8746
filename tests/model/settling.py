# SPDX-License-Identifier: Apache-2.0
"""DeleteMessage, ChangeMessageVisibility and their batches. Contract, sections 0 and 6."""

# ruff: noqa: N803 - SQS's parameters have SQS's names

from tests.model import fairness
from tests.model.receiving import changed, remove
from tests.model.sending import check_batch, each_entry
from tests.model.state import (
    IN_FLIGHT_LONGEST,
    SECOND,
    Refusal,
    bad_value,
    is_expired,
    is_visible,
    missing,
)

_UNAVAILABLE = "Message does not exist or is not available for visibility timeout change"


def delete_message(state, QueueUrl, ReceiptHandle):
    queue = state.queue(QueueUrl)
    return _delete(state, queue, ReceiptHandle)


def delete_message_batch(state, QueueUrl, Entries):
    """Entries have no order among themselves: a message that one of them deletes is gone for all others."""
    queue = state.queue(QueueUrl)
    check_batch("DeleteMessageBatchRequestEntry", Entries)
    for entry in Entries:
        handle = entry["ReceiptHandle"]
        receipt = state.receipts.get(handle)
        if receipt is None or receipt.queue is not queue:
            continue
        if is_held(state, queue, handle, receipt.message):
            remove(state, receipt.message)
    return each_entry(Entries, lambda entry: _delete(state, queue, entry["ReceiptHandle"]))


def change_message_visibility(state, QueueUrl, ReceiptHandle, VisibilityTimeout):
    queue = state.queue(QueueUrl)
    return _change(state, queue, ReceiptHandle, VisibilityTimeout, unavailable)


def change_message_visibility_batch(state, QueueUrl, Entries):
    queue = state.queue(QueueUrl)
    check_batch("ChangeMessageVisibilityBatchRequestEntry", Entries)
    return each_entry(Entries, lambda entry: _change_entry(state, queue, entry))


def _change_entry(state, queue, entry):
    if not entry["ReceiptHandle"]:
        raise missing("ReceiptHandle")
    if "VisibilityTimeout" not in entry:
        raise missing("VisibilityTimeout")
    return _change(state, queue, entry["ReceiptHandle"], entry["VisibilityTimeout"], unavailable_entry)


def find_receipt(state, queue, handle):
    if not handle:
        raise missing("ReceiptHandle")
    receipt = state.receipts.get(handle)
    if receipt is None:
        text = f'The input receipt handle "{handle}" is not a valid receipt handle.'
        raise Refusal("ReceiptHandleIsInvalid", text)
    if receipt.queue is not queue:
        text = f'The receipt handle "{handle}" is not valid for this queue.'
        raise Refusal("ReceiptHandleIsInvalid", text)
    return receipt


def standing_of(state, queue, handle, message):
    """The state of a handle's message: gone, moved, replaced, ended, or current."""
    if message.queue is None or is_expired(state, message.queue, message):
        return "gone"
    if message.queue is not queue:
        return "moved"
    if message.receipt != handle:
        return "replaced"
    return "ended" if is_visible(state, message) else "current"


def is_held(state, queue, handle, message):
    """Whether the handle's lease still runs, even beyond retention: then a delete removes the message."""
    return message.queue is queue and message.receipt == handle and not is_visible(state, message)


def _expired(handle):
    return bad_value(handle, "ReceiptHandle", "The receipt handle has expired.")


def _lenient(state, queue):
    """Whether any handle is enough, as in Amazon's standard queues of today."""
    return state.compat == "aws" and not queue.fifo


def _too_old(state, receipt):
    return state.now - receipt.received_at > IN_FLIGHT_LONGEST


def _delete(state, queue, handle):
    receipt = find_receipt(state, queue, handle)
    message = receipt.message
    standing = standing_of(state, queue, handle, message)
    state.happened[f"delete by a handle: {standing}"] += 1
    if standing == "gone":
        if is_held(state, queue, handle, message):
            remove(state, message)
        return {}
    if standing != "current" and (not _lenient(state, queue) or _too_old(state, receipt)):
        raise _expired(handle)
    if standing != "moved":
        remove(state, message)
    return {}


def unavailable(handle):
    return bad_value(handle, "ReceiptHandle", f"{_UNAVAILABLE}.")


def unavailable_entry(_handle):
    return Refusal("ReceiptHandleIsInvalid", _UNAVAILABLE)


def _change(state, queue, handle, timeout, unavailable):
    if not handle:
        raise missing("ReceiptHandle")
    check_timeout(timeout)
    receipt = find_receipt(state, queue, handle)
    message = receipt.message
    standing = standing_of(state, queue, handle, message)
    state.happened[f"change by a handle: {standing}"] += 1
    if standing == "gone" or (standing == "moved" and _lenient(state, queue)):
        raise unavailable(handle)
    if standing != "current" and not _lenient(state, queue):
        if state.compat == "aws":
            raise _expired(handle)
        raise Refusal("AWS.SimpleQueueService.MessageNotInflight")
    if _too_old(state, receipt):
        raise _expired(handle)
    change(state, queue, receipt, timeout)
    return {}


def check_timeout(timeout):
    if not 0 <= timeout <= 43_200:
        raise bad_value(timeout, "VisibilityTimeout", "Must be between 0 and 43200, if provided.")


def change(state, queue, receipt, timeout):
    """Change the timeout of a message that may be changed. A message that is not in flight stays as it is."""
    message = receipt.message
    if state.now - (message.received_at or receipt.received_at) + timeout * SECOND > IN_FLIGHT_LONGEST:
        reason = "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
        raise bad_value(timeout, "VisibilityTimeout", reason)
    if message.receipt is not None and not is_visible(state, message):
        message.visible_at = state.now + timeout * SECOND if timeout else 0
        if queue.fifo:
            changed(state, queue, message)
        elif not timeout:
            fairness.draw_again(queue, message)
