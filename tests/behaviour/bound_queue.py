# SPDX-License-Identifier: Apache-2.0
"""A queue together with its client, so that a test reads as sentences."""

import json
from dataclasses import dataclass
from typing import Any

COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


@dataclass(frozen=True)
class BoundQueue:
    client: Any
    url: str

    @classmethod
    def create(cls, client: Any, name: str = "q", **attributes: object) -> "BoundQueue":
        """Create a queue. Attribute values are sent as texts, and a dict as JSON."""
        created = client.create_queue(QueueName=name, Attributes=as_texts(attributes))
        return cls(client, created["QueueUrl"])

    @classmethod
    def create_fifo(cls, client: Any, name: str = "q.fifo", **attributes: object) -> "BoundQueue":
        """Create a FIFO queue that deduplicates by content, unless `ContentBasedDeduplication` says otherwise."""
        return cls.create(
            client, name, **{"FifoQueue": "true", "ContentBasedDeduplication": "true", **attributes}
        )

    def send(self, body: str = "hello", **params: Any) -> dict[str, Any]:
        return self.client.send_message(QueueUrl=self.url, MessageBody=body, **params)

    def send_all(self, *bodies: str) -> None:
        for body in bodies:
            self.send(body)

    def send_group(self, group_id: str, *bodies: str) -> list[dict[str, Any]]:
        """Send each body as a message of the group. Returns the answers."""
        return [self.send(body, MessageGroupId=group_id) for body in bodies]

    def send_batch(self, *entries: dict[str, Any]) -> dict[str, Any]:
        """Send a batch. Its entries get the ids "0", "1", and so on, as in the other two batches."""
        return self.client.send_message_batch(
            QueueUrl=self.url, Entries=[{"Id": str(place), **entry} for place, entry in enumerate(entries)]
        )

    def delete_batch(self, *handles: str) -> dict[str, Any]:
        return self.client.delete_message_batch(
            QueueUrl=self.url,
            Entries=[{"Id": str(place), "ReceiptHandle": handle} for place, handle in enumerate(handles)],
        )

    def change_batch(self, *changes: tuple[str, int]) -> dict[str, Any]:
        """Change a batch. Each change is a handle and its new timeout."""
        return self.client.change_message_visibility_batch(
            QueueUrl=self.url,
            Entries=[
                {"Id": str(place), "ReceiptHandle": handle, "VisibilityTimeout": timeout}
                for place, (handle, timeout) in enumerate(changes)
            ],
        )

    def receive(self, max_messages: int = 1, **params: Any) -> list[dict[str, Any]]:
        answer = self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=max_messages, **{"AttributeNames": ["All"], **params}
        )
        return answer.get("Messages", [])

    def receive_one(self, **params: Any) -> dict[str, Any]:
        [message] = self.receive(**params)
        return message

    def bodies(self, max_messages: int = 10, **params: Any) -> list[str]:
        return [message["Body"] for message in self.receive(max_messages, **params)]

    def delete(self, message: dict[str, Any]) -> dict[str, Any]:
        return self.client.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])

    def change(self, message: dict[str, Any], visibility_timeout: int) -> dict[str, Any]:
        return self.client.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=visibility_timeout
        )

    def attributes(self, *names: str) -> dict[str, str]:
        answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=list(names))
        return answer.get("Attributes", {})

    def set(self, **attributes: object) -> dict[str, Any]:
        return self.client.set_queue_attributes(QueueUrl=self.url, Attributes=as_texts(attributes))

    @property
    def counts(self) -> tuple[int, int, int]:
        """(visible, in flight, delayed)."""
        found = self.attributes(*COUNTS)
        visible, in_flight, delayed = (int(found[name]) for name in COUNTS)
        return visible, in_flight, delayed

    @property
    def arn(self) -> str:
        return self.attributes("QueueArn")["QueueArn"]

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


def as_texts(attributes: dict[str, object]) -> dict[str, str]:
    return {
        name: json.dumps(value) if isinstance(value, dict) else str(value)
        for name, value in attributes.items()
    }


def without_metadata(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}
