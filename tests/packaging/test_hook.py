# SPDX-License-Identifier: Apache-2.0
"""The hook that checks the subjects of commits, in a real repository."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packaging.checkout import ROOT


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the Makefile's way to install the hook, without the settings of this machine's user."""
    if shutil.which("git") is None and not os.environ.get("CI"):
        pytest.skip("there is no git")
    for name in list(os.environ):
        if name.startswith("GIT_"):  # set by git for a hook that runs the tests
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for name, value in (("user.name", "A"), ("user.email", "a@example.org"), ("commit.gpgsign", "false")):
        subprocess.run(["git", "-C", tmp_path, "config", name, value], check=True)
    shutil.copytree(ROOT / ".githooks", tmp_path / ".githooks")
    shutil.copy(ROOT / "Makefile", tmp_path / "Makefile")
    return tmp_path


def install(repository: Path) -> str:
    made = subprocess.run(["make", "hooks"], cwd=repository, capture_output=True, text=True, check=True)
    return made.stdout + made.stderr


def commit(repository: Path, message: str) -> tuple[int, str]:
    made = subprocess.run(
        ["git", "commit", "--quiet", "--allow-empty", "--message", message],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    return made.returncode, made.stderr


@pytest.mark.parametrize(
    "subject",
    [
        "Fence DeleteMessage by receipt token",
        "x" * 60,
        "ü" * 60,
        "\n# a comment of git's editor\n\nFence DeleteMessage",
        f"Merge branch '{'x' * 60}'",
        f'Revert "{"x" * 60}"',
    ],
)
def test_a_subject_of_60_characters_or_made_by_git_is_accepted(repository, subject):
    install(repository)
    assert commit(repository, f"{subject}\n\nWhy it was done.") == (0, "")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("x" * 61, "61 characters, 60 are allowed"),
        ("ü" * 61, "61 characters, 60 are allowed"),
        (f"Merge the modules of {'x' * 40}", "61 characters, 60 are allowed"),
        ("Two lines\nof a subject", "second line of the message must be empty"),
    ],
)
def test_a_malformed_message_is_refused(repository, message, told):
    install(repository)
    code, errors = commit(repository, message)
    assert code != 0
    assert told in errors


@pytest.mark.parametrize(
    ("subject", "code"), [("Fence DeleteMessage by receipt token", 0), ("x" * 61, 1)], ids=["60", "61"]
)
@pytest.mark.parametrize(
    "settings",
    [(), ("core.commentChar=;",), ("commit.verbose=true",)],
    ids=["plain", "another sign of a comment", "with the diff"],
)
def test_a_message_of_the_editor_is_read_without_gits_own_text(repository, settings, subject, code):
    """Git's comments follow the subject at once, and with `commit --verbose` the diff follows them."""
    install(repository)
    editor = repository / "editor"
    editor.write_text(f'#!/bin/sh\n{{ printf %s "{subject}"; cat "$1"; }} >"$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o700)
    subprocess.run(["git", "-C", repository, "add", "Makefile"], check=True)
    given = [word for setting in (f"core.editor={editor}", *settings) for word in ("-c", setting)]
    made = subprocess.run(
        ["git", *given, "commit", "--quiet"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert (made.returncode, "characters, 60 are allowed" in made.stderr) == (code, bool(code)), made.stderr


def test_hooks_path_that_was_set_before_stays(repository):
    subprocess.run(["git", "-C", repository, "config", "core.hooksPath", "/somewhere"], check=True)
    assert "core.hooksPath is /somewhere" in install(repository)
    kept = subprocess.run(
        ["git", "-C", repository, "config", "core.hooksPath"], capture_output=True, text=True, check=True
    )
    assert kept.stdout == "/somewhere\n"


def test_other_hooks_of_the_user_stay(repository):
    """core.hooksPath would switch them off."""
    (repository / ".git" / "hooks").mkdir(exist_ok=True)
    (repository / ".git" / "hooks" / "pre-push").write_text("#!/bin/sh\n")
    assert "has hooks: .githooks/commit-msg is not installed" in install(repository)
    assert commit(repository, "x" * 61) == (0, "")


def test_setup_in_a_folder_of_another_repository_does_not_touch_it(repository):
    unpacked = repository / "unpacked"
    unpacked.mkdir()
    shutil.copytree(ROOT / ".githooks", unpacked / ".githooks")
    shutil.copy(ROOT / "Makefile", unpacked / "Makefile")
    assert install(unpacked) == ""
    assert commit(repository, "x" * 61) == (0, "")


def test_a_second_setup_prints_nothing(repository):
    assert "Commit subjects are checked" in install(repository)
    assert install(repository) == ""
