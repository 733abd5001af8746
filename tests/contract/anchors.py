# SPDX-License-Identifier: Apache-2.0
"""Parts of a definition, found by properties that a rename of its variables does not change.

An anchor is a word or a pattern. A word stands for every attribute, keyword, name outside of the function, and string
constant that is called so. Any other text is a Python expression or statement: its variables stand for any variable,
`...` for any expression, `f(...)` for a call with any arguments, and the rest for itself.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from keyword import iskeyword

from tests.contract.package import Definition, SwitchError

Bindings = dict[str, str]
_NOT_COMPARED = {"ctx", "kind", "type_comment", "type_params"}


@dataclass(frozen=True, eq=False)
class Site:
    """A node, and where it stands."""

    node: ast.AST
    above: "Site | None"
    owner: ast.AST = field(repr=False)
    slot: str
    place: int | None  # the index in a list

    def put(self, node: ast.AST) -> None:
        if self.place is None:
            setattr(self.owner, self.slot, node)
        else:
            getattr(self.owner, self.slot)[self.place] = node

    def up(self) -> Iterator["Site"]:
        """This site and those around it."""
        site: Site | None = self
        while site is not None:
            yield site
            site = site.above


def sites(definition: Definition) -> Iterator[Site]:
    """All code that runs in it, from top to bottom: no decorators, annotations and docstrings."""
    for site in _below(definition.node, None):
        yield from _all(site)


def found(definition: Definition, anchor: str) -> list[tuple[Site, Bindings]]:
    """The place of the anchor, and the variables that the pattern's variables match."""
    if anchor.isidentifier() and not iskeyword(anchor):
        return [(site, {}) for site in sites(definition) if _is_called(site.node, anchor, definition)]
    pattern = _pattern(anchor)
    matches = []
    for site in sites(definition):
        bindings: Bindings = {}
        if _matches(pattern, site.node, definition, bindings):
            matches.append((site, bindings))
    return matches


def expression(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise SwitchError(f"no expression: {text}") from error


def _pattern(text: str) -> ast.AST:
    try:
        [statement] = ast.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise SwitchError(f"neither an expression nor a statement: {text}") from error
    return statement.value if isinstance(statement, ast.Expr) else statement


def _all(site: Site) -> Iterator[Site]:
    yield site
    for below in _below(site.node, site):
        yield from _all(below)


def _below(node: ast.AST, above: Site | None) -> Iterator[Site]:
    for slot, value in ast.iter_fields(node):
        if slot in ("annotation", "returns", "decorator_list"):
            continue
        if isinstance(value, ast.AST):
            yield Site(value, above, node, slot, None)
        elif isinstance(value, list):
            for place, one in enumerate(value):
                if isinstance(one, ast.AST) and not _is_docstring(one):
                    yield Site(one, above, node, slot, place)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_called(node: ast.AST, word: str, definition: Definition) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.keyword(arg=name) | ast.Constant(value=str(name)):
            return name == word
        case ast.Name(id=name):
            return name == word and name not in definition.variables
    return False


def _matches(pattern: object, node: object, definition: Definition, bindings: Bindings) -> bool:
    match pattern, node:
        case ast.Constant(value=value), _ if value is ...:
            return isinstance(node, ast.expr)
        case ast.Call(func=wanted, args=[ast.Constant(value=value)], keywords=[]), ast.Call(func=called) if (
            value is ...
        ):
            return _matches(wanted, called, definition, bindings)
        case ast.Name(id=wanted), ast.Name(id=name) if wanted not in definition.known:
            return name in definition.variables and bindings.setdefault(wanted, name) == name
        case ast.AST(), ast.AST():
            return type(pattern) is type(node) and all(
                _matches(value, getattr(node, slot), definition, bindings)
                for slot, value in ast.iter_fields(pattern)
                if slot not in _NOT_COMPARED
            )
        case list(), list():
            return len(pattern) == len(node) and all(
                _matches(one, other, definition, bindings) for one, other in zip(pattern, node, strict=True)
            )
    return type(pattern) is type(node) and pattern == node
