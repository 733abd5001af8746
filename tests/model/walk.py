# SPDX-License-Identifier: Apache-2.0
"""A walk: one history, step by step through the model and through the engine, whose answers must be equal."""

from tests.model import steps
from tests.model.attributes import COUNTS
from tests.model.compare import Difference, Pairs, same, same_refusal
from tests.model.sqs_model import SQS
from tests.model.state import FIVE_MINUTES, MINUTE, SECOND, Refusal, counts

NOW = 1_800_000_000_000
LENGTHS = (
    1,
    1000,
    5_000,
    999,
    30_000,
    2_000,
    5_000,
    10_000,
    1,
    1000,
    5_000,
    30_000,
    MINUTE,
    1000,
    FIVE_MINUTES,
)
LENGTHS += (500, 1000, 100, 43_200 * SECOND)
SOON = MINUTE
FAR = 10
ALL = ("GetQueueAttributes", {"AttributeNames": ["All"]})
SETTINGS_CHANGED = {
    "SetQueueAttributes": ALL,
    "AddPermission": ALL,
    "RemovePermission": ALL,
    "TagQueue": ("ListQueueTags", {}),
    "UntagQueue": ("ListQueueTags", {}),
}


class Handle:
    """A receipt handle or a task handle, by either side's text."""

    def __init__(self, model, engine):
        self.model = model
        self.engine = engine

    def __repr__(self):
        return f"<{self.model}>"


