# SPDX-License-Identifier: Apache-2.0
"""The changes that switch a rule off: each operator changes a named function, method or constant.

    is = EXPRESSION         the constant's value; a function does nothing but return it
    never = ANCHOR          the condition around the anchor is False
    always = ANCHOR         it is True
    without = ANCHOR        the smallest part around the anchor that can be left out, is: a term of `and`, `or`, `+`; an
                            entry of a tuple, list, set or dict; a keyword argument; a condition of a comprehension
    drop = ANCHOR           the smallest statement around the anchor is left out
    instead = ANCHOR        other statements take its place,
    before = ANCHOR         or come before it,
    after = ANCHOR          or come behind it:
        do = STATEMENTS
    replace = ANCHOR        another expression takes its place, in which `...` is the old one:
        by = EXPRESSION
    entry = NAME            another value takes the place of that key's in a dict, or of that keyword argument's:
        by = EXPRESSION
    text = TEXT             within a string another text takes its place, with any spaces between its words:
        by = TEXT
    rename = NAME           the function or class is called so

If there are several such parts, `nth` says which one (from 1). If several functions of one name have the part,
`mentioning` gives a word that only one of them contains. anchors.py describes anchors.
"""

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.contract.anchors import Bindings, Site, expression, found, sites
from tests.contract.package import Definition, Function, Package, SwitchError

_NUMBER = re.compile(r"[\d_]+|Range\(-?[\d_]+, -?[\d_]+\)")
_WITH_BY = ("replace", "entry", "text")
_WITH_DO = ("before", "after", "instead")


@dataclass(frozen=True)
class Switch:
    """The table of a rule's switch, in which `within` is called `in`."""

    within: str
    operator: str
    operand: str
    new: str | None = None
    nth: int | None = None
    mentioning: str | None = None

    @classmethod
    def read(cls, table: dict[str, Any]) -> "Switch":
        """Raises SwitchError for a table that is not a switch."""
        left = dict(table)
        within, nth, mentioning = (left.pop(key, None) for key in ("in", "nth", "mentioning"))
        new = {key: left.pop(key) for key in ("by", "do") if key in left}
        if within is None or len(left) != 1:
            raise SwitchError(f"a switch has `in` and one operator: {table}")
        [(operator, operand)] = left.items()
        wanted = ["by"] if operator in _WITH_BY else ["do"] if operator in _WITH_DO else []
        if operator not in _OPERATORS or list(new) != wanted:
            raise SwitchError(f"no such operator, or one that takes something else: {table}")
        return cls(within, operator, operand, next(iter(new.values()), None), nth, mentioning)

    @property
    def number(self) -> str | None:
        """The number or the range that it sets, in words."""
        if self.operator != "is" or not _NUMBER.fullmatch(self.operand):
            return None
        return " to ".join(f"{int(one):,}" for one in re.findall(r"-?[\d_]+", self.operand))

    def apply(self, package: Package) -> tuple[str, str]:
        """The file to change and its new text.

        Raises:
            SwitchError: the name or the part is not there, or there more than once; or nothing changes.
        """
        definition = self.changed(package)
        return definition.file, package.with_changed(definition)

    def changed(self, package: Package) -> Definition:
        """The only definition of that name that has the part."""
        changed, refused = [], []
        for definition in package.called(self.within):
            if self.mentioning and not found(definition, self.mentioning):
                continue
            before = ast.dump(definition.statement)
            try:
                _OPERATORS[self.operator](definition, self)
            except SwitchError as error:
                refused.append(f"{definition.file}: {error}")
            else:
                if ast.dump(definition.statement) == before:
                    raise SwitchError(f"nothing changes in {self.within}")
                changed.append(definition)
        if not changed:
            raise SwitchError("; ".join(refused) or f"no {self.within} mentions {self.mentioning}")
        if len(changed) > 1:
            raise SwitchError(f"ambiguous, it is in {', '.join(definition.file for definition in changed)}")
        return changed[0]


def _one(parts: list[Any], switch: Switch) -> Any:
    """The part that the switch names."""
    number = switch.nth or 1
    if len(parts) < number or (switch.nth is None and len(parts) > 1):
        raise SwitchError(f"{len(parts)} of {switch.operator} = {switch.operand!r} in {switch.within}")
    return parts[number - 1]


def _distinct(pairs: Iterable[tuple[Site | None, Bindings]]) -> list[tuple[Site, Bindings]]:
    return list({id(site.node): (site, bindings) for site, bindings in pairs if site is not None}.values())


def _climbed(definition: Definition, switch: Switch, wanted: Callable[[Site], bool]) -> tuple[Site, Bindings]:
    """The nearest part of that kind around the anchor."""
    return _one(
        _distinct(
            (next(filter(wanted, site.up()), None), bindings)
            for site, bindings in found(definition, switch.operand)
        ),
        switch,
    )


# --- names -------------------------------------------------------------------------------------------------------


class _Bind(ast.NodeTransformer):
    """A rule's own variables as those of the function, and `...` as the code that stood there."""

    def __init__(self, bindings: Bindings, stood: ast.AST | None) -> None:
        self.bindings = bindings
        self.stood = stood

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.bindings.get(node.id, node.id), node.ctx)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return self.stood if node.value is ... and self.stood is not None else node


