# SPDX-License-Identifier: Apache-2.0
"""A hint that installs an extra names the place that SQSQLite was installed from."""

import json
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest

from sqsqlite.operators import installed
from tests.packaging.checkout import ROOT

COMMIT = "0123456789012345678901234567890123456789"


@pytest.mark.parametrize(
    ("recorded", "command"),
    [
        pytest.param(None, "pip install 'sqsqlite[spark]'", id="an index"),
        pytest.param(
            {"url": "file:///srv/my%20code", "dir_info": {"editable": True}},
            "pip install -e '/srv/my code[spark]'",
            id="an editable checkout",
        ),
        pytest.param(
            {"url": "file:///srv/code", "dir_info": {}}, "pip install '/srv/code[spark]'", id="a checkout"
        ),
        pytest.param(
            {"url": "file:///tmp/sqsqlite-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install '/tmp/sqsqlite-0.1.0-py3-none-any.whl[spark]'",
            id="a local wheel",
        ),
        pytest.param(
            {"url": "https://example.com/sqsqlite-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'sqsqlite[spark] @ https://example.com/sqsqlite-0.1.0-py3-none-any.whl'",
            id="a wheel on a server",
        ),
        pytest.param(
            {"url": "https://example.com/s.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"pip install 'sqsqlite[spark] @ git+https://example.com/s.git@{COMMIT}'",
            id="a commit",
        ),
        pytest.param(
            {
                "url": "https://example.com/s.git",
                "vcs_info": {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"},
                "subdirectory": "python",
            },
            "pip install 'sqsqlite[spark] @ git+https://example.com/s.git@main#subdirectory=python'",
            id="a branch",
        ),
    ],
)
def test_hint_for_an_extra_installs_from_the_source_of_the_package(monkeypatch, recorded, command):
    text = None if recorded is None else json.dumps(recorded)
    monkeypatch.setattr(installed, "distribution", lambda _: SimpleNamespace(read_text=lambda _: text))
    assert installed.install_command("spark") == command


def test_a_checkout_that_is_not_installed_names_itself(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installed, "distribution", missing)
    assert installed.install_command("serve") == f"pip install -e '{ROOT}[serve]'"


def test_every_hint_gets_its_command_from_one_function():
    """No module contains `pip install 'sqsqlite[...]'` itself."""
    own = ROOT / "sqsqlite" / "operators" / "installed.py"
    modules = [path for folder in ("sqsqlite", "cli") for path in (ROOT / folder).rglob("*.py")]
    assert [str(path) for path in modules if path != own and "sqsqlite[" in path.read_text()] == []
