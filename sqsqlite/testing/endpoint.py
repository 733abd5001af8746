# SPDX-License-Identifier: Apache-2.0
"""An endpoint on a thread of the test's process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqsqlite.api.connect import SQS
from sqsqlite.operators.installed import install_command
from sqsqlite.store.clock import OWN_THREADS


@contextmanager
def served(sqs: SQS) -> Iterator[str]:
    """Serve an open file on a free port of this machine for the length of a block.

    Yields:
        The endpoint's URL.

    Raises:
        ModuleNotFoundError: uvicorn is not installed.
    """
    try:
        from sqsqlite.serve.endpoint import Endpoint, EndpointOptions
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"an endpoint needs {error.name}: {install_command('serve')}") from error

    with Endpoint(EndpointOptions(port=0), has_keys=False) as endpoint:
        server = endpoint.server(sqs)
        # A ManualClock moves itself when all threads of the test wait; this one is none of them.
        thread = threading.Thread(target=server.run, name=f"{OWN_THREADS}endpoint", daemon=True)
        thread.start()
        try:
            yield endpoint.url
        finally:
            server.stop()
            thread.join()
