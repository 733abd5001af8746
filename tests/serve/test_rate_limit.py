# SPDX-License-Identifier: Apache-2.0
import contextlib
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from sqsqlite.access.keys import add_key
from sqsqlite.errors import RequestThrottled
from sqsqlite.serve.rate_limit import RateLimit
from tests.serve.serving import client_of, serving


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def limited(now):
    return lambda per_second: RateLimit(per_second, lambda: now[0])


def ask(limit, account="1", times=1):
    """How many of these requests at one instant are served."""
    served = 0
    for _ in range(times):
        with contextlib.suppress(RequestThrottled):
            limit.count(account)
            served += 1
    return served


def test_one_second_of_requests_is_served_at_once_and_the_rest_at_the_rate(limited, now):
    limit = limited(10)
    assert ask(limit, times=15) == 10
    now[0] += 0.25
    assert ask(limit, times=15) == 2
    now[0] += 0.25
    assert ask(limit, times=15) == 3
    now[0] += 3600
    assert ask(limit, times=15) == 10


def test_rate_below_one_serves_one_and_then_waits(limited, now):
    limit = limited(0.1)
    assert ask(limit, times=3) == 1
    now[0] += 9.75
    assert ask(limit) == 0
    now[0] += 0.25
    assert ask(limit, times=3) == 1


def test_each_account_has_a_rate_of_its_own(limited):
    limit = limited(2)
    assert ask(limit, "1", times=5) == 2
    assert ask(limit, "2", times=5) == 2


def test_refused_requests_do_not_count_against_the_rate(store):
    key = store.write(add_key, "111111111111", "")
    with serving(store, rate_limit=0.001) as url:
        stranger = client_of(url, replace(key, secret_access_key="another"))
        for _ in range(3):
            with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
                stranger.list_queues()
        client = client_of(url, key)
        client.list_queues()
        with pytest.raises(ClientError, match="RequestThrottled"):
            client.list_queues()
