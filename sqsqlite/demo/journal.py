"""What the parent learns about a run: what the workers tell, and the kill it does itself."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Receive:
    """One message in one worker's hands. `at`: milliseconds since 1970 UTC."""

    worker: str
    message_id: str
    receive_count: int
    at: int


@dataclass(frozen=True, slots=True)
class Kill:
    """A worker killed at work.

    Attributes:
        at: when, in milliseconds since 1970 UTC.
        held: ids of the messages in flight in its hands, none of which it had finished.
    """

    worker: str
    at: int
    held: tuple[str, ...]


@dataclass(slots=True)
class Journal:
    """All that was told, in the order it came.

    Attributes:
        acknowledged: ids of the messages whose commit was told.
        totals: how often which outcome was told: "parsed", "refused" or "late".
        at_work: by worker, what of its latest batch has no outcome yet: receive counts by message id.
    """

    receives: list[Receive] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    totals: Counter[str] = field(default_factory=Counter)
    at_work: dict[str, dict[str, int]] = field(default_factory=dict)
    kill: Kill | None = None

    def enter(self, worker: str, event: dict[str, Any]) -> list[Receive]:
        """Take down one event; the receives of the killed worker's messages by others come back, to be shown."""
        kind = event["event"]
        if kind == "received":
            return self._enter_batch(worker, event)
        if kind != "ended":
            self.totals[kind] += 1
            del self.at_work[worker][event["message_id"]]
            if kind == "parsed":
                self.acknowledged.append(event["message_id"])
        return []

    def _enter_batch(self, worker: str, event: dict[str, Any]) -> list[Receive]:
        batch = [
            Receive(worker, message_id, receive_count, event["at"])
            for message_id, receive_count in event["messages"]
        ]
        self.receives += batch
        self.at_work[worker] = {receive.message_id: receive.receive_count for receive in batch}
        if self.kill is None or worker == self.kill.worker:
            return []
        return [receive for receive in batch if receive.message_id in self.kill.held]

    @property
    def received_again(self) -> set[str]:
        """Ids of the messages that were received more than once."""
        return {receive.message_id for receive in self.receives if receive.receive_count > 1}

    def returns_of(self, kill: Kill) -> list[Receive]:
        """The first receive after the kill of each message the killed worker held."""
        first: dict[str, Receive] = {}
        for receive in self.receives:
            if receive.message_id in kill.held and receive.worker != kill.worker and receive.at >= kill.at:
                first.setdefault(receive.message_id, receive)
        return list(first.values())
