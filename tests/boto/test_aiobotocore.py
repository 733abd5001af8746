# SPDX-License-Identifier: Apache-2.0
"""aiobotocore's client, answered from a file.

aiobotocore asks for an older botocore than the lock's boto3 does, so it is not in the lock, and `make test` skips this
file. To run it: an environment of its own with aiobotocore, pytest and this project.
"""

import asyncio

import pytest

from sqsqlite import ManualClock, boto

session_module = pytest.importorskip("aiobotocore.session", reason="needs an environment of its own")


def run(path, conversation, **options):
    async def main():
        session = session_module.get_session()
        created = session.create_client(
            "sqs", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        async with created as client:
            with boto.attach(client, path, **options):
                return await conversation(client)

    return asyncio.run(main())


def test_an_async_client_sends_and_receives(tmp_path):
    async def conversation(client):
        url = (await client.create_queue(QueueName="q"))["QueueUrl"]
        await client.send_message(QueueUrl=url, MessageBody="awaited")
        return (await client.receive_message(QueueUrl=url))["Messages"]

    [message] = run(tmp_path / "queues.db", conversation)
    assert message["Body"] == "awaited"


def test_an_async_clients_errors_are_the_modelled_ones(tmp_path):
    async def conversation(client):
        with pytest.raises(client.exceptions.QueueDoesNotExist) as refused:
            await client.get_queue_url(QueueName="nobody")
        return refused.value.response

    response = run(tmp_path / "queues.db", conversation)
    assert response["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"


def test_an_async_long_poll_does_not_block_the_event_loop(tmp_path):
    clock = ManualClock()

    async def conversation(client):
        url = (await client.create_queue(QueueName="q"))["QueueUrl"]
        waiting = asyncio.create_task(client.receive_message(QueueUrl=url, WaitTimeSeconds=20))
        await asyncio.to_thread(clock.until_waiting)
        await client.send_message(QueueUrl=url, MessageBody="at last")
        return (await waiting)["Messages"]

    [message] = run(tmp_path / "queues.db", conversation, clock=clock)
    assert message["Body"] == "at last"
