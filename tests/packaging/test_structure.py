# SPDX-License-Identifier: Apache-2.0
"""The rooms of the project: imports point down, nothing heavy loads on the way to a send."""

import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.packaging.checkout import ROOT, Import, imports, modules

# From the top down. A module imports from its own line and from the lines below, never from those above.
LAYERS = (
    ("cli",),
    ("demo",),  # a program of a user's: it works through what users import
    ("",),  # sqsqlite/__init__.py itself: the names that users import
    ("api", "boto", "serve", "spark"),  # the doors
    ("operators",),
    ("access",),
    ("actions",),
    ("store", "migrations"),
    # The SQL is text and imports nothing of the others.
    ("sql", "contract"),
    ("errors",),
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}

# What is slow to load, and the only rooms that import it as soon as they are imported themselves.
HEAVY = {
    "alembic": {"migrations"},
    "boto3": {"boto"},
    "botocore": {"boto"},
    "click": {"cli"},
    "jmespath": set(),
    "pyspark": set(),
    "rich": {"cli"},
    "sqlalchemy": {"migrations"},
    "uvicorn": {"serve"},
}
# The modules that the commands import. A program can use them too.
PUBLIC = {
    "sqsqlite",
    "sqsqlite.errors",
    "sqsqlite.operators.installed",  # how to install an extra, for hints
    "sqsqlite.serve.endpoint",
    "sqsqlite.spark",
    # SQS's own rules, for help texts and for commands made from the fields of the requests.
    "sqsqlite.contract.fifo_only",
    "sqsqlite.contract.limits",
    "sqsqlite.contract.names",
    "sqsqlite.contract.queue_attributes",
    "sqsqlite.contract.requests",
    "sqsqlite.contract.shapes",
}
PUBLIC_ROOMS = {"cli", "demo"}
VAGUE = {"base", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}

MODULES = modules()


@cache
def all_imports() -> list[tuple[str, Import]]:
    """Each module with each of its imports. Made for the tests that ask, not for those who collect them."""
    return [(module, found) for module, path in MODULES.items() for found in imports(module, path)]


def room(module: str) -> str:
    """`actions` for sqsqlite.actions.send, empty for sqsqlite."""
    return (*module.split("."), "")[1]


def where(module: str, found: Import) -> str:
    return f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.name}"


def test_every_module_has_a_room():
    """A new one is given its line in LAYERS, which names no room that does not exist."""
    assert {room(module) for module in MODULES} == RANK.keys()


def test_imports_point_down():
    """Also those for types alone, and those inside functions."""
    ours = [
        (module, found)
        for module, found in all_imports()
        if found.name.split(".")[0] == "sqsqlite" and {room(module), room(found.name)} <= RANK.keys()
    ]
    assert [where(*arrow) for arrow in ours if RANK[room(arrow[1].name)] < RANK[room(arrow[0])]] == []


def test_the_doors_stand_apart():
    """They share what is below them. The endpoint and boto3 in process take a file that Python's own API has opened."""
    doors = {"api": {"api"}, "boto": {"api", "boto"}, "serve": {"api", "serve"}, "spark": {"spark"}}
    crossing = [
        (module, found)
        for module, found in all_imports()
        if found.name.startswith("sqsqlite.")
        and room(module) in doors
        and room(found.name) in doors.keys() - doors[room(module)]
    ]
    assert [where(*arrow) for arrow in crossing] == []


def test_statements_import_nothing_of_ours():
    """The SQL is text. Others read it, and it reads none of them."""
    ours = [
        (module, found)
        for module, found in all_imports()
        if room(module) == "sql" and found.name.startswith("sqsqlite.") and room(found.name) != "sql"
    ]
    assert [where(*arrow) for arrow in ours] == []


def test_the_commands_stand_on_public_names():
    ours = [
        (module, found)
        for module, found in all_imports()
        if room(module) == "cli" and found.name.split(".")[0] == "sqsqlite"
    ]
    private = [arrow for arrow in ours if arrow[1].name not in PUBLIC]
    assert [where(*arrow) for arrow in private if room(arrow[1].name) not in PUBLIC_ROOMS] == []


def test_no_module_is_imported_by_two_names():
    """`import cli` would load sqsqlite.cli a second time, under another name."""
    assert [
        where(*arrow) for arrow in all_imports() if arrow[1].name.split(".")[0] in {"cli", "migrations"}
    ] == []


def test_heavy_modules_load_only_where_they_are_needed():
    heavy = [
        (module, found)
        for module, found in all_imports()
        if found.at_once and room(module) not in HEAVY.get(found.name.split(".")[0], {room(module)})
    ]
    assert [where(*arrow) for arrow in heavy] == []


def test_module_names_say_what_they_are_about():
    assert [module for module in MODULES if not VAGUE.isdisjoint(module.split("."))] == []


def test_modules_do_not_import_each_other_in_a_circle():
    """Nor for types alone, nor inside functions: two modules in a circle are one that is hard to read."""
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for module, found in all_imports():
        if (
            found.name in MODULES and found.name != "sqsqlite"
        ):  # whose names are loaded when they are asked for
            graph[module].add(found.name)
    while leaves := [module for module, wanted in graph.items() if not wanted & graph.keys() - {module}]:
        for module in leaves:
            del graph[module]
    assert graph == {}


def test_no_public_name_hides_a_module():
    """sqsqlite.client is a function, so its module is _client.py: importing a client.py would hide it."""
    packages = [
        importlib.import_module(module) for module, path in MODULES.items() if path.name == "__init__.py"
    ]
    beside = [
        f"{package.__name__}.{name}"
        for package in packages
        for name in {*vars(package), *getattr(package, "__all__", ())}
        if f"{package.__name__}.{name}" in MODULES and not isinstance(getattr(package, name), ModuleType)
    ]
    assert beside == []


@pytest.mark.parametrize(
    "program",
    [
        "import sqsqlite",
        "import sqsqlite; sqs = sqsqlite.connect('a.db'); sqs.create_queue('q').send('hi'); sqs.queue('q').receive()",
        "import sqsqlite; sqsqlite.client('a.db').create_queue(QueueName='q')",
    ],
    ids=["import", "connect, send, receive", "client"],
)
def test_nothing_heavy_is_loaded_by(program: str, tmp_path: Path):
    """In a process of its own: this one has loaded much already."""
    report = f"{program}\nimport sys; print(*sorted({set(HEAVY)!r} & sys.modules.keys()))"
    run = subprocess.run(
        [sys.executable, "-I", "-c", report],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr
