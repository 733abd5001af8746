# SPDX-License-Identifier: Apache-2.0
"""An asynchronous SQLAlchemy engine, whose transactions hold rows and messages."""

import asyncio
import os

from sqlalchemy import exc, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

import sqsqlite

engine = create_async_engine(
    "sqlite+aiosqlite:///app.db",
    module=sqsqlite.dbapi.asynchronous(),
    connect_args={"isolation_level": "IMMEDIATE"},
)
sessions = async_sessionmaker(engine)


async def place(queue: sqsqlite.Queue, item: str, *, fails: bool = False) -> None:
    async with sessions.begin() as session:
        await session.execute(text("INSERT INTO orders VALUES (:item)"), {"item": item})
        await session.run_sync(lambda inner: queue.send(item, connection=inner))
        if fails:
            raise KeyError(item)


async def use_sessions(sqs: sqsqlite.SQS) -> None:
    queue = sqs.create_queue("orders")
    waiting = asyncio.create_task(asyncio.to_thread(queue.receive, wait=20))
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE orders (item TEXT PRIMARY KEY)"))
    await place(queue, "first")
    print([message.body for message in await waiting])
    try:
        await place(queue, "undone", fails=True)
    except KeyError as error:
        print("rolled back", error)
    # The driver's errors are SQLAlchemy's.
    try:
        await place(queue, "first")
    except exc.IntegrityError as error:
        print(type(error.orig).__name__)
    await asyncio.gather(*(place(queue, f"order {number}") for number in range(20)))
    async with sessions.begin() as session:
        stored = (await session.execute(text("SELECT count(*) FROM orders"))).scalar()
        received = await session.run_sync(lambda inner: queue.receive(10, connection=inner))
        for message in received:
            await session.run_sync(lambda inner, message=message: message.delete(connection=inner))
    print(stored, len(received), len(queue))


async def mistakes(sqs: sqsqlite.SQS) -> None:
    queue = sqs.queue("orders")
    async with AsyncSession(engine) as session, session.begin():
        try:
            queue.send("wrong", connection=session)
        except sqsqlite.errors.StoreError as error:
            print("run_sync" in str(error))


def forked() -> None:
    """The engine was disposed of: its connections live in threads, which a fork leaves behind."""
    pid = os.fork()
    if not pid:
        with sqsqlite.connect("app.db") as sqs:
            sqs.queue("orders").send("from the child")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


async def main() -> None:
    with sqsqlite.connect("app.db", adopt=True) as sqs:
        await use_sessions(sqs)
        await mistakes(sqs)
    await engine.dispose()


asyncio.run(main())
forked()
