# SPDX-License-Identifier: Apache-2.0
"""The memory for answers: it is bounded, receives without memory wait in line, and in the end all is released."""

import asyncio
import contextlib
import gc
import json
import threading
import weakref

import pytest

from sqsqlite.access.access import Access
from sqsqlite.access.keys import add_key
from sqsqlite.actions import receive as receive_service
from sqsqlite.serve.application import HttpApplication
from sqsqlite.serve.budget import Budget, Share
from sqsqlite.serve.commits import BATCH_BYTES, Commits
from sqsqlite.serve.metrics import Metrics
from sqsqlite.serve.pages import MonitoringPages
from sqsqlite.serve.protocol import IS_GONE, UNTIL_READ
from tests.serve.exchanges import posted

MIB = 2**20
LONG = "x" * 200_000


async def until(is_so):
    while not is_so():  # noqa: ASYNC110 - other threads make it so
        await asyncio.sleep(0)


class Endpoint:
    """Drives the application as an HTTP server does. The test decides when clients read their answers."""

    def __init__(self, store, budget, texts):
        self.store = store
        self.budget = budget
        pages = MonitoringPages(store, Metrics(), metrics_for_all=False)
        self._application = HttpApplication(store, Access(store), pages, None, Metrics(), [], budget, texts)

    async def __aenter__(self):
        self._application.start()
        return self

    async def __aexit__(self, *_):
        await self._application.stop()

    def end_waits(self):
        self._application.end_waits()

    async def ask(self, action, body, until_read=lambda tell: tell(), gone=None):
        """Status and body of an answer. Both are None if the client disconnected."""
        requests = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
        gone = gone or asyncio.Event()
        sent = []

        async def next_message():
            if requests:
                return requests.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = posted(action, **{IS_GONE: gone.is_set, UNTIL_READ: until_read})
        await self._application(scope, next_message, send)
        if not sent:
            return None, None
        return sent[0]["status"], json.loads(sent[1]["body"] or b"{}")

    async def fill(self, name, *bodies):
        await self.ask("CreateQueue", {"QueueName": name})
        for body in bodies:
            await self.ask("SendMessage", {"QueueUrl": name, "MessageBody": body})

    def receive(self, name="long", **options):
        """Receive in a task. The message stays visible, so the next receive gets it too."""
        kept = {key: options.pop(key) for key in ("until_read", "gone") if key in options}
        body = {"QueueUrl": name, "VisibilityTimeout": 0, **options}
        return asyncio.ensure_future(self.ask("ReceiveMessage", body, **kept))

    def send_long(self, gone=None):
        """A task."""
        return asyncio.ensure_future(
            self.ask("SendMessage", {"QueueUrl": "long", "MessageBody": LONG}, gone=gone)
        )

    async def use_up(self):
        """Receive long messages without reading them, until a receive waits in line.

        Returns:
            The receive that waits, and the functions that release the others.
        """
        unread = []
        while not self.budget.is_scarce:
            last = self.receive(until_read=unread.append)
            await until(lambda last=last: last.done() or self.budget.is_scarce)
        return last, unread


def run(store, scenario, limit_bytes=2 * MIB):
    """Run the scenario. After it, no memory may be held."""

    async def whole():
        budget, texts = Budget(limit_bytes), Budget(limit_bytes)
        async with asyncio.timeout(300), Endpoint(store, budget, texts) as endpoint:
            await endpoint.fill("long", LONG)
            await endpoint.fill("short", "hi")
            await scenario(endpoint)
        assert (budget.held_bytes, budget.is_scarce) == (0, False)
        assert (texts.held_bytes, texts.is_scarce) == (0, False)

    asyncio.run(whole())


def test_many_receives_hold_no_more_than_the_budget(store):
    """Forty at once, whose answers would take 8 MB together. Each gets its answer when earlier ones have been read."""
    held = []

    async def scenario(endpoint):
        unread = asyncio.Queue()

        def keep(tell):
            held.append(endpoint.budget.held_bytes)
            unread.put_nowait(tell)

        receives = [endpoint.receive(until_read=keep) for _ in range(40)]
        for _ in receives:
            (await unread.get())()
        assert {status for status, _ in await asyncio.gather(*receives)} == {200}
        assert all(len(receive.result()[1]["Messages"]) == 1 for receive in receives)

    run(store, scenario)
    assert max(held) <= 2 * MIB
    assert max(held) > 1 * MIB


