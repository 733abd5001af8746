# SPDX-License-Identifier: Apache-2.0
"""Opening a sound file writes nothing, so it does not wait for a writer."""

import threading

import sqsqlite


def test_file_opens_while_another_thread_holds_a_transaction(path):
    """Its queues can be inspected meanwhile: monitoring must work while a writer is slow."""
    writing, seen = threading.Event(), threading.Event()

    def write():
        with sqs.transaction():
            writing.set()
            assert seen.wait(300)

    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("paint the fence")
        writer = threading.Thread(target=write)
        writer.start()
        assert writing.wait(300)
        try:
            with sqsqlite.connect(path, busy_timeout=0) as other:
                assert [queue.name for queue in other.queues()] == ["orders"]
                assert [message.body for message in other.queue("orders").peek()] == ["paint the fence"]
        finally:
            seen.set()
            writer.join()
