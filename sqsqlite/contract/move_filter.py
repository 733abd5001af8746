# SPDX-License-Identifier: Apache-2.0
"""Which messages of a dead-letter queue a move task takes: ours, SQS has no such parameter."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Protocol


class HasArn(Protocol):
    """What can stand for an ARN: a `Queue`."""

    @property
    def arn(self) -> str:
        """What policies call it by."""


@dataclass(frozen=True, slots=True)
class MoveFilter:
    """Conditions, all of which must hold.

    All but `body` are about the message's move into the dead-letter queue: one that was sent there directly meets none.

    Attributes:
        source_arn: of the queue that the message was moved from. A queue given for it becomes its ARN here; a name or a
            URL does when a task is started.
        body: a text that its body contains, letter by letter.
        minimum_receive_count: how often it was received there, at least.
        moved_from: milliseconds since 1970 UTC: moved then or later.
        moved_before: milliseconds since 1970 UTC: moved earlier than that.

    Raises:
        TypeError: a value of another type.
    """

    source_arn: HasArn | str | None = None
    body: str | None = None
    minimum_receive_count: int | None = None
    moved_from: int | None = None
    moved_before: int | None = None

    def __post_init__(self) -> None:
        arn = getattr(self.source_arn, "arn", None)
        if arn is not None:
            object.__setattr__(self, "source_arn", arn)
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            kind = str if field.name in ("source_arn", "body") else int
            if given is not None and (not isinstance(given, kind) or isinstance(given, bool)):
                raise TypeError(f"{field.name}={given!r}: {kind.__name__} or None is allowed")

    def to_json(self) -> str:
        """The conditions given, as they are kept in the file."""
        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        return json.dumps(given)

    @classmethod
    def from_json(cls, text: str | None) -> "MoveFilter":
        """What `to_json` wrote; nothing: no conditions."""
        return cls(**json.loads(text)) if text else cls()

    def allows(self, source_arn: str | None, receive_count: int | None, moved_at: int | None) -> bool:
        """Whether every condition but `body` holds. All None: the message was not moved here."""
        if self.source_arn is not None and source_arn != self.source_arn:
            return False
        if self.minimum_receive_count is not None and (receive_count or 0) < self.minimum_receive_count:
            return False
        if self.moved_from is not None and (moved_at is None or moved_at < self.moved_from):
            return False
        return self.moved_before is None or (moved_at is not None and moved_at < self.moved_before)
