# SPDX-License-Identifier: Apache-2.0
"""A queue behind `sqsqlite serve`, for clients whose server is killed: each request is made once, on one connection.

It has those methods of sqsqlite.Queue that a storm uses. JSON over http.client: an SDK would try again by itself, and
hide what is to be seen.
"""

import http.client
import json
import time
from typing import Any

from sqsqlite.errors import InvalidParameterValue, MessageNotInflight

HOST = "127.0.0.1"
# Far beyond the time of an answer: a killed server resets its connections at once.
PATIENCE = 600  # s
_TOO_LATE = {
    "InvalidParameterValueException": InvalidParameterValue,
    "MessageNotInflight": MessageNotInflight,
}


class Unanswered(Exception):
    """The connection broke: the action was done, was not done, or may still be done."""


class RemoteMessage:
    """A received message."""

    def __init__(self, queue: "RemoteQueue", received: dict[str, Any]) -> None:
        self.body: str = received["Body"]
        self._queue = queue
        self._handle = received["ReceiptHandle"]

    def delete(self) -> None:
        self._queue.ask("DeleteMessage", ReceiptHandle=self._handle)

    def change_visibility(self, seconds: int) -> None:
        self._queue.ask("ChangeMessageVisibility", ReceiptHandle=self._handle, VisibilityTimeout=seconds)


class RemoteQueue:
    """A queue, by one connection, for one thread.

    Raises (each method that asks):
        Unanswered: the connection broke, or there was no server.
        InvalidParameterValue, MessageNotInflight: as the service answers.
    """

    def __init__(self, port: int, name: str) -> None:
        self._name = name
        self._connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)

    def __len__(self) -> int:
        names = [f"ApproximateNumberOfMessages{state}" for state in ("", "NotVisible", "Delayed")]
        answer = self.ask("GetQueueAttributes", AttributeNames=names)
        return sum(map(int, answer["Attributes"].values()))

    def until_served(self) -> None:
        """Wait until the server answers."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                len(self)
                return
            except Unanswered:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def send(self, body: str, *, delay: int | None = None) -> None:
        self.ask("SendMessage", MessageBody=body, **({} if delay is None else {"DelaySeconds": delay}))

    def send_many(self, bodies: list[str]) -> None:
        """Send ten bodies at most."""
        entries = [{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)]
        answer = self.ask("SendMessageBatch", Entries=entries)
        if len(answer["Successful"]) != len(bodies):
            raise RuntimeError(f"not all were sent: {answer}")

    def receive(self, max_messages: int, *, wait: int) -> list[RemoteMessage]:
        answer = self.ask("ReceiveMessage", MaxNumberOfMessages=max_messages, WaitTimeSeconds=wait)
        return [RemoteMessage(self, received) for received in answer.get("Messages", [])]

    def ask(self, action: str, **members: Any) -> dict[str, Any]:
        """The result of one action on the queue."""
        body = json.dumps({"QueueUrl": self._name, **members})
        headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
        try:
            self._connection.request("POST", "/", body, headers)
            response = self._connection.getresponse()
            content = response.read()
        except (ConnectionError, http.client.HTTPException) as error:
            self._connection.close()
            raise Unanswered(action) from error
        answer: dict[str, Any] = json.loads(content or b"{}")
        if response.status == http.HTTPStatus.OK:
            return answer
        refusal = _TOO_LATE.get(answer["__type"].partition("#")[2])
        if refusal is None:
            raise RuntimeError(f"{action}: {response.status} {answer}")
        raise refusal(answer["message"])
