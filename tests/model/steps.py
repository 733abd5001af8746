# SPDX-License-Identifier: Apache-2.0
"""A step of a walk: a name and small whole numbers, and what it asks of SQS where the walk stands.

The numbers choose among what there is: queues, handles received before, instants to come. So any list of steps is a
history that can be walked, and stays one when steps are taken out of it.
"""

import json

from tests.model.state import arn_of

STANDARD = ("a", "b", "c", "d")
FIFO = ("a.fifo", "b.fifo", "c.fifo")
NAMES = (STANDARD[0], FIFO[0], STANDARD[1], FIFO[1], STANDARD[2], FIFO[2], STANDARD[3])
MISSING = "nobody"

# None: left out. Refused values stand once in a long row of allowed ones.
VISIBILITY = (None, 5, 30, 0, 2, 1, 10, 60, 0, 5, 2, None, 0, 43_200, 43_199, 43_195, 43_201)
DELAYS = (*[None] * 12, 0, 5, 1, 10, 900, 901)
MOST = (None, 10, 1, 2, 3, 5, 10, 10, 4, 7, 10, 2, 3, 1, 11, 0)
BODIES = ("body 0", "body 1", "body 2", "Zürich", "x" * 1024, "x" * 1025)
ATTRIBUTES = {
    "city": {"DataType": "String", "StringValue": "Zürich"},
    "city.zip": {"DataType": "Number.int", "StringValue": "8001"},
    "blob": {"DataType": "Binary", "BinaryValue": b"\0\xff"},
}
TRACE = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988"}}
KMS = "alias/aws/sqs"
LABELS = ("alice", "bob")
GRANTS = (
    ["SendMessage"],
    ["ReceiveMessage", "DeleteMessage"],
    ["*"],
    ["ListQueues"],
    ["Dance"],
    ["*"] * 8,
    [],
)


def policy(target, most):
    return json.dumps({"deadLetterTargetArn": arn_of(target), "maxReceiveCount": most})


def sources(*names):
    return json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [arn_of(name) for name in names]})