def _bound(new: ast.AST, definition: Definition, bindings: Bindings, stood: ast.AST | None = None) -> Any:
    own = _stored(new) - (definition.variables - definition.parameters)
    for node in ast.walk(new):
        if isinstance(node, ast.comprehension):
            own |= _stored(node.target)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
    read = {node.id for node in ast.walk(new) if isinstance(node, ast.Name)}
    imported = {
        alias.name for node in ast.walk(new) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    if strange := read - own - imported - bindings.keys() - definition.parameters - definition.known:
        raise SwitchError(f"variables that the anchor does not name: {', '.join(sorted(strange))}")
    return _Bind(bindings, stood).visit(new)


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _expression(switch: Switch, definition: Definition, bindings: Bindings, stood: ast.AST) -> ast.expr:
    return _bound(expression(switch.new or ""), definition, bindings, stood)


def _statements(switch: Switch, definition: Definition, bindings: Bindings) -> list[ast.stmt]:
    try:
        module = ast.parse(switch.new or "")
    except SyntaxError as error:
        raise SwitchError(f"no statements: {switch.new}") from error
    return _bound(module, definition, bindings).body


# --- operators ---------------------------------------------------------------------------------------------------


def _is(definition: Definition, switch: Switch) -> None:
    value = _bound(expression(switch.operand), definition, {})
    match definition.node:
        case ast.Assign() | ast.AnnAssign() as constant:
            constant.value = value
        case ast.FunctionDef() | ast.AsyncFunctionDef() as function:
            function.body = [ast.Return(value)]
        case _:
            raise SwitchError(f"{switch.within} has no value")


def _is_condition(site: Site) -> bool:
    return site.slot == "test" or (site.slot == "ifs" and isinstance(site.owner, ast.comprehension))


def _never(definition: Definition, switch: Switch) -> None:
    site, _ = _climbed(definition, switch, _is_condition)
    site.put(ast.Constant(switch.operator == "always"))


def _is_statement(site: Site) -> bool:
    return isinstance(site.node, ast.stmt)


def _drop(definition: Definition, switch: Switch) -> None:
    site, _ = _climbed(definition, switch, _is_statement)
    site.put(ast.Pass())


def _do(definition: Definition, switch: Switch) -> None:
    site, bindings = _climbed(definition, switch, _is_statement)
    new = _statements(switch, definition, bindings)
    body = getattr(site.owner, site.slot)
    if site.place is None:
        raise SwitchError(f"no statement: {switch.operand}")
    first = site.place + (switch.operator == "after")
    body[first : site.place + (switch.operator != "before")] = new


def _is_part(site: Site) -> bool:
    match site.owner, site.slot:
        case (ast.BoolOp(), "values") | (ast.comprehension(), "ifs") | (ast.Call(), "keywords"):
            return True
        case (ast.BinOp(op=ast.Add()), _):
            return site.slot != "op"
        case (ast.Tuple() | ast.List() | ast.Set(), "elts") | (ast.Dict(), "keys" | "values"):
            return True
    return False


def _without(definition: Definition, switch: Switch) -> None:
    site, _ = _climbed(definition, switch, _is_part)
    match site.owner:
        case ast.BinOp() as sum_:
            other = sum_.left if site.slot == "right" else sum_.right
            _where(definition, sum_).put(other)
        case ast.Dict() as table:
            del table.keys[site.place], table.values[site.place]
        case owner:
            left = getattr(owner, site.slot)
            del left[site.place]
            if isinstance(owner, ast.BoolOp) and len(left) == 1:
                _where(definition, owner).put(left[0])


def _where(definition: Definition, node: ast.AST) -> Site:
    return next(site for site in sites(definition) if site.node is node)


def _replace(definition: Definition, switch: Switch) -> None:
    expressions = [pair for pair in found(definition, switch.operand) if isinstance(pair[0].node, ast.expr)]
    site, bindings = _one(expressions, switch)
    site.put(_expression(switch, definition, bindings, site.node))


def _entry(definition: Definition, switch: Switch) -> None:
    values: list[Site] = []
    for site in sites(definition):
        match site.owner, site.slot:
            case ast.Dict(keys=keys), "values":
                key = keys[site.place]
                if isinstance(key, ast.Constant) and key.value == switch.operand:
                    values.append(site)
            case ast.keyword(arg=switch.operand), "value":
                values.append(site)
    site = _one(values, switch)
    site.put(_expression(switch, definition, {}, site.node))


def _text(definition: Definition, switch: Switch) -> None:
    spaced = re.compile(r"\s+".join(map(re.escape, switch.operand.split())))
    places = [
        (site.node, match)
        for site in sites(definition)
        if isinstance(site.node, ast.Constant) and isinstance(site.node.value, str)
        for match in spaced.finditer(site.node.value)
    ]
    constant, match = _one(places, switch)
    constant.value = constant.value[: match.start()] + switch.new + constant.value[match.end() :]


def _rename(definition: Definition, switch: Switch) -> None:
    if not isinstance(definition.node, Function | ast.ClassDef):
        raise SwitchError(f"{switch.within} is no function or class")
    definition.node.name = switch.operand


_OPERATORS: dict[str, Callable[[Definition, Switch], None]] = {
    "is": _is,
    "never": _never,
    "always": _never,
    "without": _without,
    "drop": _drop,
    "before": _do,
    "after": _do,
    "instead": _do,
    "replace": _replace,
    "entry": _entry,
    "text": _text,
    "rename": _rename,
}
