# SPDX-License-Identifier: Apache-2.0
"""For test suites: `mock_sqs`, a clock that a test moves, and pytest's fixtures (`sqsqlite.testing.plugin`)."""

from typing import TYPE_CHECKING, Any

__all__ = ["ACCOUNT_ID", "MockSQS", "MovableClock", "mock_sqs"]

if TYPE_CHECKING:
    from sqsqlite.testing.clock import MovableClock
    from sqsqlite.testing.mock import MockSQS, mock_sqs
    from sqsqlite.testing.regions import ACCOUNT_ID

_HOMES = {"ACCOUNT_ID": "regions", "MockSQS": "mock", "MovableClock": "clock", "mock_sqs": "mock"}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Loaded when first used: pytest imports this package for its plugin in every run."""
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module 'sqsqlite.testing' has no attribute {name!r}")
        value = getattr(import_module(f"sqsqlite.testing.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
