# SPDX-License-Identifier: Apache-2.0
"""A file with two queues for requests, and the APIs to ask through."""

import boto3
import pytest
from botocore.config import Config

import sqsqlite
from sqsqlite.testing import MovableClock
from sqsqlite.testing.endpoint import served
from sqsqlite.testing.files import lay


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
def sqs(tmp_path, clock):
    with sqsqlite.connect(lay(tmp_path / "app.db"), synchronous="OFF", clock=clock) as opened:
        opened.create_queue("orders")
        opened.create_queue("orders.fifo", fifo=True)
        yield opened


@pytest.fixture(params=["python", "client", "endpoint"])
def door(request, sqs):
    if request.param == "python":
        yield sqs
    elif request.param == "client":
        yield sqs.client
    else:
        with served(sqs) as url:
            yield boto3.client(
                "sqs",
                endpoint_url=url,
                region_name="us-east-1",
                aws_access_key_id="any",
                aws_secret_access_key="any",
                config=Config(max_pool_connections=110),
            )
