"""The endpoint with its engine left out: a SendMessage is read and answered, and no file sees it. Argument: a port."""

import hashlib
import sys
import tempfile
import uuid
from pathlib import Path

from sqsqlite.requests import SendMessage
from sqsqlite.responses import SendMessageResponse
from sqsqlite.service.opening import open_store
from sqsqlite.wire.operations import Operations
from sqsqlite.wire.server import Server, ServerOptions


class Bare(Operations):
    async def execute(self, request, caller, gone):
        if not isinstance(request, SendMessage):
            return await super().execute(request, caller, gone)
        digest = hashlib.md5(request.message_body.encode()).hexdigest()
        return SendMessageResponse(md5_of_message_body=digest, message_id=str(uuid.uuid4()))


def main(port):
    from sqsqlite.wire import application

    application.Operations = Bare
    with tempfile.TemporaryDirectory() as folder:
        Server(open_store(Path(folder) / "queues.db"), ServerOptions(port=port)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
