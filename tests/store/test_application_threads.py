# SPDX-License-Identifier: Apache-2.0
"""Several threads begin the application's first transactions at the same time."""

import threading

import sqsqlite

THREADS = 4
OPENINGS = 20


def test_threads_that_begin_the_first_transactions_together_all_succeed(tmp_path):
    """Each opening is one chance that two threads create the application's side of the store twice."""
    failures = []
    for opening in range(OPENINGS):
        with sqsqlite.connect(tmp_path / f"{opening}.db", synchronous="NORMAL") as sqs:
            queue = sqs.create_queue("orders")
            together = threading.Barrier(THREADS)

            def send(sqs=sqs, queue=queue, together=together):
                together.wait()
                try:
                    with sqs.transaction():
                        queue.send("hello")
                except sqsqlite.errors.StoreError as error:
                    failures.append(error)

            threads = [threading.Thread(target=send) for _ in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(queue) == THREADS - len(failures)
            assert failures == []
