import contextlib

import pytest

from sqsqlite.access.identity import Identity
from sqsqlite.errors import RequestThrottled
from sqsqlite.serve.throttle import Throttled
from tests.serve.exchanges import exchange


class ByHeader:
    """An account by a header; refuses where there is none."""

    def authenticate(self, asked):
        if b"account" not in asked.headers:
            raise PermissionError
        return Identity(asked.header(b"account"))

    def authorize(self, asked, identity, request, caller):
        return (identity, request, caller)


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def throttled(now):
    return lambda per_second: Throttled(ByHeader(), per_second, lambda: now[0])


def ask(access, account="1", times=1):
    """How many of so many requests at one instant are served."""
    served = 0
    for _ in range(times):
        with contextlib.suppress(RequestThrottled):
            served += access.authenticate(exchange(headers={"account": account})).account_id == account
    return served


def test_a_second_s_worth_is_served_at_once_and_then_as_many_as_time_brings(throttled, now):
    access = throttled(10)
    assert ask(access, times=15) == 10
    now[0] += 0.25
    assert ask(access, times=15) == 2
    now[0] += 0.25
    assert ask(access, times=15) == 3
    now[0] += 3600
    assert ask(access, times=15) == 10


def test_rate_below_one_serves_one_and_then_waits(throttled, now):
    access = throttled(0.1)
    assert ask(access, times=3) == 1
    now[0] += 9.75
    assert ask(access) == 0
    now[0] += 0.25
    assert ask(access, times=3) == 1


def test_accounts_do_not_use_up_each_other_s(throttled):
    access = throttled(2)
    assert ask(access, "1", times=5) == 2
    assert ask(access, "2", times=5) == 2


def test_refused_requests_use_up_nothing(throttled):
    access = throttled(1)
    for _ in range(5):
        with pytest.raises(PermissionError):
            access.authenticate(exchange())
    assert ask(access) == 1


def test_what_may_be_done_is_asked_below(throttled):
    assert throttled(1).authorize(None, "identity", "request", "caller") == ("identity", "request", "caller")
