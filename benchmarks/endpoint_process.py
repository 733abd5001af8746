# SPDX-License-Identifier: Apache-2.0
"""A contestant's process, from its first answer to its end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request

import endpoint_load
from peers.servers import CannotRun

START_SECONDS = 120
STOP_SECONDS = 20


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def call(contestant, action, **parameters):
    """Make one request. Returns its answer as a dict."""
    body = json.dumps(parameters)
    headers = endpoint_load.headers(contestant.port, action, body, contestant.key)
    request = urllib.request.Request(f"http://127.0.0.1:{contestant.port}/", body.encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"{}")


@contextlib.contextmanager
def running(contestant, folder):
    """The server's process and its queue's URL. Raises CannotRun if it does not start."""
    log = folder / "log"
    with log.open("wb") as told:
        process = subprocess.Popen(
            contestant.command,
            cwd=folder,
            env={**os.environ, **contestant.environment},
            stdout=told,
            stderr=told,
            process_group=0,  # the same session, so that the scheduler treats it like the measuring process
        )
    try:
        yield process, _first_answer(contestant, process, log)
    finally:
        _stop(process)


def _stop(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_SECONDS)


def _first_answer(contestant, process, log):
    deadline = time.monotonic() + START_SECONDS
    refused = "no answer"
    while time.monotonic() < deadline and process.poll() is None:
        try:
            return call(contestant, "CreateQueue", QueueName="bench")["QueueUrl"]
        except OSError as error:
            refused = str(error)
        time.sleep(0.2)
    lines = log.read_text(errors="replace").strip().splitlines()
    ended = "" if process.poll() is None else f", ended with {process.returncode}"
    raise CannotRun(f"it does not start ({refused}{ended}): {lines[-1] if lines else 'it said nothing'}")
