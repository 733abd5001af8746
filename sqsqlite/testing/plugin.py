# SPDX-License-Identifier: Apache-2.0
"""pytest's fixtures: one file of queues a test, by three APIs, with a clock that the test moves.

pytest loads this module in every run where SQSQLite is installed, so it imports nothing else at once.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sqsqlite.api.connect import SQS


@pytest.fixture
def sqs_clock() -> Any:
    """The clock of `sqs`: it runs, and `sqs_clock.advance(seconds)` moves it forward.

    Override the fixture to return `MovableClock(waits=False)`, whose long polls end at once, or
    `sqsqlite.ManualClock()`, which stands still.
    """
    from sqsqlite.testing.clock import MovableClock

    return MovableClock()


@pytest.fixture
def sqs_options() -> dict[str, Any]:
    """More options of `sqsqlite.connect` for `sqs`. Override it, for example with `{"compat": "aws"}`."""
    return {}


@pytest.fixture
def sqs(sqs_clock: Any, sqs_options: dict[str, Any]) -> "Iterator[SQS]":
    """An open file of queues that goes away with the test, without SQS's pauses of 60 s."""
    from sqsqlite.api.connect import connect
    from sqsqlite.testing.files import Folder, lay

    folder = Folder()
    try:
        options = {"clock": sqs_clock, "synchronous": "OFF", "cooldowns": False, **sqs_options}
        with connect(lay(folder.path / "queues.db"), **options) as opened:
            yield opened
    finally:
        folder.remove()


@pytest.fixture
def sqs_client(sqs: "SQS") -> Any:
    """A boto3 client of the queues of `sqs`, answered in process. It needs boto3."""
    from sqsqlite.boto import client_over

    return client_over(sqs._store)  # noqa: SLF001 # another API of the same open file


@pytest.fixture
def sqs_endpoint(sqs: "SQS") -> Iterator[str]:
    """The URL of an endpoint of the queues of `sqs`, for clients in any process and language of this machine."""
    from sqsqlite.testing.endpoint import served

    with served(sqs) as url:
        yield url
