# SPDX-License-Identifier: Apache-2.0
"""docs/api.md describes every public name, argument and error."""

import inspect
import re

import pytest

import sqsqlite
from sqsqlite import boto, errors
from sqsqlite.actions.opening import DEFAULTS
from tests.packaging.checkout import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^#{2,3} ([^\n]+)\n(.*?)(?=^#{2,3} |\Z)", PAGE, re.MULTILINE | re.DOTALL))

DESCRIBED = [sqsqlite.SQS, sqsqlite.Queue, sqsqlite.Message]
MEMBERS = [
    (kind, name) for kind in DESCRIBED for name, _ in inspect.getmembers(kind) if not name.startswith("_")
]


def is_told(name, text):
    """Whether a piece of code contains it whole: `name` or `call(name=1)`."""
    return any(re.search(rf"\b{name}\b", code) for code in re.findall(r"`([^`\n]+)`", text))


def arguments(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls", "options")]


def test_every_public_name_is_in_the_table_at_the_top():
    top = PAGE.split("\n## ")[0]
    assert [name for name in dir(sqsqlite) if name[0] != "_" and f"[`sqsqlite.{name}`](#" not in top] == []


@pytest.mark.parametrize(("kind", "name"), MEMBERS, ids=[f"{kind.__name__}.{name}" for kind, name in MEMBERS])
def test_every_member_and_its_arguments_are_described(kind, name):
    """A call has a section of its own, or its signature in the first column of its class's table."""
    member = inspect.getattr_static(kind, name)
    member = getattr(member, "__func__", member)  # of a classmethod
    heading = f"{kind.__name__}.{name}"
    section = SECTIONS.get(heading, SECTIONS[kind.__name__])
    if inspect.isfunction(member):
        if heading not in SECTIONS:
            cells = "\n".join(re.findall(r"^\| (.+?) \|", section, re.MULTILINE))
            [section] = re.findall(rf"`{name}\([^`]*\)`", cells)
        assert [given for given in arguments(member) if not is_told(given, section)] == []
    else:
        assert isinstance(member, property) or inspect.ismemberdescriptor(member)
        assert is_told(name, section)


def test_no_section_describes_a_removed_member():
    shown = [
        heading.split(".") for heading in SECTIONS if heading.split(".")[0] in ("SQS", "Queue", "Message")
    ]
    assert [
        name for name in shown if len(name) == 2 and not hasattr(getattr(sqsqlite, name[0]), name[1])
    ] == []


@pytest.mark.parametrize(
    "kind",
    [
        sqsqlite.AccessKey,
        sqsqlite.DamagedMessage,
        sqsqlite.DeadLetter,
        sqsqlite.DeadLetterCount,
        sqsqlite.Finding,
        sqsqlite.Loaded,
        sqsqlite.MoveFilter,
        sqsqlite.MoveTask,
        sqsqlite.NewKey,
        sqsqlite.Peeked,
        sqsqlite.PlannedMove,
        sqsqlite.QueueMetrics,
        sqsqlite.QueueStatistics,
        sqsqlite.SchemaState,
        sqsqlite.SentMessage,
        sqsqlite.Session,
        sqsqlite.Upgrade,
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_field_is_described(kind):
    """Here or in the docstring to which the page points."""
    section, docstring = SECTIONS[kind.__name__], inspect.getdoc(kind) or ""
    names = [name for name in inspect.get_annotations(kind) if not name.startswith("_")]
    assert names
    assert [
        name for name in names if not is_told(name, section) and not re.search(rf"\b{name}\b", docstring)
    ] == []


def test_the_calls_of_a_move_task_are_described():
    calls = [name for name, _ in inspect.getmembers(sqsqlite.MoveTask, inspect.isfunction) if name[0] != "_"]
    assert calls
    assert [name for name in calls if not is_told(name, SECTIONS["MoveTask"])] == []


def test_the_calls_of_access_keys_are_described():
    calls = {name for name in vars(sqsqlite.AccessKeys) if name[0] != "_"}
    assert set(re.findall(r"^\| `(\w+)\(", SECTIONS["AccessKeys"], re.MULTILINE)) == calls


@pytest.mark.parametrize(
    "name", ["check", "check_dump", "key_file_session", "restore", "schema_state", "upgrade"]
)
def test_the_functions_on_closed_files_are_described_with_their_arguments(name):
    signature = inspect.signature(getattr(sqsqlite, name))
    plain = [given.replace(annotation=inspect.Parameter.empty) for given in signature.parameters.values()]
    shown = str(inspect.Signature(plain)).replace("'", '"')
    assert f"`{name}{shown}`" in SECTIONS[f"sqsqlite.{name}"]


@pytest.mark.parametrize("name", ["connect", "client"])
def test_the_signature_is_the_real_one(name):
    signature = inspect.signature(getattr(sqsqlite, name))
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()
    ]
    shown = str(inspect.Signature(plain)).replace("'", '"')
    assert f"`{name}{shown}`" in SECTIONS[f"sqsqlite.{name}"]


def test_every_option_has_its_row_and_its_default():
    rows = re.findall(r"^\| `(\w+)` \| (?:`(.+?)`)? ?\|", SECTIONS["sqsqlite.connect"], re.MULTILINE)
    defaults = [(name, repr(value).replace("'", '"')) for name, value in DEFAULTS.items()]
    assert rows == [("path", ""), *defaults]


@pytest.mark.parametrize("function", [boto.client, boto.resource, boto.attach], ids=lambda one: one.__name__)
def test_the_arguments_of_sqsqlite_boto_are_described(function):
    section = SECTIONS["sqsqlite.boto"]
    [shown] = re.findall(rf"`boto\.{function.__name__}\((.+?)\)`", section)
    assert [name for name in arguments(function) if name not in shown] == []


def test_the_clients_own_members_are_described():
    """Those that are not an action of SQS: the actions are boto3's."""
    section = SECTIONS["sqsqlite.client"]
    own = [
        name
        for name, member in inspect.getmembers(sqsqlite.Client)
        if name[0] != "_" and "Source: API_" not in (inspect.getdoc(member) or "")
    ]
    assert {"close", "get_paginator", "exceptions"} <= set(own)
    assert [name for name in own if not is_told(name, section)] == []


def test_the_manual_clocks_calls_are_described():
    calls = {name for name in vars(sqsqlite.ManualClock) if name[0] != "_"}
    assert set(re.findall(r"^\| `(\w+)\(", SECTIONS["ManualClock"], re.MULTILINE)) == calls


def test_the_tree_of_errors_is_the_real_one():
    """Each class stands under its base class."""
    tree = re.findall(r"^```text\n(SQSQLiteError.*?)^```", SECTIONS["Errors"], re.MULTILINE | re.DOTALL)[0]
    above, shown = [], {}
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 4
        for name in re.split(r"  +", line.strip())[0].split(", "):
            above = [*above[:depth], name]
            shown[name] = above[-2] if depth else "Exception"
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert shown == {kind.__name__: kind.__bases__[0].__name__ for kind in kinds}
