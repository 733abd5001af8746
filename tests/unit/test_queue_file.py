# SPDX-License-Identifier: Apache-2.0
"""Files of `serve --queues`, made in a real file of queues."""

import json

import pytest

import sqsqlite
from sqsqlite.api.queue_file import BadQueueFile, make_queues, read_queue_file
from sqsqlite.testing.files import lay

TOML = """
[queues.orders]                       # names a queue that comes later
VisibilityTimeout = 45                # SQS's name
receive_message_wait_time_seconds = 5 # Python's
dead_letter_queue = "orders-dead"
max_receive_count = 3
tags = { team = "shop" }

[queues.orders-dead]
message_retention_period = 1_209_600
redrive_allow_policy = { redrivePermission = "allowAll" }

[queues."payments.fifo"]
content_based_deduplication = true
"""

# As ElasticMQ's README shows it, with the parts about its own server.
ELASTICMQ = """
include classpath("application.conf")

node-address { protocol = http, host = "*", port = 9324, context-path = "" }
rest-sqs { enabled = true, bind-port = 9324, bind-hostname = "0.0.0.0", sqs-limits = strict }
generate-node-address = false

queues {
  queue1 {
    defaultVisibilityTimeout = 10 seconds
    delay = 1 minute
    receiveMessageWait = 0 seconds
    deadLettersQueue {
      name = "queue1-dead-letters"
      maxReceiveCount = 3 // from 1 to 1000
    }
    fifo = false
    contentBasedDeduplication = false
    tags { tag1 = "tagged1", tag2 = "tagged2" }
  }
  queue1-dead-letters { }
  payments { fifo = true, contentBasedDeduplication = "yes", deadLettersQueue { name = refused, maxReceiveCount = 1 } }
  refused { fifo = true }
  "named.fifo" { fifo = true, delay = 5000 }
}
"""

CIRCLE = """[queues.a]
dead_letter_queue = "b"
max_receive_count = 1
[queues.b]
dead_letter_queue = "a"
max_receive_count = 1
"""


@pytest.fixture
def sqs(tmp_path):
    with sqsqlite.connect(lay(tmp_path / "queues.db"), synchronous="OFF") as opened:
        yield opened


