# SPDX-License-Identifier: Apache-2.0
"""The checkout's own parts: its modules by the names they ship under, and their imports. No code of ours runs."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"sqsqlite": "sqsqlite", "cli": "sqsqlite.cli", "migrations": "sqsqlite.migrations"}


@dataclass(frozen=True)
class Import:
    """One import: its module, and whether it runs as soon as the importing module does."""

    name: str
    line: int
    at_once: bool


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def modules() -> dict[str, Path]:
    """Every module that ships, by the name a user imports it by: cli/send.py is sqsqlite.cli.send."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


def imports(module: str, path: Path) -> list[Import]:
    """The imports of `module`, inside functions too. `from package import x` is package.x if that is a module."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    known = modules()
    found = []
    for node, at_once in _walk(ast.parse(path.read_text(encoding="utf-8")), at_once=True):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno, at_once) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, package)
            names = [f"{origin}.{alias.name}" for alias in node.names]
            found += [Import(name if name in known else origin, node.lineno, at_once) for name in names]
    return found


def _origin(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join((*above, *([node.module] if node.module else [])))


def _walk(node: ast.AST, *, at_once: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Each node below, and whether it runs at import: neither in a function nor under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        later = later or (isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"))
        yield child, at_once
        yield from _walk(child, at_once=at_once and not later)
