# SPDX-License-Identifier: Apache-2.0
"""For test suites: `mock_sqs`, a clock that a test moves, and pytest's fixtures (`sqsqlite.testing.plugin`)."""

from sqsqlite.testing.clock import MovableClock
from sqsqlite.testing.mock import MockSQS, mock_sqs
from sqsqlite.testing.regions import ACCOUNT_ID

__all__ = ["ACCOUNT_ID", "MockSQS", "MovableClock", "mock_sqs"]
