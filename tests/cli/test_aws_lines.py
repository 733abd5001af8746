# SPDX-License-Identifier: Apache-2.0
"""Flags, shorthand and JSON are understood as the AWS CLI understands them."""

import json
import os
import shlex
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from msgspec import inspect

from sqsqlite.cli import actions
from sqsqlite.cli.verbs import VERBS
from sqsqlite.contract.shapes import ACTIONS
from tests.packaging.checkout import ROOT

# Command lines, and the parameters that AWS CLI 1.45 was seen to send for them.
RECORDED = [
    (found["line"], found["sent"])
    for found in json.loads((ROOT / "tests" / "cli" / "aws_lines.json").read_text(encoding="utf-8"))
]
BY_VERB = {actions._verb(action): kind for action, kind in ACTIONS.items()}


def parameters(line: str):
    """The parameters of the resulting call."""
    verb, *words = shlex.split(line)
    context = VERBS[verb].load().make_context(verb, words)
    given = dict(context.params)
    for name in ("generate_cli_skeleton", "no_paginate", "max_items", "page_size", "starting_token"):
        given.pop(name, None)
    return actions._parameters(inspect.type_info(BY_VERB[verb]).fields, given)


@pytest.mark.parametrize(("line", "sent"), RECORDED, ids=[line for line, _ in RECORDED])
def test_a_line_means_what_it_means_to_the_aws_cli(line, sent):
    assert parameters(line) == sent


def test_every_action_has_its_verb_and_every_field_its_flag():
    """Against botocore's service model, from which the AWS CLI makes its own."""
    from botocore import xform_name
    from botocore.loaders import Loader

    model = Loader().load_service_model("sqs", "service-2")
    for action, found in model["operations"].items():
        command = VERBS[xform_name(action, "-")].load()
        flags = {flag for option in command.params for flag in option.opts}
        members = model["shapes"][found["input"]["shape"]]["members"] if "input" in found else {}
        assert {"--" + xform_name(member, "-") for member in members} <= flags, action


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("aws") is None, reason="the AWS CLI is not installed")
def test_the_aws_cli_still_sends_what_was_recorded():
    """One process a line, about a second each."""
    bodies = []

    class Recorder(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            """Print nothing on standard error."""

    keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_DEFAULT_REGION": "us-east-1"}
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        for line, _ in RECORDED:
            words = ["aws", "--endpoint-url", endpoint, "sqs", *shlex.split(line)]
            subprocess.run(words, env={**os.environ, **keys}, check=True, capture_output=True)
        server.shutdown()
        thread.join()
    assert bodies == [sent for _, sent in RECORDED]