def test_short_receives_do_not_wait_for_long_ones(store):
    async def scenario(endpoint):
        waiting, unread = await endpoint.use_up()
        for _ in range(20):
            assert (await endpoint.receive("short"))[1]["Messages"][0]["Body"] == "hi"
        assert not waiting.done()
        for tell in unread:
            tell()
        assert (await waiting)[1]["Messages"][0]["Body"] == LONG
        unread[-1]()

    run(store, scenario)


def test_receive_that_waits_longest_gets_memory_first(store):
    async def scenario(endpoint):
        first, unread = await endpoint.use_up()
        second = endpoint.receive(until_read=unread.append)
        await until(lambda: len(endpoint.budget._long_line) == 2)
        unread.pop(0)()
        assert (await first)[0] == 200
        assert not second.done()
        while unread:
            unread.pop(0)()
        assert (await second)[0] == 200
        unread.pop(0)()

    run(store, scenario)


def test_client_that_disconnects_in_the_line_holds_no_memory(store):
    async def scenario(endpoint):
        waiting, unread = await endpoint.use_up()
        gone = asyncio.Event()
        leaving = endpoint.receive(gone=gone)
        gone.set()
        await leaving
        for tell in unread:
            tell()
        await waiting
        unread[-1]()

    run(store, scenario)


def test_receive_that_gets_no_memory_in_time_is_refused(store, clock):
    """The receive claimed nothing. A long poll does not wait longer either."""

    async def scenario(endpoint):
        waiting, unread = await endpoint.use_up()
        clock.advance(seconds=20)
        status, answer = await waiting
        assert (status, answer["__type"].partition("#")[2]) == (503, "ServiceUnavailable")
        assert len(unread) > 1
        for tell in unread:
            tell()

    run(store, scenario)


def test_stopping_server_ends_the_waits_for_memory(store):
    async def scenario(endpoint):
        waiting, unread = await endpoint.use_up()
        endpoint.end_waits()
        assert (await waiting)[0] == 503
        for tell in unread:
            tell()

    run(store, scenario)


def test_failed_claim_holds_no_memory(store, monkeypatch):
    def fail(*_):
        raise RuntimeError("a fault of ours")

    async def scenario(endpoint):
        with monkeypatch.context() as patched:
            patched.setattr(receive_service, "_answered", fail)
            assert (await endpoint.receive())[0] == 500
        assert endpoint.budget.held_bytes == 0
        assert (await endpoint.receive("nowhere"))[0] == 400
        assert (await endpoint.receive())[0] == 200

    run(store, scenario)


def test_messages_claimed_for_a_disconnected_client_hold_no_memory(store, monkeypatch):
    """The client disconnected from its long poll during the claim, so its request ended before the claim."""
    claim = receive_service.claim
    gone = asyncio.Event()

    async def scenario(endpoint):
        await endpoint.fill("late")
        loop = asyncio.get_running_loop()

        def leave_behind(*arguments):
            claimed = claim(*arguments)
            if claimed[0] is not None:
                left = asyncio.run_coroutine_threadsafe(leave(), loop)
                left.result(300)
            return claimed

        async def leave():
            gone.set()
            await waiting

        waiting = endpoint.receive("late", WaitTimeSeconds=20, gone=gone)
        await until(lambda: endpoint._application.waiting)
        monkeypatch.setattr(receive_service, "claim", leave_behind)
        await endpoint.ask("SendMessage", {"QueueUrl": "late", "MessageBody": LONG})
        monkeypatch.setattr(receive_service, "claim", claim)

    run(store, scenario)


def test_memory_for_messages_that_others_took_is_released(store):
    """Two receives wait for memory for one message. Another gets it, and the two wait on without holding memory."""

    async def scenario(endpoint):
        await endpoint.fill("other", LONG)
        last, unread = await endpoint.use_up()
        waits = {"VisibilityTimeout": 43_200, "WaitTimeSeconds": 20}
        waiting = [endpoint.receive("other", **waits) for _ in range(3)]
        await until(lambda: len(endpoint.budget._long_line) == 4)
        for tell in unread:
            tell()
        await last
        unread[-1]()
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await until(lambda: not endpoint.budget.held_bytes)
        assert sum(one.done() for one in waiting) == 1
        endpoint.end_waits()
        assert sum(len(answer.get("Messages", [])) for _, answer in await asyncio.gather(*waiting)) == 1

    run(store, scenario)


