# SPDX-License-Identifier: Apache-2.0
"""The effects and errors of a switch, which must not depend on where code lies or on the names of variables."""

import ast
import builtins

import pytest

from tests.contract.contract import rules
from tests.contract.operators import Switch, SwitchError
from tests.contract.package import Package, package

SHOP = """
from shop.stock import Stock, count

LIMIT = 10
QUERY = "SELECT name FROM goods WHERE price > :least AND sold = 0"
SIZES = {"small": 1, "large": 2}

def sell(stock, wanted, *, name=None):
    '''Sell some.'''
    left = count(stock) - wanted
    if left < 0 or (stock.closed and not name):
        raise ValueError("too many")
    stock.note("sold", amount=wanted)
    return left
"""


@pytest.mark.parametrize(
    ("table", "before", "after"),
    [
        ({"in": "LIMIT", "is": "11"}, "LIMIT = 10", "LIMIT = 11"),
        ({"in": "sell", "never": "closed"}, "if left < 0 or (stock.closed and not name):", "if False:"),
        ({"in": "sell", "always": "closed"}, "if left < 0 or (stock.closed and not name):", "if True:"),
        (
            {"in": "sell", "without": "closed"},
            "if left < 0 or (stock.closed and not name):",
            "if left < 0 or not name:",
        ),
        (
            {"in": "sell", "without": "less < 0"},
            "if left < 0 or (stock.closed and not name):",
            "if stock.closed and (not name):",
        ),
        ({"in": "sell", "drop": "note"}, 'stock.note("sold", amount=wanted)', "pass"),
        ({"in": "sell", "instead": "return rest", "do": "return -rest"}, "return left", "return -left"),
        ({"in": "sell", "replace": "count(...)", "by": "... + 1"}, "count(stock) -", "count(stock) + 1 -"),
        ({"in": "sell", "entry": "amount", "by": "... - 1"}, "amount=wanted", "amount=wanted - 1"),
        ({"in": "SIZES", "entry": "small", "by": "3"}, '"small": 1', "'small': 3"),
        ({"in": "SIZES", "without": "small"}, '"small": 1, ', ""),
        ({"in": "QUERY", "text": "sold = 0", "by": "sold = 1"}, "sold = 0", "sold = 1"),
        ({"in": "sell", "rename": "buy"}, "def sell", "def buy"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_an_operator_changes_one_thing(table, before, after):
    _, changed = Switch.read(table).apply(Package({"shop.py": SHOP}))
    assert SHOP.count(before) == 1
    assert ast.unparse(ast.parse(changed)) == ast.unparse(ast.parse(SHOP.replace(before, after)))


@pytest.mark.parametrize(
    ("table", "number"),
    [
        ({"in": "LIMIT", "is": "1_100"}, "1,100"),
        ({"in": "LIMIT", "is": "Range(-1, 1100)"}, "-1 to 1,100"),
        ({"in": "LIMIT", "is": "10 ** 2"}, None),
        ({"in": "SIZES", "entry": "small", "by": "3"}, None),
    ],
)
def test_a_switch_describes_the_number_it_sets(table, number):
    assert Switch.read(table).number == number


def test_statements_are_inserted_before_or_after_the_anchor():
    for operator in ("before", "after"):
        _, changed = Switch.read({"in": "sell", operator: "note", "do": "stock.open()"}).apply(
            Package({"shop.py": SHOP})
        )
        assert (changed.index("stock.open") < changed.index("stock.note")) == (operator == "before")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"in": "buy", "drop": "note"}, "nothing in the package is called buy"),
        ({"in": "sell", "drop": "tell"}, "0 of drop = 'tell' in sell"),
        ({"in": "sell", "replace": "stock", "by": "None"}, "0 of replace = 'stock'"),
        ({"in": "sell", "replace": "(stock)", "by": "None"}, "9 of replace = '\\(stock\\)'"),
        ({"in": "sell", "replace": "wanted", "by": "left"}, "0 of replace = 'wanted'"),
        ({"in": "sell", "before": "note", "do": "left = 0"}, "variables that the anchor does not name: left"),
        ({"in": "LIMIT", "is": "10"}, "nothing changes"),
        ({"in": "sell", "drop": "note", "by": "1"}, "takes something else"),
        ({"in": "sell", "skip": "note"}, "no such operator"),
    ],
)
def test_a_part_that_is_missing_or_ambiguous_is_refused(table, why):
    with pytest.raises(SwitchError, match=why):
        Switch.read(table).apply(Package({"shop.py": SHOP}))


def test_of_two_definitions_with_one_name_the_part_decides():
    texts = {"sale.py": SHOP, "gift.py": "def sell(stock):\n    stock.note('given')\n    return 0\n"}
    assert Switch.read({"in": "sell", "drop": "given"}).apply(Package(texts))[0] == "gift.py"
    with pytest.raises(SwitchError, match=r"ambiguous, it is in sale\.py, gift\.py"):
        Switch.read({"in": "sell", "drop": "note"}).apply(Package(texts))
    assert (
        Switch.read({"in": "sell", "drop": "note", "mentioning": "count"}).apply(Package(texts))[0]
        == "sale.py"
    )


def test_no_rule_depends_on_the_place_of_code_or_the_names_of_variables():
    """Each definition in a file of its own, and each variable of a function under another name."""
    moved = Package(dict(_torn_apart(package().texts)))
    refused = {}
    for rule in rules():
        if rule.is_mutated:
            try:
                rule.switch.apply(moved)
            except SwitchError as error:
                refused[rule.id] = str(error)
    assert refused == {}


def _torn_apart(texts):
    for file, text in texts.items():
        statements = ast.parse(text).body
        imports = [one for one in statements if isinstance(one, ast.Import | ast.ImportFrom | ast.If)]
        others = ", ".join(sorted(_names(statements)))
        start = "\n".join(map(ast.unparse, imports))
        if others:
            start += f"\nfrom {file.removesuffix('.py').replace('/', '.')} import {others}"
        for number, statement in enumerate(statements):
            if not isinstance(statement, ast.Import | ast.ImportFrom | ast.If):
                kept = _names(statements) | set(dir(builtins))
                yield f"elsewhere/{file}/{number}.py", f"{start}\n{ast.unparse(_renamed(statement, kept))}\n"


def _names(statements):
    found = set()
    for one in statements:
        match one:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


def _renamed(statement, kept):
    """Give other names to the variables that functions assign. Parameters keep theirs, because callers use them."""
    functions = [
        one for one in ast.walk(statement) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    within = [node for function in functions for node in ast.walk(function)]
    kept = kept | {node.arg for node in within if isinstance(node, ast.arg)}
    stored = {
        node.id for node in within if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } - kept
    for node in within:
        if isinstance(node, ast.Name) and node.id in stored:
            node.id = f"{node.id}_renamed"
    return statement
