# SPDX-License-Identifier: Apache-2.0
"""Fair queues: on a standard queue a message group is a tenant, and messages are received in the order of turns.

Contract, section 9, as start-time fair queueing: the queue's clock is the highest turn received; a tenant's messages
draw one turn after the other, never behind the clock, each when it becomes visible. A message without a group has the
clock's turn of its sending, for good. A queue that never saw a group has turn 0 throughout: the order of sending.
"""

from tests.model.state import FIVE_MINUTES, Tenant

NEVER = 0
PROMOTED_AT_ONCE = {False: 100, True: 20}  # by whether the queue is fair


def draw(state, queue, message):
    """A message is sent; after five quiet minutes its tenant's debt is forgotten.

    A delayed one is a send like any other, and draws later.
    """
    message.turn = queue.turn
    if message.group is None:
        return
    queue.fair = True
    tenant = queue.tenants.get(message.group)
    if tenant is None or state.now - tenant.last_sent_at > FIVE_MINUTES:
        tenant = queue.tenants[message.group] = Tenant(queue.turn - 1, state.now)
    tenant.last_sent_at = state.now
    if not message.visible_at:
        tenant.last_turn = message.turn = max(tenant.last_turn + 1, queue.turn)


def draw_again(queue, message):
    """A message comes back, from flight or from a delay: behind what its tenant has waiting.

    That is no send, and forgets no debt: else a tenant whose messages fail would come before the others each time.
    """
    if message.group is None or not queue.fair:
        return
    tenant = queue.tenants.setdefault(message.group, Tenant(-1, NEVER))
    tenant.last_turn = message.turn = max(tenant.last_turn + 1, queue.turn)


def promote(state, queue):
    """Before a receive: messages whose delay or timeout has ended draw their turns, those due longest first."""
    due = [message for message in queue.messages if 0 < message.visible_at <= state.now]
    due.sort(key=lambda message: (message.visible_at, message.receipt is not None, message.number))
    for message in sorted(due[: PROMOTED_AT_ONCE[queue.fair]], key=lambda message: message.number):
        message.visible_at = 0
        state.happened["promoted from flight" if message.receipt else "promoted from a delay"] += 1
        draw_again(queue, message)
