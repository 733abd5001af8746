# SPDX-License-Identifier: Apache-2.0
"""asyncio's tasks share a thread: a block belongs to the task that began it."""

import asyncio

import pytest

import sqsqlite
from sqsqlite import errors


@pytest.fixture
def sqs(tmp_path):
    with sqsqlite.connect(tmp_path / "queues.db", synchronous="OFF", busy_timeout=2) as sqs:
        yield sqs


class Changed(Exception):
    """The application raises this to give up."""


async def meanwhile(sqs, queue, other, *, fails=False, begin=None):
    """Hold a block open across an await, in which another task calls `other`. Returns the outcome of that call."""
    begun, done = asyncio.Event(), asyncio.Event()

    async def holder():
        with (begin or sqs.transaction)():
            queue.send("in the block")
            begun.set()
            await done.wait()
            queue.send("in the block")
            if fails:
                raise Changed

    task = asyncio.create_task(holder(), name="holder")
    await begun.wait()
    try:
        return other()
    finally:
        done.set()
        await asyncio.gather(task, return_exceptions=True)


OTHERS = {
    "send": lambda sqs, queue: queue.send("another's"),
    "send_many": lambda sqs, queue: queue.send_many(["another's"]),
    "receive": lambda sqs, queue: queue.receive(),
    "receive, waiting": lambda sqs, queue: queue.receive(wait=20),
    "delete": lambda sqs, queue: sqs.client.delete_message(QueueUrl="orders", ReceiptHandle=sqs.handle),
    "create": lambda sqs, queue: sqs.create_queue("another"),
    "transaction": lambda sqs, queue: sqs.transaction().__enter__(),
    "client": lambda sqs, queue: sqs.client.send_message(QueueUrl="orders", MessageBody="another's"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_task_does_not_join_the_block(sqs, queue, name):
    """Its acknowledged send would be rolled back with a block of another task."""
    queue.send("to delete")
    [message] = queue.receive()
    sqs.handle = message.receipt_handle
    with pytest.raises(errors.TransactionInProgress, match=r"task 'holder'.*to_thread"):
        asyncio.run(meanwhile(sqs, queue, lambda: OTHERS[name](sqs, queue)))
    assert [message.body for message in queue.peek()] == ["in the block"] * 2
    assert len(queue) == 3
    assert [each.name for each in sqs.queues()] == ["orders"]
    queue.send("next")


def test_refused_send_is_not_lost_with_the_block(sqs, queue):
    """The task gets the error, and can repeat the send."""

    async def main():
        with pytest.raises(errors.TransactionInProgress):
            await meanwhile(sqs, queue, lambda: queue.send("another's"), fails=True)
        queue.send("repeated")

    asyncio.run(main())
    assert [message.body for message in queue.peek()] == ["repeated"]


def test_child_task_is_another_task(sqs, queue):
    """A context variable would be inherited by it."""

    async def child():
        queue.send("the child's")

    async def main():
        with sqs.transaction():
            queue.send("in the block")
            with pytest.raises(errors.TransactionInProgress):
                await asyncio.create_task(child())
            await child()  # no task of its own

    asyncio.run(main())
    assert [message.body for message in queue.peek()] == ["in the block", "the child's"]


def test_callback_of_the_loop_does_not_join_the_block(sqs, queue):
    async def main():
        loop = asyncio.get_running_loop()
        refused = loop.create_future()

        def callback():
            try:
                queue.send("the callback's")
            except errors.TransactionInProgress as error:
                refused.set_result(error)

        with sqs.transaction():
            loop.call_soon(callback)
            assert "task" in str(await refused)

    asyncio.run(main())
    assert len(queue) == 0


def test_another_task_reads_committed_data(sqs, queue):
    queue.send("committed")

    def read():
        return len(queue), [message.body for message in queue.peek()], [each.visible for each in sqs.stats()]

    assert asyncio.run(meanwhile(sqs, queue, read)) == (1, ["committed"], [1])
    assert len(queue) == 3


def test_another_task_is_refused_while_an_engine_writes(sqs, queue):
    """With `connection=` the transaction is named, so nothing joins it by accident."""
    with pytest.raises(errors.TransactionInProgress):
        asyncio.run(meanwhile_engine(sqs, queue))
    assert [message.body for message in queue.peek()] == ["with the rows"]


async def meanwhile_engine(sqs, queue):
    async def other():
        queue.send("another's")

    with sqs.engine.connect() as connection:
        queue.send("with the rows", connection=connection)
        try:
            await asyncio.create_task(other())
        finally:
            connection.commit()


def test_another_task_may_send_by_a_thread(sqs, queue):
    """The call waits for the block there, and the loop continues."""

    async def main():
        with sqs.transaction():
            sending = asyncio.create_task(asyncio.to_thread(queue.send, "another's"))
            await asyncio.sleep(0)
            queue.send("in the block")
        await sending

    asyncio.run(main())
    assert [message.body for message in queue.peek()] == ["in the block", "another's"]


def test_event_loop_that_runs_within_a_block_joins_it(sqs, queue):
    """The block began outside of any task: it called everything that runs meanwhile on the thread."""

    async def main():
        queue.send("from a task")
        await asyncio.gather(*(asyncio.to_thread(len, queue) for _ in range(2)))

    with pytest.raises(Changed), sqs.transaction():  # noqa: PT012
        asyncio.run(main())
        assert len(queue) == 1
        raise Changed
    assert len(queue) == 0


def test_tasks_take_blocks_one_after_the_other(sqs, queue):
    async def worker(number):
        with sqs.transaction():
            queue.send(f"{number}")
        await asyncio.sleep(0)
        queue.send(f"{number} again")

    async def main():
        await asyncio.gather(*(worker(number) for number in range(5)))

    asyncio.run(main())
    assert len(queue) == 10


def test_task_of_trio_does_not_join_anothers_block(sqs, queue):
    trio = pytest.importorskip("trio", reason="needs trio")

    async def holder(*, task_status):
        with sqs.transaction():
            queue.send("in the block")
            task_status.started()
            await trio.sleep(0)
            queue.send("in the block")

    async def main():
        async with trio.open_nursery() as nursery:
            await nursery.start(holder)
            with pytest.raises(errors.TransactionInProgress, match=r"task '.*holder'"):
                queue.send("another's")
            assert len(queue) == 0

    trio.run(main)
    assert [message.body for message in queue.peek()] == ["in the block"] * 2


def test_body_of_a_loop_joins_the_block_of_its_generator(sqs, queue):
    """As documented: the two cannot be told apart. A loop that is left early rolls back."""

    def numbers():
        with sqs.transaction():
            yield from range(9)

    for number in (generator := numbers()):
        queue.send(f"{number}")
        if number == 4:
            break
    generator.close()
    assert len(queue) == 0
    for number in numbers():
        queue.send(f"{number}")
    assert len(queue) == 9
