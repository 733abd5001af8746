# SPDX-License-Identifier: Apache-2.0
"""aiobotocore with an endpoint of SQSQLite's: several workers in one event loop, each with a long poll of its own.

    pip install aiobotocore
    sqsqlite serve --db queues.db          in another terminal
    python aiobotocore_orders.py

A worker that has nothing to do costs a waiting request, no thread. With a key of `sqsqlite keys add`: AWS_ACCESS_KEY_ID
and AWS_SECRET_ACCESS_KEY.
"""

import asyncio
import os

from aiobotocore.client import AioBaseClient
from aiobotocore.session import get_session

ENDPOINT = os.environ.get("AWS_ENDPOINT_URL", "http://localhost:9324")


async def work(sqs: AioBaseClient, url: str, done: asyncio.Queue[str]) -> None:
    """Receive, work, delete, for ever."""
    while True:
        received = await sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)
        for message in received.get("Messages", []):
            await sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            await done.put(message["Body"])


async def main() -> None:
    """Let five workers wait, then send ten orders."""
    session = get_session()
    async with session.create_client(
        "sqs",
        endpoint_url=ENDPOINT,
        region_name="us-east-1",
        # anyone: as long as the server has no keys
        aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", "anyone"),
        aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "anything"),
    ) as sqs:
        url = (await sqs.create_queue(QueueName="orders"))["QueueUrl"]
        done: asyncio.Queue[str] = asyncio.Queue()
        workers = [asyncio.create_task(work(sqs, url, done)) for _ in range(5)]
        orders = [{"Id": str(number), "MessageBody": f"order {number}"} for number in range(10)]
        await sqs.send_message_batch(QueueUrl=url, Entries=orders)
        print(sorted([await done.get() for _ in orders]))
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


asyncio.run(main())