@pytest.mark.parametrize("is_fifo", [False, True])
def test_delayed_and_grouped_messages_are_sized_too(store, clock, is_fifo):
    """A long message of a FIFO queue, or one whose delay has just ended, does not count as short."""

    async def scenario(endpoint):
        attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"} if is_fifo else {}
        name = "other.fifo" if is_fifo else "other"
        await endpoint.ask("CreateQueue", {"QueueName": name, "Attributes": attributes})
        more = {"MessageGroupId": "g"} if is_fifo else {"DelaySeconds": 1}
        await endpoint.ask("SendMessage", {"QueueUrl": name, "MessageBody": LONG, **more})
        waiting, unread = await endpoint.use_up()
        clock.advance(seconds=2)
        other = endpoint.receive(name)
        assert (await endpoint.receive("short"))[0] == 200
        assert not other.done()
        for tell in unread:
            tell()
        await waiting
        unread[-1]()
        assert (await other)[1]["Messages"][0]["Body"] == LONG

    run(store, scenario)


def test_answer_longer_than_the_budget_is_made_alone(store):
    async def scenario(endpoint):
        assert (await endpoint.receive())[1]["Messages"][0]["Body"] == LONG

    run(store, scenario, limit_bytes=MIB // 2)


def test_long_requests_are_carried_out_a_few_at_a_time(store, monkeypatch):
    """Twelve sends at once, whose texts take 1 MB each. One transaction never holds more of them than fit."""
    together = []
    submit = Commits.submit

    def count(self, operation, *arguments, **options):
        together.append(len(self._open) + 1)
        return submit(self, operation, *arguments, **options)

    async def scenario(endpoint):
        monkeypatch.setattr(Commits, "submit", count)
        body = {"QueueUrl": "long", "MessageBody": LONG}
        answers = await asyncio.gather(*[endpoint.ask("SendMessage", body) for _ in range(12)])
        assert [status for status, _ in answers] == [200] * 12
        refused = {"QueueUrl": "nowhere", "MessageBody": LONG}
        assert (await endpoint.ask("SendMessage", refused))[0] == 400

    run(store, scenario, limit_bytes=4 * MIB)
    assert max(together) == 3


def test_long_request_of_a_client_that_disconnects_in_the_line_is_dropped(store):
    """Even if the line does not move, because earlier writes wait for a long one."""
    may_end = threading.Event()

    async def scenario(endpoint):
        texts = endpoint._application._texts
        before = endpoint._application._operations._commits.submit(lambda tx: may_end.wait(300))
        sends = [endpoint.send_long() for _ in range(4)]
        await until(lambda: texts.is_scarce)
        gone = asyncio.Event()
        left = endpoint.send_long(gone)
        await until(lambda: len(texts._long_line) == 2)
        gone.set()
        assert await left == (None, None)
        assert len(texts._long_line) == 1
        may_end.set()
        await before
        assert [status for status, _ in await asyncio.gather(*sends)] == [200] * 4

    run(store, scenario, limit_bytes=4 * MIB)


def test_unauthenticated_request_is_refused_without_waiting_for_memory(store):
    async def scenario(endpoint):
        store.write(add_key, "000000000000", "")
        endpoint._application._access = Access(store)
        texts = endpoint._application._texts
        with Share(texts) as other:
            other.hold(texts.long_bytes)
            assert (await endpoint.send_long())[0] == 403

    run(store, scenario)


def test_transaction_of_a_group_has_a_limit_in_bytes(store):
    """Of five writes submitted together, two fit in one transaction. One more is larger than a transaction."""
    counts = []

    async def submit():
        commits = Commits(store, counts.append)
        sizes = [BATCH_BYTES // 2] * 5 + [2 * BATCH_BYTES, 0]
        await asyncio.gather(*[commits.submit(lambda tx: None, size_bytes=size) for size in sizes])
        await commits.close()

    asyncio.run(submit())
    assert counts == [2, 2, 1, 1, 1]


def test_results_are_released_after_they_were_handed_over(store):
    """Even while the thread waits for the next write, and even if another write of the transaction failed."""

    class Result:
        pass

    def succeed(tx):
        return Result()

    def fail(tx):
        raise RuntimeError("refused")

    async def submit():
        commits = Commits(store, lambda count: None)
        refused = commits.submit(fail)
        results = [commits.submit(succeed) for _ in range(3)]
        known = [weakref.ref(await result) for result in results]
        with contextlib.suppress(RuntimeError):
            await refused
        del results, refused
        await commits.submit(succeed)
        alive = [ref for ref in known if ref() is not None]
        await commits.close()
        return alive

    gc.disable()
    try:
        assert asyncio.run(submit()) == []
    finally:
        gc.enable()
