# SPDX-License-Identifier: Apache-2.0
"""The statements of a message's way, as a test sees them: text, comment, parameters, plan."""

import re
from dataclasses import dataclass
from typing import Any

from sqsqlite.sql import access as statements_access
from sqsqlite.sql import fifo as statements_fifo
from sqsqlite.sql import file as statements_file
from sqsqlite.sql import messages as statements
from sqsqlite.sql import moves as statements_moves
from sqsqlite.sql import queues as statements_queues

_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(r":([a-z_][a-z_0-9]*)")


@dataclass(frozen=True)
class Statement:
    """One named statement."""

    name: str
    text: str

    @property
    def comment(self) -> str:
        """All text behind `--`."""
        return "\n".join(_COMMENT.findall(self.text))

    @property
    def code(self) -> str:
        """All text outside of comments."""
        return _COMMENT.sub("", self.text).strip()

    @property
    def parameters(self) -> dict[str, None] | tuple[None, ...]:
        """NULL for each, because a plan does not depend on values."""
        named = dict.fromkeys(_PARAMETER.findall(self.code))
        numbers = [int(number) for number in re.findall(r"\?(\d+)", self.code)]
        return named or (None,) * (max(numbers) if numbers else self.code.count("?"))

    def plan(self, connection: Any) -> list[str]:
        """EXPLAIN QUERY PLAN, one line a step."""
        rows = connection.execute(f"EXPLAIN QUERY PLAN {self.code}", self.parameters).fetchall()
        return [row[3] for row in rows]


MODULES = (
    statements,
    statements_access,
    statements_fifo,
    statements_file,
    statements_moves,
    statements_queues,
)
STATEMENTS = {
    name: Statement(name, text)
    for module in MODULES
    for name, text in vars(module).items()
    if name.isupper() and isinstance(text, str)
}
