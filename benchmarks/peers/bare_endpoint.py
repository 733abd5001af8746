# SPDX-License-Identifier: Apache-2.0
"""The endpoint without its engine: requests are read and answered, but do not reach a file. Argument: a port."""

import hashlib
import sys
import tempfile
import uuid
from pathlib import Path

from sqsqlite.actions.opening import open_store
from sqsqlite.contract.requests import DeleteMessage, ReceiveMessage, SendMessage
from sqsqlite.contract.responses import Empty, ReceivedMessage, ReceiveMessageResponse, SendMessageResponse
from sqsqlite.serve import application
from sqsqlite.serve.endpoint import EndpointOptions, Server
from sqsqlite.serve.operations import Operations

BODY = "x" * 100
HANDLE = "h" * 60  # as long as ours


def _digest(body):
    return hashlib.md5(body.encode()).hexdigest()


class Bare(Operations):
    async def execute(self, request, caller, gone):
        if isinstance(request, SendMessage):
            return SendMessageResponse(
                md5_of_message_body=_digest(request.message_body), message_id=str(uuid.uuid4())
            )
        if isinstance(request, ReceiveMessage):
            message = ReceivedMessage(
                message_id=str(uuid.uuid4()), receipt_handle=HANDLE, md5_of_body=_digest(BODY), body=BODY
            )
            return ReceiveMessageResponse(messages=[message])
        if isinstance(request, DeleteMessage):
            return Empty()
        return await super().execute(request, caller, gone)


def main(port):
    application.Operations = Bare
    with tempfile.TemporaryDirectory() as folder:
        Server(open_store(Path(folder) / "queues.db"), EndpointOptions(port=port)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