class Walk:
    """One history.

    Args:
        engine: what opens the file, closes it, moves the clock and sweeps; see `engine.py`.
        mix: standard queues, FIFO queues or both; see `steps.pool`.
        fair: whether messages to standard queues have groups.

    Attributes:
        told: what was asked.
        done: ids of the messages that were deleted in transactions of the caller's, as the model has them.
    """

    def __init__(self, engine, *, compat="docs", in_flight_limits=None, mix=0, fair=False):
        self.engine = engine
        self.names = steps.pool(mix)
        self.model = SQS(NOW, compat, in_flight_limits)
        self.fair = fair
        self.pairs = Pairs()
        self.told = []
        self.done = []
        self._handles = []
        self._tasks = []
        self._fresh = 100

    # --- choices of the steps

    def fresh(self):
        self._fresh += 1
        return self._fresh

    def url(self, name):
        return f"http://localhost:9324/000000000000/{name}"

    def busy(self, number):
        """The name of a queue with visible messages, of the first queue if none has any."""
        state = self.model.state
        names = [queue.name for queue in state.queues.values() if counts(state, queue)[0]]
        return names[number % len(names)] if names else self.names[0]

    def permitted(self, number):
        """The name of a queue with a Policy, if there is one."""
        queues = self.model.state.queues.values()
        names = [queue.name for queue in queues if "Policy" in queue.attributes]
        return names[number % len(names)] if names else self.names[0]

    def mortal(self, number):
        """The name of a queue with visible messages that can die, if there is one."""
        state = self.model.state
        found = [queue for queue in state.queues.values() if "RedrivePolicy" in queue.attributes]
        names = [queue.name for queue in found if counts(state, queue)[0]]
        return names[number % len(names)] if names else self.busy(number)

    def dead(self, number):
        """The name of a queue with dead letters, of the second queue if none has any."""
        found = self.model.state.queues.values()
        names = [queue.name for queue in found if any(message.source_arn for message in queue.messages)]
        return names[number % len(names)] if names else next(name for name in self.names if name[0] == "b")

    @property
    def has_received(self):
        return bool(self._handles)

    def handle(self, recent):
        """(queue's name, handle), counted backwards from the latest receive. Odd numbers prefer a message in flight."""
        handles = self._handles
        if recent % 2:
            handles = [one for one in handles if self._is_current(one[1].model)] or handles
        return handles[-1 - recent // 2 % len(handles)]

    def in_flight_together(self):
        """(queue's name, handles) of each message group with more than one message in flight."""
        groups = {}
        for name, handle in self._handles:
            message = self.model.state.receipts[handle.model].message
            if message.group is not None and self._is_current(handle.model):
                groups.setdefault((name, message.group), {})[handle.model] = handle
        return [(name, list(found.values())) for (name, _), found in groups.items() if len(found) > 1]

    def _is_current(self, handle):
        message = self.model.state.receipts[handle].message
        return message.receipt == handle and message.visible_at > self.model.state.now

    def task(self, recent):
        return self._tasks[-1 - recent % len(self._tasks)] if self._tasks else "forged"

    # Steps

    def step(self, kind, door, numbers):
        if kind in steps.REQUESTS:
            self.request(*kind(self, *numbers), door)
        else:
            kind(self, *numbers)

    def request(self, action, params, door=0):
        self._prepare(action, params)
        self.told.append((action, params))
        try:
            expected = self.model.call(action, self.side(params, "model"))
        except Refusal as refusal:
            expected = refusal
        got = self.engine.call(door, action, self.side(params, "engine"))
        if isinstance(expected, Refusal):
            if not isinstance(got, tuple):
                raise Difference(f"{action}: {got} instead of {expected.code} ({expected.text})")
            same_refusal(self.pairs, expected, *got)
            outcome = expected.code
        elif isinstance(got, tuple):
            raise Difference(f"{action}: {got[0]} ({got[1]}) instead of {expected}")
        else:
            same(self.pairs, expected, got)
            self._keep_handles(params, expected, got)
            outcome = "entries failed" if "Failed" in expected else ""
        self.model.state.happened[f"{action} {outcome}".rstrip()] += 1
        self._compare_queue(action, params)

    def _prepare(self, action, params):
        """Sweep first, because a longer retention would bring back expired messages that were not swept yet."""
        if action == "SetQueueAttributes" and "MessageRetentionPeriod" in params["Attributes"]:
            upkeep(self)

    def side(self, params, side):
        """The parameters as one side expects them."""
        if isinstance(params, dict):
            return {name: self.side(value, side) for name, value in params.items()}
        if isinstance(params, list):
            return [self.side(value, side) for value in params]
        return getattr(params, side) if isinstance(params, Handle) else params

    def _keep_handles(self, params, expected, got):
        if "TaskHandle" in expected:
            self._tasks.append(Handle(expected["TaskHandle"], got["TaskHandle"]))
        for one, other in zip(expected.get("Messages", ()), got.get("Messages", ()), strict=True):
            handle = Handle(one["ReceiptHandle"], other["ReceiptHandle"])
            self._handles.append((params["QueueUrl"].rpartition("/")[2], handle))

    def _compare_queue(self, action, params):
        """After each request, compare its queue's counts, and after a change of the queue, the changed parts."""
        name = params.get("QueueUrl", "").rpartition("/")[2]
        queue = self.model.state.queues.get(name)
        if queue is None:
            return
        self._compare_counts_of(queue)
        if action in SETTINGS_CHANGED:
            read, asked = SETTINGS_CHANGED[action]
            asked = {"QueueUrl": queue.url, **asked}
            same(self.pairs, self.model.call(read, asked), self.engine.call(0, read, asked))

    def compare_all(self):
        for queue in list(self.model.state.queues.values()):
            self._compare_counts_of(queue)

    def _compare_counts_of(self, queue):
        params = {"QueueUrl": queue.url, "AttributeNames": list(COUNTS)}
        found = self.engine.call(0, "GetQueueAttributes", params)["Attributes"]
        got = tuple(int(found[name]) for name in COUNTS)
        expected = counts(self.model.state, queue)
        if got != expected:
            raise Difference(
                f"{queue.name}: counts {got} instead of {expected} (visible, in flight, delayed)"
            )

    def advance(self, milliseconds):
        self.model.advance(milliseconds)
        self.engine.advance(milliseconds)


def wait(walk, length):
    walk.told.append(("wait", LENGTHS[length]))
    walk.advance(LENGTHS[length])
    walk.compare_all()


def wait_for_instant(walk, which, offset):
    """To just before, to, or to just after one of the next instants at which something changes."""
    instants = walk.model.instants()
    reach = SOON if which < FAR else 14 * 86_400 * SECOND
    instants = [instant for instant in instants if instant < walk.model.state.now + reach]
    if instants:
        until = instants[which % len(instants)] + offset - 1
        walk.told.append(("wait", max(0, until - walk.model.state.now)))
        walk.advance(max(0, until - walk.model.state.now))
        walk.compare_all()


def upkeep(walk):
    """Sweeping may happen at any time, and never changes an answer."""
    walk.told.append(("upkeep", {}))
    walk.engine.upkeep()
    walk.model.upkeep()
    walk.compare_all()
    walk.model.state.happened["upkeep"] += 1


def reopen(walk):
    """Close the file and open it again: all state is in the file."""
    walk.told.append(("reopen", {}))
    walk.engine.reopen()
    walk.compare_all()
    walk.model.state.happened["reopened"] += 1


def fail(walk, queue, times):
    """Receive all messages of a queue and give them back at once, until some die of it."""
    name = walk.mortal(queue)
    for _ in range(times + 2):
        params = {"QueueUrl": walk.url(name), "MaxNumberOfMessages": 10, "VisibilityTimeout": 0}
        walk.request("ReceiveMessage", params)


def redrive(walk, queue, destination, rate, seconds):
    """Start a move task, after a few deaths, and let it run for a while."""
    fail(walk, queue, 2)
    walk.request(*steps.start_move(walk, queue % 12, destination, rate))
    upkeep(walk)
    for _ in range(seconds):
        wait(walk, 1)
        upkeep(walk)


def send_again(walk, which, offset):
    """Repeat a send just before, at or just after the end of its deduplication."""
    remembered = [
        (sent.at + FIVE_MINUTES, queue, deduplication_id, group)
        for queue in walk.model.state.queues.values()
        for deduplication_id, groups in queue.sent.items()
        for group, sent in groups.items()
        if sent.at + FIVE_MINUTES > walk.model.state.now + 1
    ]
    if remembered:
        ends_at, queue, deduplication_id, group = remembered[which % len(remembered)]
        milliseconds = ends_at + offset - 1 - walk.model.state.now
        walk.told.append(("wait", milliseconds))
        walk.advance(milliseconds)
        ids = {"MessageGroupId": group, "MessageDeduplicationId": deduplication_id}
        walk.request("SendMessage", {"QueueUrl": queue.url, "MessageBody": "again", **ids})


def split(walk, which, place, seconds):
    """Of messages of one group in flight give one back, or hold it longer than the others, and receive again."""
    groups = walk.in_flight_together()
    if not groups:
        name = next((name for name in walk.names if name in steps.FIFO), steps.STANDARD[0])
        entries = [steps.message(walk, name, number, 0, 5, 0, 0) for number in range(3)]
        batch = [{"Id": str(number), **entry} for number, entry in enumerate(entries)]
        walk.request("SendMessageBatch", {"QueueUrl": walk.url(name), "Entries": batch})
        receive_all(walk, name)
        groups = walk.in_flight_together()
    if not groups:
        return
    name, handles = groups[which % len(groups)]
    params = {"QueueUrl": walk.url(name), "ReceiptHandle": handles[place % len(handles)]}
    walk.request("ChangeMessageVisibility", {**params, "VisibilityTimeout": 60 * seconds})
    if seconds:
        wait_for_instant(walk, 0, 1)
    receive_all(walk, name)


def receive_all(walk, name):
    params = {"MaxNumberOfMessages": 10, "VisibilityTimeout": 10}
    walk.request("ReceiveMessage", {"QueueUrl": walk.url(name), **params})


OTHERS = {
    wait: (6, len(LENGTHS)),
    wait_for_instant: (13, FAR + 2, 3),
    upkeep: (4,),
    reopen: (1,),
    send_again: (1, 8, 3),
    split: (2, 4, 4, 2),
    fail: (3, 4, 3),
    redrive: (3, steps.QUEUE, 15, 6, 3),
}
