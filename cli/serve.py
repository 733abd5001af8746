"""`sqsqlite serve`: the SQS endpoint of the file."""

import contextlib
import math
import os
import re
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, Failure, failure_of
from sqsqlite.cli.server_end import Stopper, close
from sqsqlite.cli.signals import handled_by
from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID
from sqsqlite.errors import SQSQLiteError

if TYPE_CHECKING:
    import socket
    from contextlib import AbstractContextManager

    from sqsqlite.access.access import Access
    from sqsqlite.access.key_file import KeyFile
    from sqsqlite.access.latch import Latch
    from sqsqlite.serve.counts import Counts
    from sqsqlite.serve.processes import Ready
    from sqsqlite.serve.server import Server, ServerOptions
    from sqsqlite.store.store import Store

_is_base_url = re.compile(
    r"https?://(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?/?"
).fullmatch
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address or name to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=9324,
    show_default=True,
    help="0: any that is free, and which is said.",
)
@click.option(
    "--base-url",
    metavar="URL",
    help="What queue URLs begin with. Default: what the client has asked, its Host header.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    metavar="NAME",
    multiple=True,
    help="Without access keys: answer to this name too, beside localhost. May be repeated.",
)
@click.option(
    "--keys", "key_file", metavar="FILE", type=_FILE, help="More access keys, as in ~/.aws/credentials."
)
@click.option("--tls-cert", metavar="FILE", type=_FILE, help="Serve HTTPS: the certificate, as PEM.")
@click.option("--tls-key", metavar="FILE", type=_FILE, help="The certificate's key, as PEM.")
@click.option("--require-tls", is_flag=True, help="Refuse requests that did not come over HTTPS.")
@click.option(
    "--behind-proxy", is_flag=True, help="Believe X-Forwarded-Proto and -For of this machine's proxy."
)
@click.option(
    "--rate-limit",
    metavar="N",
    type=click.FloatRange(0, min_open=True),
    help="Serve each account so many requests a second, and answer RequestThrottled beyond.",
)
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that serve the port.",
)
@click.option("--log", metavar="PATH", help="Append a line of JSON for each request; - is standard error.")
@click.option("--metrics-for-all", is_flag=True, help="Answer /metrics to other machines too.")
@click.pass_obj
def serve(line: CommandLine, /, **options: Any) -> None:
    r"""Serve the file to SQS clients, until Ctrl-C or SIGTERM.

    \b
      sqsqlite serve
      sqsqlite serve --port 0 --synchronous NORMAL
      sqsqlite serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem

    Other programs may use the file meanwhile. Without access keys every request is served, signed or not, and only
    this machine is listened to. `sqsqlite keys add` makes a key; from then on requests must be signed. A stop waits
    for answers under way, long polls are answered at once; a second signal does not wait.
    """
    _check(options)
    _require_uvicorn()
    _check_certificate(options)
    key_file = _read_keys(line, options["key_file"])
    keyed = _has_keys(line) or key_file is not None
    if not keyed:
        _refuse_strangers(options["host"])
    from sqsqlite.access.latch import Latch
    from sqsqlite.serve.metrics import shared_counts

    with _listen(options["host"], options["port"]) as listener, _log(options["log"]) as log:
        line.open(create=True)
        opened = _Opened(listener, log, key_file, Latch(is_set=keyed), shared_counts(options["processes"]))
        _run(line, options, opened, lambda: _announce(line, options, listener, keyed))


class _Opened(NamedTuple):
    """What is made of the options before there is a server; several processes share it."""

    listener: "socket.socket"
    log: TextIO | None
    key_file: "KeyFile | None"
    latch: "Latch"
    counts: "Counts"


def _run(line: CommandLine, options: dict[str, Any], opened: _Opened, announce: Callable[[], None]) -> None:
    if options["processes"] == 1:
        server = _server(line, options, opened, 0)
        stopper = Stopper(server)
        with handled_by(stopper, signal.SIGINT, signal.SIGTERM):
            announce()
            server.run()
            close(line, stopper)
        return
    line.close_file()
    from sqsqlite.serve.processes import supervise

    exit_code = supervise(
        options["processes"],
        lambda place, ready: _work(line, options, opened, place, ready),
        announce,
        line.say,
    )
    if exit_code:
        raise Failure("", exit_code)


