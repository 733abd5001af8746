# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite serve` runs the SQS endpoint of the file."""

import contextlib
import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, Failure, failure_of, handled_by
from sqsqlite.cli.serve_for_tests import queue_maker, said, serve_for_tests
from sqsqlite.cli.stopper import Stopper
from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID
from sqsqlite.errors import SQSQLiteError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sqsqlite.serve.endpoint import Endpoint, Ready, Server

_is_base_url = re.compile(
    r"https?://(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?/?"
).fullmatch
# How long the last writes to the file, which no client waits for, may wait for other writers.
CLOSE_SECONDS = 2.0
_LOOK_AGAIN = 0.1
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address or name to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=9324,
    show_default=True,
    help="The port. 0 chooses a free one, which the command prints.",
)
@click.option(
    "--base-url",
    metavar="URL",
    help="The first part of queue URLs. Default: the scheme and Host header of each request.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    metavar="NAME",
    multiple=True,
    help="Without access keys, accept this name in the Host header, like localhost. Repeatable.",
)
@click.option(
    "--keys", "key_file", metavar="FILE", type=_FILE, help="More access keys, as in ~/.aws/credentials."
)
@click.option(
    "--tls-cert",
    "tls_certificate",
    metavar="FILE",
    type=_FILE,
    help="Serve HTTPS with this certificate, as PEM.",
)
@click.option("--tls-key", metavar="FILE", type=_FILE, help="The key of the certificate, as PEM.")
@click.option("--require-tls", is_flag=True, help="Refuse requests that did not come over HTTPS.")
@click.option(
    "--behind-proxy", is_flag=True, help="Trust X-Forwarded-Proto and -For of a proxy on this machine."
)
@click.option(
    "--rate-limit",
    metavar="N",
    type=click.FloatRange(0, min_open=True),
    help="Serve N requests a second for each account; refuse others with RequestThrottled.",
)
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="The number of serving processes.",
)
@click.option(
    "--log", metavar="PATH", help="Append a line of JSON for each request to PATH; - is standard error."
)
@click.option("--metrics-for-all", is_flag=True, help="Serve /metrics to other machines too.")
@click.option(
    "--queues",
    "queue_file",
    metavar="FILE",
    type=_FILE,
    help="Make the queues of a TOML file, or of ElasticMQ's configuration (.conf), at the start.",
)
@click.option(
    "--test-mode",
    is_flag=True,
    help="For test suites: any credentials, a file that is thrown away, a clock that clients move.",
)
@click.pass_obj
def serve(line: CommandLine, /, **options: Any) -> None:
    r"""Serve the file to SQS clients, until Ctrl-C or SIGTERM.

    \b
      sqsqlite serve
      sqsqlite serve --port 0 --synchronous NORMAL
      sqsqlite serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
      sqsqlite serve --test-mode --queues queues.toml

    Other programs may use the file meanwhile. Without access keys, the server accepts connections from this machine
    only, and serves every request, signed or not. `sqsqlite keys add` makes a key; from then on clients must sign
    requests. On the first signal the server answers long polls at once and finishes other requests. A second signal
    ends the server at once.
    """
    _check(options)
    log_path, queue_file, in_test_mode = (options.pop(name) for name in ("log", "queue_file", "test_mode"))
    _require_uvicorn()
    _check_certificate(options)
    make_queues = queue_maker(queue_file)
    if in_test_mode:
        with open_log(log_path) as log:
            serve_for_tests(line, options, make_queues, log)
        return
    with _endpoint(line, options) as endpoint, open_log(log_path) as log:
        with said(queue_file):
            make_queues(line.open(create=True))

        def make(place: int) -> "Server":
            with _protected():
                return endpoint.server(line.sqs, place, log)

        _run(line, options, make, lambda: _announce(line, options, endpoint))


@contextlib.contextmanager
def _protected() -> Iterator[None]:
    """Turn the refusal of an address without keys into a usage error."""
    from sqsqlite.serve.endpoint import Unprotected

    try:
        yield
    except Unprotected as error:
        raise click.UsageError(f"--host {error}") from error


def _endpoint(line: CommandLine, options: dict[str, Any]) -> "Endpoint":
    """Bind the address before any file is made, since binding may fail."""
    from sqsqlite.serve.endpoint import Endpoint, EndpointOptions

    key_file = options["key_file"]
    has_keys = line.exists and bool(line.sqs.keys.list())
    if has_keys:
        line.advise_privacy(line.path)
    try:
        with _protected():
            endpoint = Endpoint(EndpointOptions(**options), has_keys=has_keys)
    except OSError as error:
        raise Failure(
            f"--host {options['host']} --port {options['port']}: {error.strerror}", FAILED
        ) from error
    if key_file is not None:
        line.advise_privacy(key_file)
    return endpoint


