# SPDX-License-Identifier: Apache-2.0
"""The help, and the modules that a command loads."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sqsqlite.cli import main
from sqsqlite.cli.failures import EXIT_CODES
from sqsqlite.cli.verbs import VERBS
from sqsqlite.errors import by_query_code
from tests.packaging.checkout import ROOT

HEAVY = ("alembic", "boto3", "jmespath", "msgspec", "pysqlite3", "rich", "sqlalchemy", "sqlite3")


def test_every_command_has_help_with_an_example(run, verb):
    shown = run(verb, "--help")
    assert shown.code == 0
    assert f"sqsqlite {verb} " in shown.out.partition("Options:")[0].partition("\n\n")[2]


def test_the_table_of_commands_repeats_each_commands_summary(verb):
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


def test_the_document_gives_the_other_names_of_each_error():
    """The errors of the key service exist only at Amazon."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `(\w+)` \| `([\w.]+)` \| `(\w+)` \|$", text, re.MULTILINE))
    names = {(kind.__name__, kind.query_code, kind.code) for kind in by_query_code.values()}
    assert told == {found for found in names if len(set(found)) > 1 and not found[0].startswith("Kms")}


def commands(command, words=()):
    """A command and those below it, with the words that lead there."""
    yield words, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*words, name))


def test_examples_in_help_keep_their_lines(run, verb):
    """Click joins lines without a separating mark, and prints any mark that it does not know."""
    for words, command in commands(VERBS[verb].load(), (verb,)):
        shown = run(*words, "--help").out
        assert r"\b" not in shown
        examples = re.findall(r"^ *(sqsqlite .*|.*\| sqsqlite .*)$", command.help, re.MULTILINE)
        assert examples, words
        lines = [line.strip() for line in shown.splitlines()]
        assert [example for example in examples if len(example) < 74 and example not in lines] == []


def test_examples_in_the_main_help_keep_their_lines(run):
    shown = run("--help").out
    assert r"\b" not in shown
    assert "    sqsqlite create orders\n    sqsqlite send orders" in shown


@pytest.mark.parametrize(
    ("word", "similar"),
    [("recieve", "did you mean receive"), ("send-mesage", "did you mean send-message"), ("frobnicate", "")],
)
def test_unknown_command_is_a_usage_error_that_names_similar_ones(run, word, similar):
    refused = run(word)
    assert (refused.code, refused.out) == (2, "")
    assert f"there is no command {word}" in refused.err
    assert similar in refused.err
    assert ("did you mean" in refused.err) == bool(similar)


def test_every_command_in_a_hint_exists(verb):
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
        (["send", "orders", "hi", "--create", "--output", "csv"], {"msgspec", "pysqlite3"}),
        (["send", "orders", "hi", "--create", "--output", "table"], {"msgspec", "pysqlite3", "rich"}),
    ],
    ids=lambda part: " ".join(
        part if isinstance(part, list) else sorted(part)
    ),  # the order of a set differs between processes
)
def test_a_command_loads_only_what_it_needs(words: list[str], loaded: set[str], tmp_path: Path):
    """In a process of its own. sqlite3 replaces pysqlite3 if the standard library's SQLite is used."""
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
        timeout=600,
        check=False,
    )
    [line] = [line for line in ran.stdout.splitlines() if line.startswith("LOADED")]
    found = {"pysqlite3" if name == "sqlite3" else name for name in line.split()[1:]}
    assert (ran.returncode, found) == (0, loaded), ran.stderr


@pytest.mark.parametrize(
    ("words", "left_out"), [(["queues"], "msgspec"), (["send", "orders", "hi"], "jmespath")]
)
def test_short_commands_start_without_the_other_actions(words: list[str], left_out: str, sqs, path: Path):
    """Each module takes time to load: these two start in at most four times the CPU time of bare Python."""
    script = (
        "import sys\nfrom sqsqlite.cli import main\n"
        f"try: main(['--db', {str(path)!r}, *{words!r}])\n"
        "finally: print('LOADED', *sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=True
    )
    loaded = set(ran.stdout.rpartition("LOADED")[2].split())
    assert (
        loaded
        & {left_out, "rich", "sqsqlite.actions.dispatch", "sqsqlite.api.queue", "sqsqlite.actions.moving"}
        == set()
    )
    assert "sqsqlite.store.store" in loaded


@pytest.mark.parametrize("words", [(), ("send",), ("db", "upgrade")])
def test_help_is_a_command_too(run, words):
    asked = run("help", *words)
    assert (asked.code, asked.out) == (0, run(*words, "--help").out)


def test_help_of_an_unknown_command_names_similar_ones(run):
    assert "did you mean create" in run("help", "creat").err