SETTINGS = (
    {"VisibilityTimeout": "10"},
    {"VisibilityTimeout": "0"},
    {"VisibilityTimeout": "3"},
    {"DelaySeconds": "0"},
    {"DelaySeconds": "1"},
    {"DelaySeconds": "5"},
    {"DelaySeconds": "60"},
    {"MessageRetentionPeriod": "60"},
    {"MessageRetentionPeriod": "345600"},
    {"MaximumMessageSize": "1024"},
    {"MaximumMessageSize": "1048576", "ReceiveMessageWaitTimeSeconds": "0"},
    {"RedrivePolicy": ""},
    {"RedriveAllowPolicy": json.dumps({"redrivePermission": "denyAll"})},
    {"RedriveAllowPolicy": sources("a", "a.fifo")},
    {"RedriveAllowPolicy": ""},
    {"KmsMasterKeyId": KMS},
    {"KmsMasterKeyId": "", "KmsDataKeyReusePeriodSeconds": "300"},
    {"SqsManagedSseEnabled": "true"},
    {"KmsMasterKeyId": KMS, "SqsManagedSseEnabled": "true"},
    {"VisibilityTimeout": "43201"},
    {"VisibilityTimeout": "9", "Approximate": "1"},
    {"ContentBasedDeduplication": "true"},
    {"ContentBasedDeduplication": "false"},
    {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"},
    {"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"},
    {"FifoThroughputLimit": "perMessageGroupId"},
    {"FifoQueue": "false"},
    {"RedrivePolicy": "{}"},
)


def queue_name(walk, number):
    """The first queues most often, so that much happens in a few; sometimes one that does not exist."""
    return walk.names[number]


def pool(mix):
    """The 16 names that `queue_name` chooses from: of standard queues, of FIFO queues, or of both."""
    a, b, c, d = STANDARD
    e, f, g = FIFO
    return (
        (*[a] * 7, *[b] * 4, *[c] * 3, d, MISSING),
        (*[e] * 7, *[f] * 4, *[g] * 4, MISSING),
        (*[a] * 4, *[e] * 4, *[b] * 2, *[f] * 2, c, g, d, MISSING),
    )[mix]


def message(walk, queue, number, group, deduplication, delay, oddity):
    """Parameters of a send, or of an entry of a batch."""
    params = {"MessageBody": f"body {number}" if number >= len(BODIES) else BODIES[number]}
    fifo = queue.endswith(".fifo")
    if fifo or walk.fair:
        params["MessageGroupId"] = f"group {group}".replace(" ", "-")
    if fifo and deduplication < 8:
        params["MessageDeduplicationId"] = f"id-{deduplication if deduplication < 3 else walk.fresh()}"
    if not fifo or oddity == 9:
        params |= {"DelaySeconds": DELAYS[delay]} if DELAYS[delay] is not None else {}
    match oddity:
        case 1:
            params["MessageAttributes"] = ATTRIBUTES
        case 2:
            params["MessageSystemAttributes"] = TRACE
        case 3:
            params["MessageBody"] = ""
        case 4:
            params["MessageBody"] = "bell \a"
        case 5:
            params["MessageGroupId"] = "two words"
        case 6:
            params["MessageDeduplicationId"] = "id-0"
        case 7:
            params.pop("MessageGroupId", None)
        case 8:
            params["MessageAttributes"] = {"empty": {"DataType": "String", "StringValue": ""}}
    return params


def send(walk, queue, *numbers):
    name = queue_name(walk, queue)
    return "SendMessage", {"QueueUrl": walk.url(name), **message(walk, name, *numbers)}


def send_batch(walk, queue, count, number, group, spread, deduplication, odd_place, oddity, shape):
    """`spread` deals the entries to groups. One entry may be odd, and so may the batch itself."""
    name = queue_name(walk, queue)
    entries = []
    for place in range(count + 1):
        params = message(
            walk,
            name,
            (number + place) % 10,
            (group + place * spread) % 4,
            (deduplication + place) % 10,
            0,
            oddity if place == odd_place else 0,
        )
        entries.append({"Id": f"entry-{place}", **params})
    return "SendMessageBatch", {"QueueUrl": walk.url(name), "Entries": shaped(entries, shape)}


def shaped(entries, shape):
    """Sometimes a batch that is refused as a whole."""
    match shape:
        case 1:
            return []
        case 2:
            return (entries * 11)[:11]
        case 3:
            return [{**entry, "Id": "same"} for entry in entries * 2][:10]
        case 4:
            return [{**entries[0], "Id": "no id!"}]
    return entries


def receive(walk, queue, most, timeout, asked, attempt):
    """Half of the receives are from a queue that has messages."""
    name = queue_name(walk, 2 * (queue - 8)) if queue >= 8 else walk.busy(queue)
    params = {"QueueUrl": walk.url(name)}
    if MOST[most] is not None:
        params["MaxNumberOfMessages"] = MOST[most]
    if VISIBILITY[timeout] is not None:
        params["VisibilityTimeout"] = VISIBILITY[timeout]
    if asked:
        params["AttributeNames"] = (
            ["SentTimestamp"] if asked == 1 else ["Unknown"] if asked == 23 else ["All"]
        )
        params["MessageAttributeNames"] = (["All"], ["city.*"], ["blob", "AWS."])[asked % 3]
    if (attempt < 9 and name.endswith(".fifo")) or attempt == 23:
        params["ReceiveRequestAttemptId"] = f"attempt-{attempt % 2}"
    return "ReceiveMessage", params


def handled(walk, recent, form):
    """(URL, handle): mostly a handle with its own queue, else with another one, or a handle that was never issued."""
    name, handle = walk.handle(recent)
    match form:
        case 20:
            name = NAMES[(NAMES.index(name) + 2) % len(NAMES)]
        case 21:
            handle = "forged"
        case 22:
            handle = ""
        case 23:
            name = MISSING
    return walk.url(name), handle


def first_receive(walk):
    """Without a receive there is no message to settle."""
    return receive(walk, 0, 1, 0, 2, 10)


def delete(walk, recent, form):
    if not walk.has_received:
        return first_receive(walk)
    url, handle = handled(walk, recent, form)
    return "DeleteMessage", {"QueueUrl": url, "ReceiptHandle": handle}


def change(walk, recent, form, timeout):
    if not walk.has_received:
        return first_receive(walk)
    url, handle = handled(walk, recent, form)
    seconds = 15 if VISIBILITY[timeout] is None else VISIBILITY[timeout]
    params = {"QueueUrl": url, "ReceiptHandle": handle, "VisibilityTimeout": seconds}
    return "ChangeMessageVisibility", params


def _entries(walk, recent, count, form):
    """The URL of the first handle's queue, and the latest handles of any queue."""
    url, handle = handled(walk, recent, form)
    handles = [handle, *(walk.handle(recent + place)[1] for place in range(1, count + 1))]
    return url, [{"Id": f"entry-{place}", "ReceiptHandle": one} for place, one in enumerate(handles)]


def delete_batch(walk, recent, count, form, shape):
    if not walk.has_received:
        return first_receive(walk)
    url, entries = _entries(walk, recent, count, form)
    return "DeleteMessageBatch", {"QueueUrl": url, "Entries": shaped(entries, shape)}


def change_batch(walk, recent, count, form, timeout, shape):
    if not walk.has_received:
        return first_receive(walk)
    url, entries = _entries(walk, recent, count, form)
    for place, entry in enumerate(entries):
        seconds = VISIBILITY[(timeout + place) % len(VISIBILITY)]
        if seconds is not None:
            entry["VisibilityTimeout"] = seconds
    return "ChangeMessageVisibilityBatch", {"QueueUrl": url, "Entries": shaped(entries, shape)}


def create(walk, queue, setting):
    name = (*NAMES, "a", "bad name", "b.fifo")[queue]
    if name in FIFO and not any(known in FIFO for known in walk.names):
        name = STANDARD[queue % 4]
    attributes = dict(SETTINGS[setting]) if setting < len(SETTINGS) else {}
    if name.endswith(".fifo") and queue < len(NAMES):
        attributes["FifoQueue"] = "true"
    params = {"QueueName": name, "tags": {"made": "twice"}}
    return "CreateQueue", {**params, "Attributes": attributes} if attributes else params


def delete_queue(walk, queue):
    """Preferably a queue where less happens: its name cannot be used for a while."""
    return "DeleteQueue", {"QueueUrl": walk.url(queue_name(walk, 6 + 5 * queue // 8))}


def set_attributes(walk, queue, setting):
    return "SetQueueAttributes", {
        "QueueUrl": walk.url(queue_name(walk, queue)),
        "Attributes": SETTINGS[setting],
    }


def set_dead_letters(walk, queue, target, most):
    """Mostly a queue of the same type: then chains and loops arise."""
    name = queue_name(walk, queue)
    kind = FIFO if name.endswith(".fifo") else STANDARD
    others = [other for other in kind if other != name]
    chosen = (NAMES[0], NAMES[1], MISSING)[target - 13] if target >= 13 else others[target % len(others)]
    attributes = {"RedrivePolicy": policy(chosen, (1, 2, 3, 1, 2, 1, 3, 0)[most])}
    return "SetQueueAttributes", {"QueueUrl": walk.url(name), "Attributes": attributes}


def get_attributes(walk, queue, asked):
    names = (["All"], ["QueueArn", "Policy"], [], ["Unknown"], ["ContentBasedDeduplication"])[asked]
    return "GetQueueAttributes", {"QueueUrl": walk.url(queue_name(walk, queue)), "AttributeNames": names}


def get_url(walk, queue):
    return "GetQueueUrl", {"QueueName": queue_name(walk, queue)}


def list_queues(walk, prefix, most):
    params = {"QueueNamePrefix": ("", "a", "b", "nobody")[prefix]}
    return "ListQueues", {**params, "MaxResults": 2} if most else params


def list_sources(walk, queue, most):
    params = {"QueueUrl": walk.url(queue_name(walk, queue))}
    return "ListDeadLetterSourceQueues", {**params, "MaxResults": 1} if most else params


def purge(walk, queue):
    return "PurgeQueue", {"QueueUrl": walk.url(queue_name(walk, queue))}


def tag(walk, queue, key, value):
    tags = ({"team": f"t{value}"}, {"env": "", "team": "t0"}, {}, {f"key-{n}": "" for n in range(49)})[key]
    return "TagQueue", {"QueueUrl": walk.url(queue_name(walk, queue)), "Tags": tags}


def untag(walk, queue, key):
    keys = (["team"], ["env", "nothing"], [], ["team", *(f"key-{n}" for n in range(49))])[key]
    return "UntagQueue", {"QueueUrl": walk.url(queue_name(walk, queue)), "TagKeys": keys}


def list_tags(walk, queue):
    return "ListQueueTags", {"QueueUrl": walk.url(queue_name(walk, queue))}


def add_permission(walk, queue, label, grant, accounts):
    params = {
        "QueueUrl": walk.url(queue_name(walk, queue)),
        "Label": LABELS[label],
        "AWSAccountIds": (["123456789012"], ["123456789012", "210987654321"], [])[accounts % 7 // 3],
        "Actions": GRANTS[grant],
    }
    return "AddPermission", params


def remove_permission(walk, queue, label):
    """Mostly from a queue that has permissions."""
    name = queue_name(walk, queue) if queue >= 12 else walk.permitted(queue)
    return "RemovePermission", {"QueueUrl": walk.url(name), "Label": LABELS[label]}


def start_move(walk, queue, destination, rate):
    """Mostly from a queue that has dead letters, and mostly back to their sources."""
    name = queue_name(walk, queue) if queue >= 12 else walk.dead(queue)
    params = {"SourceArn": arn_of(name)}
    if destination < 5:
        kind = FIFO if name.endswith(".fifo") else STANDARD
        params["DestinationArn"] = arn_of((*kind, MISSING)[destination % (len(kind) + 1)])
    if rate < 3:
        params["MaxNumberOfMessagesPerSecond"] = (1, 2, 500)[rate]
    return "StartMessageMoveTask", params


def list_moves(walk, queue, most):
    name = queue_name(walk, queue) if queue >= 12 else walk.dead(queue)
    params = {"SourceArn": arn_of(name)}
    return "ListMessageMoveTasks", {**params, "MaxResults": 10} if most else params


def cancel_move(walk, recent, forged):
    return "CancelMessageMoveTask", {"TaskHandle": "forged" if forged == 7 else walk.task(recent)}


QUEUE = 16  # One more than the largest argument of queue_name; the other numbers below follow the same rule.
REQUESTS = {
    send: (14, QUEUE, 10, 4, 10, len(DELAYS), 30),
    send_batch: (6, QUEUE, 10, 10, 4, 3, 10, 10, 20, 50),
    receive: (24, QUEUE, len(MOST), len(VISIBILITY), 24, 24),
    delete: (9, 10, 24),
    delete_batch: (3, 8, 10, 24, 50),
    change: (8, 10, 24, len(VISIBILITY)),
    change_batch: (3, 8, 10, 24, len(VISIBILITY), 50),
    create: (4, 10, 2 * len(SETTINGS)),
    delete_queue: (1, QUEUE),
    set_attributes: (5, QUEUE, len(SETTINGS)),
    set_dead_letters: (4, QUEUE, 16, 8),
    get_attributes: (2, QUEUE, 5),
    get_url: (1, QUEUE),
    list_queues: (1, 4, 2),
    list_sources: (1, QUEUE, 2),
    purge: (2, 7),
    tag: (1, QUEUE, 4, 3),
    untag: (1, QUEUE, 4),
    list_tags: (1, QUEUE),
    add_permission: (2, QUEUE, 2, len(GRANTS), 7),
    remove_permission: (1, QUEUE, 2),
    start_move: (3, QUEUE, 15, 9),
    list_moves: (2, QUEUE, 2),
    cancel_move: (2, 4, 8),
}
"""Each kind of request: how often it comes, and how many values each of its numbers has."""
