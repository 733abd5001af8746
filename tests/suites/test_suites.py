# SPDX-License-Identifier: Apache-2.0
"""Suites in other languages, as their users write them: they reset `sqsqlite serve --test-mode` and move its clock."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.clients import endpoint as servers
from tests.clients.node import node_and_modules
from tests.clients.tools import need, run
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "docs" / "clients"


@pytest.fixture
def server(tmp_path):
    """A server in test mode."""
    started = servers.start(tmp_path, "--test-mode", is_keyed=False)
    yield started
    started.stop()


def test_a_suite_in_javascript_passes_against_a_server_that_it_starts(tmp_path):
    """docs/clients/javascript, by `npm test`. The server ends with the suite."""
    node, folder = node_and_modules()
    for name in ("shipping.mjs", "shipping.test.mjs", "sqsqlite-server.mjs"):
        shutil.copy(EXAMPLES / "javascript" / name, folder)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {"PATH": path, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    told = run(node, "--test", "--test-reporter=tap", cwd=folder, env=environment)
    assert re.findall(r"^# (pass|fail) (\d+)$", told, re.MULTILINE) == [("pass", "5"), ("fail", "0")]
    assert [path.name for path in tmp_path.glob("sqsqlite-test-*")] == []


def test_a_suite_in_javascript_passes_against_a_server_that_runs(server):
    """As with a service of a compose file."""
    node, folder = node_and_modules()
    for name in ("shipping.mjs", "shipping.test.mjs", "sqsqlite-server.mjs"):
        shutil.copy(EXAMPLES / "javascript" / name, folder)
    told = server.run(node, "--test", "--test-reporter=tap", cwd=folder)
    assert re.findall(r"^# (pass|fail) (\d+)$", told, re.MULTILINE) == [("pass", "5"), ("fail", "0")]


def test_a_suite_in_java_passes(server, tmp_path):
    """docs/clients/java, by `mvn test`."""
    need("javac", "apt-get install openjdk-17-jdk-headless")
    maven = need("mvn", "apt-get install maven")
    folder = shutil.copytree(EXAMPLES / "java", tmp_path / "java")
    server.run(maven, "-B", "-q", "test", cwd=folder)
    report = (folder / "target" / "surefire-reports" / "OrdersTest.txt").read_text("utf-8")
    assert "Tests run: 2, Failures: 0, Errors: 0, Skipped: 0" in report


def test_a_suite_in_go_passes(server, tmp_path):
    """docs/clients/go, by `go test`."""
    go = need("go", "apt-get install golang, version 1.24 or newer")
    folder = shutil.copytree(EXAMPLES / "go", tmp_path / "go")
    home = {name: run(go, "env", name).strip() for name in ("GOPROXY", "GOMODCACHE", "GOCACHE")}
    told = server.run(go, "test", "-count=1", "-v", "-mod=readonly", "./...", cwd=folder, environment=home)
    assert told.count("--- PASS") == 2
