"""What users read, and what is loaded for it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sqsqlite.cli import main
from sqsqlite.cli.failures import EXIT_CODES
from sqsqlite.cli.verbs import VERBS
from tests.packaging.checkout import ROOT

HEAVY = ("alembic", "boto3", "jmespath", "msgspec", "pysqlite3", "sqlalchemy", "sqlite3")


def test_every_command_has_help_with_an_example(run, verb):
    shown = run(verb, "--help")
    assert shown.code == 0
    assert f"sqsqlite {verb} " in shown.out.partition("Options:")[0].partition("\n\n")[2]


def test_the_table_says_what_the_command_itself_says(verb):
    command = VERBS[verb].load()
    assert re.split(r"(?<=\.)\s", command.help or "")[0] == VERBS[verb].summary


def test_help_lists_every_command_and_every_exit_code(run):
    shown = run("--help").out
    assert [name for name in VERBS if not re.search(rf"^  {name}(  |$)", shown, re.MULTILINE)] == []
    assert [code for code in EXIT_CODES if not re.search(rf"^  {code}  ", shown, re.MULTILINE)] == []


def test_the_document_lists_every_command_option_and_exit_code():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    first_cells = "\n".join(
        line.split("|")[1] for line in text.replace(r"\|", "/").splitlines() if line[:1] == "|"
    )
    assert [name for name in VERBS if not re.search(rf"`{name}[ `]", first_cells)] == []
    flags = [flag for option in main.params if not getattr(option, "hidden", False) for flag in option.opts]
    assert [flag for flag in flags if not re.search(rf"`{flag}[ `]", first_cells)] == []
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning.partition(';')[0].partition(':')[0]}" in text.replace("`", "")


def test_unknown_command_is_a_usage_error(run):
    refused = run("frobnicate")
    assert (refused.code, refused.out) == (2, "")
    assert "frobnicate" in refused.err


def test_every_named_home_is_a_command(verb):
    assert VERBS[verb].load().name == verb


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        (["--help"], set()),
        (["send", "--help"], set()),
        (["completion", "bash"], set()),
        (["create", "orders"], {"msgspec", "pysqlite3"}),
        (["send", "orders", "hi", "--create"], {"msgspec", "pysqlite3"}),
        (["create-queue", "--queue-name", "orders"], {"msgspec", "pysqlite3"}),
    ],
    ids=" ".join,
)
def test_a_command_loads_only_what_it_needs(words: list[str], loaded: set[str], tmp_path: Path):
    """In a process of its own. Where the standard library's SQLite serves, sqlite3 stands for pysqlite3."""
    script = (
        "import sys\nfrom sqsqlite.cli import main\n"
        f"try: main({words!r})\n"
        f"finally: print('LOADED', *({set(HEAVY)!r} & sys.modules.keys()))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    [line] = [line for line in ran.stdout.splitlines() if line.startswith("LOADED")]
    found = {"pysqlite3" if name == "sqlite3" else name for name in line.split()[1:]}
    assert (ran.returncode, found) == (0, loaded), ran.stderr
