# SPDX-License-Identifier: Apache-2.0
"""The rules of SQS's contract, the tests that prove them, and the change of the code that switches each of them off.

rules/THEME.toml holds the rules of a theme. The table of a source holds the rules that come from it. A source is a page
of the API reference (API_...), of the developer guide, the service model, or "recorded" for what clients have seen of
Amazon. Before its keys a rule has its number:

    3.rule = "An attempt is remembered for 5 minutes."
    3.switch = { in = "Limits.receive_attempt_seconds", is = "299" }

    rule    what holds, in one or two sentences
    switch  the change that switches it off: `in` names a function, a method or a constant, and operators.py lists
            the changes; so that
    off     (in a few words) this happens instead; left out where the switch sets a number or a range
    kept    in place of the last two: why no change of the code switches the rule off

A test names the rules it proves: `@pytest.mark.rule("attempt.3")`.
"""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.contract.operators import Switch
from tests.contract.package import ROOT

TESTS = ROOT / "tests"
RULES = Path(__file__).parent / "rules"


@dataclass(frozen=True, kw_only=True)
class Rule:
    id: str
    rule: str
    source: str
    switch: Switch | None = None
    off: str | None = None
    kept: str | None = None

    @property
    def is_mutated(self) -> bool:
        return self.kept is None


@dataclass(frozen=True)
class Theme:
    name: str
    title: str
    rules: tuple[Rule, ...]


@cache
def themes() -> tuple[Theme, ...]:
    """The themes in the order of the page."""
    found = []
    for path in RULES.glob("*.toml"):
        sources = tomllib.loads(path.read_text(encoding="utf-8"))
        place, title = sources.pop("place"), sources.pop("title")
        numbered = [
            (int(number), _rule(f"{path.stem}.{number}", source, table))
            for source, tables in sources.items()
            for number, table in tables.items()
        ]
        rules = tuple(rule for _, rule in sorted(numbered, key=lambda pair: pair[0]))
        found.append((place, Theme(path.stem, title, rules)))
    return tuple(theme for _, theme in sorted(found, key=lambda pair: pair[0]))


def _rule(rule_id: str, source: str, table: dict[str, Any]) -> Rule:
    switch = Switch.read(table["switch"]) if "switch" in table else None
    off = table.get("off") or (switch and switch.number)
    return Rule(**{**table, "id": rule_id, "source": source, "switch": switch, "off": off})


def rules() -> list[Rule]:
    return [rule for theme in themes() for rule in theme.rules]


@cache
def proofs() -> dict[str, tuple[str, ...]]:
    """Rule -> its tests, as pytest names them: below the root, without parameters."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for function, ids in _marked(path):
            for rule_id in ids:
                found.setdefault(rule_id, []).append(f"{path.relative_to(ROOT).as_posix()}::{function}")
    return {rule_id: tuple(tests) for rule_id, tests in found.items()}


def _marked(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Test functions with their rules, read without importing the file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule":
                    yield node.name, [ast.literal_eval(argument) for argument in decorator.args]
