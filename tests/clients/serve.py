"""A server of a file, as a process that prints its URL: `python -m tests.clients.serve FILE [CERTIFICATE KEY]`."""

import signal
import sys
from pathlib import Path

from sqsqlite.service.opening import open_store
from sqsqlite.wire.server import Server, ServerOptions


def main(path, *tls):
    certificate, key = (Path(file) for file in tls) if tls else (None, None)
    store = open_store(path)
    server = Server(store, ServerOptions(port=0, tls_certificate=certificate, tls_key=key))
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    print(f"{'https' if tls else 'http'}://localhost:{server.address[1]}", flush=True)
    server.run()
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
