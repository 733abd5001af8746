"""A limit to the requests of each account: what is beyond it is answered RequestThrottled, and SDKs try again."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqsqlite.errors import RequestThrottled

if TYPE_CHECKING:
    from sqsqlite.access.access import Access
    from sqsqlite.access.exchange import Exchange
    from sqsqlite.access.identity import Identity
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract.requests import Request, StartMessageMoveTask


class _Bucket:
    """Fills by so many tokens a second, up to a second's worth, and at least to one."""

    def __init__(self, per_second: float, now: float) -> None:
        self._per_second = per_second
        self._capacity = max(1.0, per_second)
        self._tokens = self._capacity
        self._filled_at = now

    def take(self, now: float) -> bool:
        """A token, if there is one."""
        added = (now - self._filled_at) * self._per_second
        self._tokens = min(self._capacity, self._tokens + added)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Throttled:
    """Access that each account has so often a second, in one process. A batch is one request.

    Args:
        access: who may do what. A request that it refuses takes nothing from its account.
        per_second: requests, more than 0. A second's worth may come at once.
        now: seconds of a clock that never goes back.
    """

    def __init__(
        self, access: "Access", per_second: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._access = access
        self._per_second = per_second
        self._now = now
        self._buckets: dict[str, _Bucket] = {}

    def needs_digest(self, exchange: "Exchange") -> bool:
        """As the access below."""
        return self._access.needs_digest(exchange)

    def authenticate(self, exchange: "Exchange") -> "Identity":
        """Who it is from.

        Raises:
            RequestThrottled: the account has asked too often.
            SQSError: as the access below raises.
        """
        identity = self._access.authenticate(exchange)
        now = self._now()
        bucket = self._buckets.get(identity.account_id)
        if bucket is None:
            bucket = self._buckets[identity.account_id] = _Bucket(self._per_second, now)
        if not bucket.take(now):
            raise RequestThrottled(
                f"Rate exceeded: account {identity.account_id} is served {self._per_second:g} requests a second."
            )
        return identity

    def check_key(self, exchange: "Exchange") -> None:
        """As the access below."""
        self._access.check_key(exchange)

    def authorize(
        self, exchange: "Exchange", identity: "Identity", request: "Request", caller: "Caller"
    ) -> "Caller":
        """As the access below."""
        return self._access.authorize(exchange, identity, request, caller)

    def authorize_move(
        self, exchange: "Exchange", identity: "Identity", request: "StartMessageMoveTask", caller: "Caller"
    ) -> None:
        """As the access below."""
        self._access.authorize_move(exchange, identity, request, caller)