def _run(
    line: CommandLine, options: dict[str, Any], make: Callable[[int], "Server"], announce: Callable[[], None]
) -> None:
    """Serve until a signal comes. `make` makes the server of each process, by its place."""
    if options["processes"] == 1:
        server = make(0)
        stopper = Stopper(server)
        with handled_by(stopper, signal.SIGINT, signal.SIGTERM):
            announce()
            server.run()
            close(line, stopper)
        return
    line.close_file()
    from sqsqlite.serve.endpoint import supervise

    exit_code = supervise(
        options["processes"], lambda place, ready: _work(line, make, place, ready), announce, line.say
    )
    if exit_code:
        raise Failure("", exit_code)


def _check(options: dict[str, Any]) -> None:
    if options["rate_limit"] is not None and not math.isfinite(options["rate_limit"]):
        raise click.UsageError(
            f"--rate-limit {options['rate_limit']}: it must be a finite number of requests a second"
        )
    if (options["tls_certificate"] is None) != (options["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key must be given together")
    if options["require_tls"] and options["tls_certificate"] is None and not options["behind_proxy"]:
        raise click.UsageError(
            "--require-tls needs --tls-cert and --tls-key, or --behind-proxy: every request would be refused"
        )
    for name in options["allowed_hosts"]:
        if not name or set(name) & set("/@*") or name.count(":") == 1:
            raise click.UsageError(
                f"--allowed-host {name}: it must be a name or an address, without a scheme, port or wildcard"
            )
    if options["base_url"] is not None and not _is_base_url(options["base_url"]):
        raise click.UsageError(
            f"--base-url {options['base_url']}: it must be http://HOST[:PORT] or https://HOST[:PORT], without a path "
            "or query: the URL of a queue adds the account and the name"
        )
    if options["processes"] > 1 and not hasattr(os, "fork"):
        raise click.UsageError("--processes: this system can't fork, so it can run only one process")


def _require_uvicorn() -> None:
    try:
        import uvicorn  # noqa: F401
    except ImportError as error:
        from sqsqlite.operators.installed import install_command

        raise Failure(f"{error}: `sqsqlite serve` needs it: {install_command('serve')}") from error


def _check_certificate(options: dict[str, Any]) -> None:
    """Check the certificate now, before a serving process would fail because of it."""
    certificate, key = options["tls_certificate"], options["tls_key"]
    if certificate is None:
        return
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        raise Failure(f"--tls-cert {certificate} --tls-key {key}: {error.strerror}") from error


def open_log(path: str | None) -> "AbstractContextManager[TextIO | None]":
    """Open the log."""
    if path in (None, "-"):
        return contextlib.nullcontext(sys.stderr if path else None)
    return open(str(path), "a", encoding="utf-8")


def _announce(line: CommandLine, options: dict[str, Any], endpoint: "Endpoint") -> None:
    count = options["processes"]
    by = f", {count} processes" if count > 1 else ""
    # A free port is printed with --quiet too: nothing else shows its number.
    say = line.say if options["port"] else partial(click.echo, err=True)
    say(f"serving {line.path} on {endpoint.url}{by}")
    if endpoint.is_keyed:
        line.say("access keys are in force: clients must sign requests")
    else:
        line.say(
            "no access keys: the server accepts clients of this machine only, and serves every request, signed or not, "
            f"as account {DEFAULT_ACCOUNT_ID}"
        )


def _work(line: CommandLine, make: Callable[[int], "Server"], place: int, ready: "Ready") -> int:
    """Run one process of several. It makes no file: if the file is missing, it fails."""
    try:
        server = make(place)
        stopper = Stopper(server)
        with handled_by(stopper, signal.SIGTERM):
            ready(server.stop)
            server.run()
            close(line, stopper)
    except (SQSQLiteError, click.ClickException) as error:
        failure = failure_of(error) if isinstance(error, SQSQLiteError) else error
        failure.show()
        return failure.exit_code
    return 0


def close(line: CommandLine, stopper: Stopper) -> None:
    """Close the file, or end the process at once if another program's lock keeps the file from closing.

    The file holds every answered request. The next process sweeps the file and copies the WAL.
    """
    closing = threading.Thread(target=line.close, daemon=True)
    closing.start()
    deadline = time.monotonic() + CLOSE_SECONDS
    closing.join(_LOOK_AGAIN)
    while closing.is_alive():
        if stopper.is_hurried or time.monotonic() > deadline:
            os._exit(0)
        closing.join(_LOOK_AGAIN)
