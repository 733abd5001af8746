# SPDX-License-Identifier: Apache-2.0
"""A round trip, errors, and twenty long polls at once, answered by twenty messages."""

import asyncio
import os

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

POLLS = 20


async def receive_and_delete(sqs, url):
    got = await sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20, MaxNumberOfMessages=1)
    [message] = got["Messages"]
    await sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return message["Body"]


async def main():
    async with get_session().create_client(
        "sqs", endpoint_url=os.environ["AWS_ENDPOINT_URL"], config=AioConfig(max_pool_connections=POLLS + 10)
    ) as sqs:
        url = (await sqs.create_queue(QueueName="work"))["QueueUrl"]
        attributes = {"City": {"DataType": "String", "StringValue": "Zürich"}}
        await sqs.send_message(QueueUrl=url, MessageBody="𝄞 & <b>", MessageAttributes=attributes)
        got = await sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"])
        [message] = got["Messages"]
        assert (message["Body"], message["MessageAttributes"]) == ("𝄞 & <b>", attributes)
        await sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )
        assert await receive_and_delete(sqs, url) == "𝄞 & <b>"

        try:
            await sqs.get_queue_url(QueueName="nobody")
        except sqs.exceptions.QueueDoesNotExist:
            pass
        else:
            raise AssertionError("a queue that does not exist was found")

        polls = [asyncio.create_task(receive_and_delete(sqs, url)) for _ in range(POLLS)]
        await asyncio.sleep(0.5)
        assert not any(poll.done() for poll in polls)
        bodies = [f"body {number}" for number in range(POLLS)]
        await asyncio.gather(*(sqs.send_message(QueueUrl=url, MessageBody=body) for body in bodies))
        assert sorted(await asyncio.gather(*polls)) == sorted(bodies)

        waiting = asyncio.create_task(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20))
        await asyncio.sleep(0.5)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await sqs.send_message(QueueUrl=url, MessageBody="for who still waits")
        assert await receive_and_delete(sqs, url) == "for who still waits"


asyncio.run(main())
