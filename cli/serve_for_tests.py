# SPDX-License-Identifier: Apache-2.0
"""What `sqsqlite serve` does with --queues and --test-mode."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, Failure, handled_by
from sqsqlite.cli.stopper import Stopper
from sqsqlite.contract.names import DEFAULT_REGION

if TYPE_CHECKING:
    from sqsqlite import SQS
    from sqsqlite.testing.serving import EndpointInTestMode


def queue_maker(path: Path | None) -> "Callable[[SQS], None]":
    """Read a file of queues. Returns the function that makes them."""
    if path is None:
        return lambda _: None
    from sqsqlite.api.queue_file import make_queues, read_queue_file

    with said(path):
        definitions = read_queue_file(path)
    return lambda sqs: make_queues(sqs, path, definitions)


@contextlib.contextmanager
def said(path: Path | None) -> Iterator[None]:
    """Turn what is wrong with a file of queues into a failure of the command."""
    if path is None:
        yield
        return
    from sqsqlite.api.queue_file import BadQueueFile

    try:
        yield
    except (BadQueueFile, ModuleNotFoundError) as error:
        raise Failure(f"--queues {error}", FAILED) from error


def serve_for_tests(
    line: CommandLine, options: dict[str, Any], make_queues: "Callable[[SQS], None]", log: TextIO | None
) -> None:
    """Serve in test mode until a signal comes, then remove the files."""
    _check(line, options)
    from sqsqlite.testing.serving import EndpointInTestMode, EndpointOptions

    path = None if line.options.get("db") is None else line.path
    chosen = {
        name: line.options[name]
        for name in ("region", "synchronous", "compat", "limits")
        if name in line.options
    }
    try:
        made = EndpointInTestMode(EndpointOptions(**options), path=path, fill=make_queues, **chosen)
    except ValueError as error:
        raise Failure(f"--test-mode: {error}", FAILED) from error
    except OSError as error:
        raise Failure(
            f"--host {options['host']} --port {options['port']}: {error.strerror}", FAILED
        ) from error
    with made as endpoint, said(Path()):
        server = endpoint.server_in_test_mode(log)
        with handled_by(Stopper(server), signal.SIGINT, signal.SIGTERM):
            _announce(endpoint, chosen.get("region", DEFAULT_REGION))
            server.run()


def _check(line: CommandLine, options: dict[str, Any]) -> None:
    for name, flag in (("key_file", "--keys"), ("require_tls", "--require-tls")):
        if options[name]:
            raise click.UsageError(f"--test-mode accepts any credentials, so {flag} can't be given with it")
    if options["processes"] > 1:
        raise click.UsageError("--test-mode has one clock, so it runs in one process: leave out --processes")
    if line.options.get("adopt"):
        raise click.UsageError("--test-mode makes a file of its own, so --adopt can't be given with it")


def _announce(endpoint: "EndpointInTestMode", region: str) -> None:
    """Say it with --quiet too: nobody must take this for a server that keeps messages."""
    texts = [
        f"TEST MODE on {endpoint.url}: everything is thrown away when the server ends",
        "any credentials are accepted, from every machine that reaches the address",
        f"requests without a signature mean the region {region}; its file is {endpoint.path}",
        "with the header X-Sqsqlite-Test, POST /_test/clock moves the clock, POST /_test/reset removes all queues",
    ]
    for text in texts:
        click.echo(text, err=True)
