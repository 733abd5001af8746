# SPDX-License-Identifier: Apache-2.0
"""ReceiveMessage on one queue, for `receive` and `receive --exec`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqsqlite.contract import limits

if TYPE_CHECKING:
    from sqsqlite import Client

AT_ONCE = limits.SQS.max_number_of_messages.high
_LONGEST_WAIT = limits.SQS.receive_message_wait_time_seconds.high


class Receiving:
    """Receives messages of one queue with all their attributes, and deletes them.

    Args:
        wait: seconds to wait for the first message; None: the queue's own setting.
        visibility_timeout: seconds; None: the queue's own setting.
    """

    def __init__(self, client: "Client", name: str, wait: int | None, visibility_timeout: int | None) -> None:
        self.client = client
        self.name = name
        self._given: dict[str, Any] = {
            "QueueUrl": name,
            "MessageSystemAttributeNames": ["All"],
            "MessageAttributeNames": ["All"],
        }
        if visibility_timeout is not None:
            self._given["VisibilityTimeout"] = visibility_timeout
        self._wait = wait
        self._visibility_timeout = visibility_timeout

    @property
    def visibility_timeout(self) -> int:
        """Seconds that a message stays hidden: the given number, else the queue's own setting."""
        if self._visibility_timeout is not None:
            return self._visibility_timeout
        found = self.client.get_queue_attributes(QueueUrl=self.name, AttributeNames=["VisibilityTimeout"])
        return int(found["Attributes"]["VisibilityTimeout"])

    def some(self, number: int, *, wait: int | None) -> list[dict[str, Any]]:
        """One receive: up to ten messages."""
        given = dict(self._given, MaxNumberOfMessages=min(number, AT_ONCE))
        if wait is not None:
            given["WaitTimeSeconds"] = wait
        found: list[dict[str, Any]] = self.client.receive_message(**given).get("Messages", [])
        return found

    def up_to(self, number: int) -> Iterator[list[dict[str, Any]]]:
        """Yield up to `number` messages in batches of ten. Only the first receive waits.

        A visibility timeout of 0 allows one receive: the next one would return the same messages.
        """
        wait = self._wait
        while number and (found := self.some(number, wait=wait)):
            yield found
            number -= len(found)
            wait = 0
            if number and not self.visibility_timeout:
                return

    def one_by_one(self, number: int) -> Iterator[list[dict[str, Any]]]:
        """Yield up to `number` messages, one with each receive. Only the first receive waits."""
        if not self.visibility_timeout:
            for message in self.some(number, wait=self._wait):
                yield [message]
            return
        for place in range(number):
            found = self.some(1, wait=0 if place else self._wait)
            if not found:
                return
            yield found

    def for_ever(self, at_once: int = AT_ONCE) -> Iterator[list[dict[str, Any]]]:
        """Yield messages without end, and wait while the queue is empty."""
        while True:
            if found := self.some(at_once, wait=_LONGEST_WAIT if self._wait is None else self._wait):
                yield found

    def delete(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Delete up to ten messages; return SQS's entries for the failed ones."""
        entries = [
            {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
            for place, message in enumerate(messages)
        ]
        answer = self.client.delete_message_batch(QueueUrl=self.name, Entries=entries)
        failed: list[dict[str, Any]] = answer.get("Failed", [])
        return failed
