# SPDX-License-Identifier: Apache-2.0
"""S3 is down: nothing is sent, nothing is lost, and a delete does not fail. Arguments: the file, and what to do."""

import sys

import sqsqlite
from sqsqlite.payloads import PayloadStore, PayloadStoreDown, extend

LARGE = "Zürich " * 60_000

with sqsqlite.connect(sys.argv[1]) as sqs:
    queue = extend(sqs.create_queue("local", visibility_timeout=600), PayloadStore("s3://bodies"))
    if sys.argv[2] == "send":
        queue.send(LARGE)
        queue.send(LARGE)
        print(queue.receive()[0].receipt_handle)
    elif sys.argv[2] == "down":
        for call, arguments in ((queue.send, (LARGE,)), (queue.receive, ())):
            try:
                call(*arguments, **({"visibility_timeout": 0} if call == queue.receive else {}))
            except PayloadStoreDown as error:
                print(type(error).__name__, error.__cause__ is not None, "s3://bodies" in str(error))
        queue.delete_many([sys.argv[3]])
        print(len(queue), queue.payloads.counts.not_removed)
    else:
        [message] = queue.receive()
        print(message.body == LARGE)
