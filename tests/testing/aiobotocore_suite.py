# SPDX-License-Identifier: Apache-2.0
"""What a user of aiobotocore writes; run by test_aiobotocore.py in an environment that has it."""

import asyncio

from aiobotocore.session import get_session

from sqsqlite.testing import mock_sqs


def client():
    return get_session().create_client("sqs", region_name="eu-west-1")


@mock_sqs
async def decorated():
    async with client() as sqs:
        url = (await sqs.create_queue(QueueName="orders"))["QueueUrl"]
        await sqs.send_message(QueueUrl=url, MessageBody="hello")
        got = await sqs.receive_message(QueueUrl=url)
        return url, [message["Body"] for message in got["Messages"]]


async def from_before_the_mock():
    async with get_session().create_client(
        "sqs", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
    ) as sqs:
        with mock_sqs() as mock:
            url = (await sqs.create_queue(QueueName="orders"))["QueueUrl"]
            await sqs.send_message(QueueUrl=url, MessageBody="late", DelaySeconds=900)
            mock.clock.advance(900 - 10)
            poll = asyncio.create_task(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20))
            await asyncio.sleep(0)  # the event loop goes on while the poll waits
            mock.clock.advance(10)
            return [message["Body"] for message in (await poll)["Messages"]]


async def an_error():
    with mock_sqs():
        async with client() as sqs:
            try:
                await sqs.get_queue_url(QueueName="missing")
            except sqs.exceptions.QueueDoesNotExist as error:
                return error.response["Error"]["Code"]
    return None


print(asyncio.run(decorated()))
print(asyncio.run(from_before_the_mock()))
print(asyncio.run(an_error()))
