# SPDX-License-Identifier: Apache-2.0
"""The rooms of the project: imports point down, and nothing heavy loads on the way to a send."""

import importlib
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.packaging.checkout import ROOT, Import, imports, modules

# From the top down. A module imports from its own room and from the lines below. Rooms on one line do not import each
# other.
LAYERS = (
    ("cli",),
    ("demo",),  # a program of a user's: it works through what users import
    ("",),  # sqsqlite/__init__.py itself: the names that users import
    # The doors.
    ("api", "boto", "dbapi", "django", "payloads", "replies", "serve", "spark", "testing", "transfer"),
    ("operators",),
    ("access",),
    ("actions",),
    ("store", "migrations"),
    ("sql", "contract"),
    ("errors",),
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
# The endpoint and boto3 in process take a file that Python's own API has opened.
ACROSS = {
    ("boto", "api"),
    ("django", "api"),
    ("django", "dbapi"),
    ("payloads", "api"),
    ("serve", "api"),
    ("replies", "api"),
    ("transfer", "api"),
} | {("testing", other) for other in ("api", "boto", "serve")}
# Others read the statements; a migration is frozen.
ALONE = {"sql", "migrations"}
# Modules that may import by a name computed at run time, which the tests below cannot see.
BY_NAME = {"sqsqlite", "sqsqlite.cli.verbs", "sqsqlite.testing"}

# What is slow to load, and the only rooms that import it as soon as they are imported themselves.
HEAVY = {
    "alembic": {"migrations"},
    "boto3": {"boto"},
    "botocore": {"boto"},
    "click": {"cli"},
    "django": {"django"},
    "fsspec": set(),
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
    "sqsqlite.api.queue_file",  # what `serve --queues` reads
    "sqsqlite.serve.endpoint",
    "sqsqlite.spark",
    "sqsqlite.transfer",
    "sqsqlite.payloads",
    "sqsqlite.testing.serving",  # what `serve --test-mode` runs
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

# How a module can import another.
WAYS = {
    "at once": "import {wanted}\n",
    "a name of it": "from {package} import {name}\n",
    "in a function": "def load():\n    from {package} import {name}\n",
    "for types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {package} import {name}\n",
}

MODULES = modules()
Arrow = tuple[str, Import]


@cache
def all_imports() -> list[Arrow]:
    """Each module with each of its imports. Made for the tests that use it, not for the collection."""
    return [(module, found) for module, path in MODULES.items() for found in imports(module, path)]


def room(module: str) -> str:
    """`actions` for sqsqlite.actions.send, empty for sqsqlite."""
    return (*module.split("."), "")[1]


def where(module: str, found: Import) -> str:
    return f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.name}"


def test_every_module_has_a_room():
    """A new module gets its line in LAYERS, which names only existing rooms."""
    assert {room(module) for module in MODULES} == RANK.keys()


def turned(arrows: Iterable[Arrow]) -> list[str]:
    """Those that lead up, or to a room on the same line."""
    found = []
    for module, wanted in arrows:
        here, there = room(module), room(wanted.name)
        if wanted.name.split(".")[0] == "sqsqlite" and {here, there} <= RANK.keys():
            allowed = here == there or RANK[here] < RANK[there] or (here, there) in ACROSS
            if not allowed or (here in ALONE and here != there):
                found.append(where(module, wanted))
    return found


def circles(arrows: Iterable[Arrow]) -> set[str]:
    """The modules that import each other, those between two circles too."""
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for module, found in arrows:
        # Except for the package itself: it loads a name's module when the name is used.
        if found.name in MODULES.keys() - {"sqsqlite", module}:
            graph[module].add(found.name)
    while True:
        imported = {name for wanted in graph.values() for name in wanted}
        ends = [module for module, wanted in graph.items() if module not in imported or not wanted]
        if not ends:
            return set(graph)
        graph = {module: wanted.difference(ends) for module, wanted in graph.items() if module not in ends}


def test_imports_point_down():
    """Also imports for types only, and those inside functions."""
    assert turned(all_imports()) == []


def test_modules_do_not_import_each_other_in_a_circle():
    """Neither for types only nor inside functions: two modules in a circle are one that is hard to read."""
    assert circles(all_imports()) == set()


def test_no_import_is_hidden_in_a_string():
    hidden = [
        module
        for module, path in MODULES.items()
        if re.search(r"\b(import_module|__import__)\(", path.read_text(encoding="utf-8"))
    ]
    assert sorted(hidden) == sorted(BY_NAME)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        ("sqsqlite.errors", "sqsqlite.contract.limits"),
        ("sqsqlite.contract.limits", "sqsqlite.store.clock"),
        ("sqsqlite.contract.limits", "sqsqlite.sql.messages"),
        ("sqsqlite.sql.messages", "sqsqlite.errors"),
        ("sqsqlite.sql.messages", "sqsqlite.contract.limits"),
        ("sqsqlite.migrations.env", "sqsqlite.sql.schema"),
        ("sqsqlite.migrations.env", "sqsqlite.store.store"),
        ("sqsqlite.store.store", "sqsqlite.actions.send"),
        ("sqsqlite.actions.send", "sqsqlite.access.keys"),
        ("sqsqlite.actions.send", "sqsqlite.operators.check"),
        ("sqsqlite.access.keys", "sqsqlite.operators.check"),
        ("sqsqlite.operators.check", "sqsqlite.api.queue"),
        ("sqsqlite.api.queue", "sqsqlite.boto"),
        ("sqsqlite.api.queue", "sqsqlite.serve.endpoint"),
        ("sqsqlite.spark.reports", "sqsqlite.api.queue"),
        ("sqsqlite.serve.endpoint", "sqsqlite.spark.reports"),
        ("sqsqlite.serve.endpoint", "sqsqlite"),
        ("sqsqlite.api.queue", "sqsqlite.demo.worker"),
        ("sqsqlite.demo.worker", "sqsqlite.cli.send"),
    ],
)
def test_an_import_that_points_up_is_found(module: str, wanted: str, way: str, tmp_path: Path):
    assert module in MODULES
    assert wanted in MODULES
    [found] = turned((module, found) for found in imports_of(module, wanted, way, tmp_path))
    assert found.endswith(f"imports {wanted}")


@pytest.mark.parametrize("way", WAYS)
def test_a_circle_of_imports_is_found(way: str, tmp_path: Path):
    """A circle of two modules of one room, where no arrow leads up."""
    module, found = next(
        (module, found)
        for module, found in all_imports()
        if room(module) == room(found.name) == "store" and found.name.count(".") == 2
    )
    back = [(found.name, one) for one in imports_of(found.name, module, way, tmp_path)]
    assert turned(back) == []
    assert {module, found.name} <= circles([*all_imports(), *back]) < MODULES.keys()


def imports_of(module: str, wanted: str, way: str, folder: Path) -> list[Import]:
    """The imports of `module` if its file held nothing but an import of `wanted`, written this way."""
    package, _, name = wanted.rpartition(".")
    path = folder / "source.py"
    path.write_text(
        WAYS[way].format(wanted=wanted, package=package or wanted, name=name if package else "connect")
    )
    return imports(module, path)


def test_the_commands_use_public_names():
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
    # Django looks for a database's engine in the module `base` of its package.
    named = MODULES.keys() - {"sqsqlite.django.base"}
    assert [module for module in named if not VAGUE.isdisjoint(module.split("."))] == []


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
def test_no_heavy_module_is_loaded_by(program: str, tmp_path: Path):
    """In a process of its own, because this one has loaded much already."""
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
