# SPDX-License-Identifier: Apache-2.0
"""What the tests of requests and replies share: a worker that answers, and a look at the queues of replies."""

import contextlib
import threading

from sqsqlite.replies import RequesterGone, Responder
from sqsqlite.replies.addresses import HOST_PREFIX


def name_of(door, queue="orders"):
    """What this door takes for a queue."""
    if hasattr(door, "meta") and door.meta.endpoint_url.startswith("http://127"):
        return door.get_queue_url(QueueName=queue)["QueueUrl"]
    return queue


class Worker:
    """Answers every request with its body in capitals, on a thread of its own, until it has answered `number`."""

    def __init__(self, door, number=1, queue="orders"):
        self._client = getattr(door, "client", door)
        self._responder = Responder(door)
        self._url = name_of(door, queue)
        self._number = number
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self):
        answered = 0
        while answered < self._number:
            got = self._client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=20, MessageAttributeNames=["All"]
            )
            for message in got.get("Messages", []):
                with contextlib.suppress(RequesterGone):  # as a worker does: the work is done all the same
                    length = len(message["Body"])
                    self._responder.reply(message, message["Body"].upper(), attributes={"length": length})
                self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
                answered += 1

    def join(self):
        self._thread.join()


def host_queues(sqs):
    return [queue.name for queue in sqs.queues(HOST_PREFIX)]
