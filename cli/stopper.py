# SPDX-License-Identifier: Apache-2.0
"""How signals stop a server."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from sqsqlite.serve.endpoint import Server


class Stopper:
    """Handles signals: the first one stops the server, a second one does so without waiting for requests."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._count = 0

    def __call__(self, _number: int, _frame: "FrameType | None") -> None:
        """Stop the server."""
        self._count += 1
        self._server.stop(at_once=self.is_hurried)

    @property
    def is_hurried(self) -> bool:
        """Whether there was a second signal."""
        return self._count > 1
