# SPDX-License-Identifier: Apache-2.0
"""The package's functions, classes and constants by their names, in whatever files they lie."""

import ast
import builtins
import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class SwitchError(Exception):
    """A rule's switch does not fit the sources: it says which name or part is missing, or there more than once."""


@dataclass(frozen=True)
class Definition:
    """A copy of a statement, to be changed."""

    file: str
    name: str  # its name in the module: f, Class.method, Class.field
    statement: ast.stmt  # the statement of the module: the definition, or the one that contains it
    node: ast.stmt
    outside: frozenset[str]  # Names that the module defines: all that are not variables of a function.

    @cached_property
    def parameters(self) -> frozenset[str]:
        scopes = [node for node in ast.walk(self.node) if isinstance(node, _SCOPES)]
        return frozenset(
            arg.arg for scope in scopes for arg in ast.walk(scope.args) if isinstance(arg, ast.arg)
        )

    @cached_property
    def variables(self) -> frozenset[str]:
        """The variables, parameters included."""
        within = list(ast.walk(self.node))
        stored = {
            node.id for node in within if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        caught = {node.name for node in within if isinstance(node, ast.ExceptHandler) and node.name}
        return self.parameters | stored | caught

    @cached_property
    def known(self) -> frozenset[str]:
        """Names that are not variables: the module's, Python's, and imported ones."""
        return self.outside | frozenset(dir(builtins)) | frozenset(_imported(ast.walk(self.node)))


class Package:
    """Files and their texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self._modules = {file: ast.parse(text) for file, text in texts.items()}
        self._places: dict[str, list[tuple[str, int, int]]] = {}
        for file, module in self._modules.items():
            for place, statement in enumerate(module.body):
                for number, (name, _) in enumerate(_definitions(statement)):
                    self._places.setdefault(name, []).append((file, place, number))

    def called(self, name: str) -> list[Definition]:
        """The functions, classes or constants of that name: f, Class.method, Class.field.

        Raises:
            SwitchError: nothing in the package has the name.
        """
        if name not in self._places:
            raise SwitchError(f"nothing in the package is called {name}")
        return [self._definition(*place) for place in self._places[name]]

    def _definition(self, file: str, place: int, number: int) -> Definition:
        statement = copy.deepcopy(self._modules[file].body[place])
        name, node = list(_definitions(statement))[number]
        return Definition(file, name, statement, node, self._names_of(file))

    def with_changed(self, definition: Definition) -> str:
        """The text of the definition's file with the changed statement."""
        text = self.texts[definition.file]
        lines = text.splitlines(keepends=True)
        statement = definition.statement
        first = min(node.lineno for node in (statement, *getattr(statement, "decorator_list", ())))
        changed = ast.unparse(ast.fix_missing_locations(statement))
        return "".join([*lines[: first - 1], changed, "\n", *lines[statement.end_lineno :]])

    @cache  # noqa: B019  a few packages in a process
    def _names_of(self, file: str) -> frozenset[str]:
        body = self._modules[file].body
        below = [
            node
            for statement in body
            if isinstance(statement, ast.If | ast.Try)
            for node in ast.walk(statement)
        ]
        nodes = [*body, *below]
        defined = {name for node in nodes if isinstance(node, ast.stmt) for name, _ in _definitions(node)}
        return frozenset({name for name in defined if "." not in name}) | frozenset(_imported(nodes))


@cache
def package() -> Package:
    """This checkout's."""
    paths = sorted((ROOT / "sqsqlite").rglob("*.py"))
    return Package({path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths})


def _definitions(statement: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if "overload" not in map(ast.unparse, statement.decorator_list):
                yield name, statement
        case ast.ClassDef(name=name):
            yield name, statement
            for inner in statement.body:
                for member, node in _definitions(inner):
                    yield f"{name}.{member}", node
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name, statement
        case ast.If() | ast.Try():
            for inner in ast.iter_child_nodes(statement):
                yield from _definitions(inner)


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0]
