"""A limit on the requests of each account. Beyond it the answer is RequestThrottled, and SDKs try again."""

import time
from collections.abc import Callable

from sqsqlite.access.access import Access
from sqsqlite.access.exchange import Exchange
from sqsqlite.access.identity import Identity
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract.requests import Request, StartMessageMoveTask
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


class Throttled:
    """Wraps an access, and limits the rate of each account in this process. A batch counts as one request.

    Args:
        access: who may do what. Requests that it refuses do not count.
        per_second: requests per second, more than 0. The requests of one second may come at once.
        now: seconds of a clock that never goes back.
    """

    def __init__(self, access: Access, per_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._per_second = per_second
        self._now = now
        self._buckets: dict[str, _Bucket] = {}

    def needs_digest(self, exchange: Exchange) -> bool:
        """The wrapped access decides."""
        return self._access.needs_digest(exchange)

    def authenticate(self, exchange: Exchange) -> Identity:
        """Authenticate the caller, then count the request.

        Raises:
            RequestThrottled: the account has sent too many requests.
            SQSError: the wrapped access refuses the request.
        """
        identity = self._access.authenticate(exchange)
        now = self._now()
        bucket = self._buckets.get(identity.account_id)
        if bucket is None:
            bucket = self._buckets[identity.account_id] = _Bucket(self._per_second, now)
        if not bucket.take(now):
            raise RequestThrottled(
                f"Rate exceeded: account {identity.account_id} may send {self._per_second:g} requests per second."
            )
        return identity

    def check_key(self, exchange: Exchange) -> None:
        """The wrapped access decides."""
        self._access.check_key(exchange)

    def authorize(self, exchange: Exchange, identity: Identity, request: Request, caller: Caller) -> Caller:
        """The wrapped access decides."""
        return self._access.authorize(exchange, identity, request, caller)

    def authorize_move(
        self, exchange: Exchange, identity: Identity, request: StartMessageMoveTask, caller: Caller
    ) -> None:
        """The wrapped access decides."""
        self._access.authorize_move(exchange, identity, request, caller)
