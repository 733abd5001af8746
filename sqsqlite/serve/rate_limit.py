# SPDX-License-Identifier: Apache-2.0
"""A limit on the requests of each account. Beyond it the answer is RequestThrottled, and SDKs try again."""

import time
from collections.abc import Callable

from sqsqlite.errors import RequestThrottled


class _Bucket:
    """A token bucket. It holds the tokens of one second, but at least one."""

    def __init__(self, per_second: float, now: float) -> None:
        self._per_second = per_second
        self._capacity = max(1.0, per_second)
        self._tokens = self._capacity
        self._filled_at = now

    def take(self, now: float) -> bool:
        """Take a token. False: the bucket is empty."""
        added = (now - self._filled_at) * self._per_second
        self._tokens = min(self._capacity, self._tokens + added)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class RateLimit:
    """Limits the rate of each account in this process. A batch counts as one request.

    Args:
        per_second: requests per second, more than 0. The requests of one second may come at once.
        now: seconds of a clock that never goes back.
    """

    def __init__(self, per_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._now = now
        self._buckets: dict[str, _Bucket] = {}

    def count(self, account_id: str) -> None:
        """Count a request of the account. Requests that the access refuses must not be counted.

        Raises:
            RequestThrottled: the account has sent too many requests.
        """
        now = self._now()
        bucket = self._buckets.get(account_id)
        if bucket is None:
            bucket = self._buckets[account_id] = _Bucket(self._per_second, now)
        if not bucket.take(now):
            raise RequestThrottled(
                f"Rate exceeded: account {account_id} may send {self._per_second:g} requests per second."
            )