@pytest.fixture
def make(tmp_path, sqs):
    """Write a file and make its queues."""

    def make(text, name="queues.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        make_queues(sqs, path, read_queue_file(path))

    return make


def names(sqs):
    return [queue.name for queue in sqs.queues()]


def dead_letters(queue):
    policy = json.loads(queue.attributes["RedrivePolicy"])
    return policy["deadLetterTargetArn"].rpartition(":")[2], int(policy["maxReceiveCount"])


def test_toml_makes_queues_with_either_name_of_an_attribute(sqs, make):
    make(TOML)
    assert names(sqs) == ["orders", "orders-dead", "payments.fifo"]
    orders = sqs.queue("orders")
    found = (orders.attributes["VisibilityTimeout"], orders.attributes["ReceiveMessageWaitTimeSeconds"])
    assert found == ("45", "5")
    assert dead_letters(orders) == ("orders-dead", 3)
    assert orders.tags == {"team": "shop"}
    assert sqs.queue("orders-dead").attributes["MessageRetentionPeriod"] == "1209600"
    assert sqs.queue("payments.fifo").attributes["ContentBasedDeduplication"] == "true"


def test_the_configuration_of_elasticmq_makes_the_same_queues(sqs, make):
    make(ELASTICMQ, "elasticmq.conf")
    assert names(sqs) == ["named.fifo", "payments.fifo", "queue1", "queue1-dead-letters", "refused.fifo"]
    queue1 = sqs.queue("queue1")
    found = [queue1.attributes[name] for name in ("VisibilityTimeout", "DelaySeconds")]
    assert found == ["10", "60"]
    assert dead_letters(queue1) == ("queue1-dead-letters", 3)
    assert queue1.tags == {"tag1": "tagged1", "tag2": "tagged2"}
    assert dead_letters(sqs.queue("payments.fifo")) == ("refused.fifo", 1)
    assert sqs.queue("payments.fifo").attributes["ContentBasedDeduplication"] == "true"
    assert sqs.queue("named.fifo").attributes["DelaySeconds"] == "5"


@pytest.mark.parametrize(("name", "text"), [("queues.toml", TOML), ("elasticmq.conf", ELASTICMQ)])
def test_queues_that_exist_with_equal_attributes_stay_with_their_messages(sqs, make, name, text):
    make(text, name)
    for queue in sqs.queues():
        if not queue.name.endswith(".fifo"):
            queue.send("kept", delay=0)
    before = sqs.queue("orders-dead" if name == "queues.toml" else "queue1-dead-letters").attributes
    make(text, name)
    after = sqs.queue("orders-dead" if name == "queues.toml" else "queue1-dead-letters").attributes
    assert after == before
    assert before["ApproximateNumberOfMessages"] == "1"


def test_a_dead_letter_queue_may_be_there_already(sqs, make):
    sqs.create_queue("dead")
    make('[queues.orders]\ndead_letter_queue = "dead"\nmax_receive_count = 2')
    assert dead_letters(sqs.queue("orders")) == ("dead", 2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[queues.orders\n", "at line 2"),
        (b"\xff", "can't be read: "),
        ("queue = 1", "queue is not known; allowed: queues"),
        ("queues = 3", "queues is 3: a table is allowed"),
        ("queues.orders = 3", "queues.orders is 3: a table is allowed"),
        (
            "[queues.a]\nvisibilty_timeout = 1",
            "queue a: visibilty_timeout is not known; allowed: delay_seconds, ",
        ),
        ("[queues.a]\nfifo = true", "queue a: fifo is not known"),
        ("[queues.a]\nvisibility_timeout = 1\nVisibilityTimeout = 1", "queue a: a setting is given twice"),
        ("[queues.a]\ntags = 3", "queue a: tags is 3: a table is allowed"),
        ("[queues.a]\ntags = { x = 3 }", "queue a: ParamValidationError: "),
        ("[queues.a]\nVisibilityTimeout = 43201", "queue a: InvalidAttributeValue: "),
        ("[queues.'a b']", "queue a b: InvalidParameterValue: "),
        (
            '[queues.a]\ndead_letter_queue = "b"',
            "queue a: ValueError: dead_letter_queue='b', max_receive_count=None",
        ),
        (
            '[queues.a]\ndead_letter_queue = "b"\nmax_receive_count = 1',
            "Dead letter target does not exist",
        ),
        (CIRCLE, "a -> b -> a: dead-letter queues in a circle"),
    ],
)
def test_a_bad_file_is_refused_and_nothing_is_made(sqs, make, text, reason):
    """Neither the good queue before the bad one."""
    with pytest.raises(BadQueueFile) as refused:
        make(f"[queues.first]\n{text}" if text[:2] == "[q" else text)
    assert "queues.toml: " in str(refused.value)
    assert reason in str(refused.value)
    assert names(sqs) == []


@pytest.mark.parametrize(
    ("queue", "reason"),
    [
        ("a = 3", "queue a: the queue: it is '3': an object is allowed"),
        ("a { copyTo = b }", "queue a: copyTo: SQSQLite does not send messages on to another queue"),
        ("a { moveTo = b }", "queue a: moveTo: SQSQLite does not send messages on to another queue"),
        ("a { delays = 1 s }", "queue a: delays: it is not known; allowed: defaultVisibilityTimeout, "),
        ("a { delay = soon }", "queue a: delay: it is 'soon': a duration is allowed, as in 10 seconds"),
        ("a { delay = 5 fortnights }", "queue a: delay: it is '5 fortnights': a duration is allowed"),
        ("a { delay = 500 ms }", "queue a: delay: it is '500 ms', which is 0.5 seconds"),
        ("a { delay = [] }", "queue a: delay: it is []: a duration is allowed"),
        ("a { delay = 1 hour }", "queue a: InvalidAttributeValue: "),
        ("a { fifo = maybe }", "queue a: fifo: it is 'maybe': true or false is allowed"),
        (
            "a.fifo { fifo = true }",
            'queue a: fifo: it is an object. A name with a dot needs quotes: "a.fifo"',
        ),
        ("a { tags = x }", "queue a: tags: it is 'x': an object is allowed"),
        ("a { deadLettersQueue = b }", "queue a: deadLettersQueue: it is 'b': an object is allowed"),
        ("a { deadLettersQueue { name = b } }", "name and maxReceiveCount are needed"),
        (
            "a { deadLettersQueue { name = b, maxReceiveCount = x } }",
            "maxReceiveCount: it is 'x': a whole number",
        ),
        ("a {", "elasticmq.conf: line 1: this { has no }"),
    ],
)
def test_a_bad_configuration_of_elasticmq_is_refused_and_nothing_is_made(sqs, make, queue, reason):
    with pytest.raises(BadQueueFile) as refused:
        make(f"queues {{ first {{ }}, {queue} }}" if queue != "a {" else "queues { a { }", "elasticmq.conf")
    assert "elasticmq.conf: " in str(refused.value)
    assert reason in str(refused.value)
    assert names(sqs) == []


def test_a_queue_with_other_attributes_is_named_and_nothing_is_made(sqs, make):
    sqs.create_queue("orders", visibility_timeout=30)
    with pytest.raises(BadQueueFile, match=r"queue orders: QueueNameExists: .*different value for attribute"):
        make(TOML)
    assert names(sqs) == ["orders"]