def _check(options: dict[str, Any]) -> None:
    if options["rate_limit"] is not None and not math.isfinite(options["rate_limit"]):
        raise click.UsageError(f"--rate-limit {options['rate_limit']}: a finite number of requests a second")
    if (options["tls_cert"] is None) != (options["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    if options["require_tls"] and options["tls_cert"] is None and not options["behind_proxy"]:
        raise click.UsageError(
            "--require-tls needs --tls-cert and --tls-key, or --behind-proxy: nothing would be served"
        )
    for name in options["allowed_hosts"]:
        if not name or set(name) & set("/@*") or name.count(":") == 1:
            raise click.UsageError(
                f"--allowed-host {name}: a name or an address, without scheme, port and wildcard"
            )
    if options["base_url"] is not None and not _is_base_url(options["base_url"]):
        raise click.UsageError(
            f"--base-url {options['base_url']}: http://HOST[:PORT] or https://HOST[:PORT] is allowed, without path and "
            "query: a queue's URL goes on with account and name"
        )
    if options["processes"] > 1 and not hasattr(os, "fork"):
        raise click.UsageError("--processes: this system can't fork, so there can be one process alone")


def _require_uvicorn() -> None:
    try:
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise Failure(f"{error}: serve needs what `pip install 'sqsqlite[serve]'` installs") from error


def _check_certificate(options: dict[str, Any]) -> None:
    """Tell of a slip before a process is started, which would meet it only when it serves."""
    certificate, key = options["tls_cert"], options["tls_key"]
    if certificate is None:
        return
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        raise Failure(f"--tls-cert {certificate} --tls-key {key}: {error.strerror}") from error


def _read_keys(line: CommandLine, path: Path | None) -> "KeyFile | None":
    if path is None:
        return None
    from sqsqlite.access.key_file import KeyFile

    found = KeyFile(path)
    line.advise_privacy(path)
    return found


def _log(path: str | None) -> "AbstractContextManager[TextIO | None]":
    """What to write the log to, and close in the end."""
    if path is None:
        return contextlib.nullcontext()
    if path == "-":
        return contextlib.nullcontext(sys.stderr)
    return open(path, "a", encoding="utf-8")


def _has_keys(line: CommandLine) -> bool:
    """Whether the file of queues has keys. None is made yet: the address may be refused."""
    if not (line.exists and line.sqs.keys.list()):
        return False
    line.advise_privacy(line.path)
    return True


def _refuse_strangers(host: str) -> None:
    from sqsqlite.serve.server import is_loopback

    if not is_loopback(host):
        raise click.UsageError(
            f"--host {host}: other machines may reach this address, and there is no access key: anybody could do "
            "everything. `sqsqlite keys add` makes a key, --keys FILE names some."
        )


def _listen(host: str, port: int) -> "socket.socket":
    from sqsqlite.serve.server import listen

    try:
        return listen(host, port)
    except OSError as error:
        raise Failure(f"--host {host} --port {port}: {error.strerror}", FAILED) from error


def _announce(line: CommandLine, options: dict[str, Any], listener: "socket.socket", keyed: bool) -> None:
    host, port = listener.getsockname()[:2]
    scheme = "http" if options["tls_cert"] is None else "https"
    count = options["processes"]
    by = f", {count} processes" if count > 1 else ""
    # With --quiet too if it was any port: nobody else can tell which.
    say = line.say if options["port"] else partial(click.echo, err=True)
    say(f"serving {line.path} on {scheme}://{f'[{host}]' if ':' in host else host}:{port}{by}")
    if keyed:
        line.say("access keys are in force: requests must be signed")
    else:
        line.say(
            f"no access keys: every request is served as account {DEFAULT_ACCOUNT_ID}, signed or not, to this machine "
            "alone"
        )


def _server(line: CommandLine, options: dict[str, Any], opened: _Opened, place: int) -> "Server":
    from sqsqlite.serve.application import Options
    from sqsqlite.serve.metrics import Metrics
    from sqsqlite.serve.server import Server, ServerOptions

    served = ServerOptions(
        host=options["host"],
        port=options["port"],
        tls_certificate=options["tls_cert"],
        tls_key=options["tls_key"],
        behind_proxy=options["behind_proxy"],
        presents=Options((options["base_url"] or "").rstrip("/") or None),
        log=opened.log,
        metrics_for_all=options["metrics_for_all"],
        allowed_hosts=options["allowed_hosts"],
    )
    metrics = Metrics(opened.counts, place)
    store = line.sqs._store  # noqa: SLF001
    return Server(store, served, _access(store, options, opened, served), opened.listener, metrics)


def _access(store: "Store", options: dict[str, Any], opened: _Opened, served: "ServerOptions") -> "Access":
    from sqsqlite.access.keyed_access import KeyedAccess
    from sqsqlite.serve.throttle import Throttled

    access = KeyedAccess(
        store,
        opened.key_file,
        require_tls=options["require_tls"],
        latch=opened.latch,
        hosts=served.hosts,
    )
    if not access.is_in_force:
        _refuse_strangers(options["host"])
    limit = options["rate_limit"]
    return access if limit is None else Throttled(access, limit / options["processes"])


def _work(line: CommandLine, options: dict[str, Any], opened: _Opened, place: int, ready: "Ready") -> int:
    """One process of several. It makes no file: where the one that the others serve has gone, it can't start."""
    try:
        server = _server(line, options, opened, place)
        stopper = Stopper(server)
        with handled_by(stopper, signal.SIGTERM):
            ready(server.stop)
            server.run()
            close(line, stopper)
    except SQSQLiteError as error:
        return _tell(failure_of(error))
    except click.ClickException as error:
        return _tell(error)
    return 0


def _tell(failure: click.ClickException) -> int:
    """Its words, and its exit code."""
    failure.show()
    return failure.exit_code
