# SPDX-License-Identifier: Apache-2.0
"""Every rule has tests and a switch that fits the code, and docs/contract.md can be written.

test_mutants.py shows that the tests fail when the switch is applied.
"""

import pytest

from tests.contract.contract import proofs, rules, themes
from tests.contract.operators import SwitchError
from tests.contract.package import package
from tests.contract.page import render

RULES = rules()


def test_rules_of_a_theme_are_numbered_without_gaps():
    assert [rule.id for rule in RULES] == [
        f"{theme.name}.{number}" for theme in themes() for number in range(1, len(theme.rules) + 1)
    ]


def test_every_rule_has_tests():
    assert [rule.id for rule in RULES if not proofs().get(rule.id)] == []


def test_every_mark_names_an_existing_rule():
    assert sorted(proofs().keys() - {rule.id for rule in RULES}) == []


def test_a_rule_has_a_switch_or_a_reason_to_have_none():
    for rule in RULES:
        said = (rule.switch is None, rule.off is None)
        assert said == ((False, False) if rule.is_mutated else (True, True)), rule.id


@pytest.mark.parametrize("theme", themes(), ids=lambda theme: theme.name)
def test_a_rules_switch_fits_the_package(theme):
    """If this fails, the code has changed: adapt `switch`, then run `python -m tests.contract.mutants RULE`."""
    assert dict(_misfits(theme.rules, package())) == {}


def _misfits(some, package):
    for rule in some:
        if rule.is_mutated:
            try:
                file, changed = rule.switch.apply(package)
                compile(changed, file, "exec")
            except (SwitchError, SyntaxError) as error:
                yield rule.id, str(error)


def test_no_two_rules_say_the_same():
    sentences = [(rule.id.split(".")[0], rule.rule) for rule in RULES]
    assert len(set(sentences)) == len(sentences)


def test_the_page_has_every_rule_with_its_tests():
    page = render()
    for rule in RULES:
        [row] = [line for line in page.splitlines() if line.startswith(f"| {rule.id} |")]
        assert all(f"`{test.partition('::')[2]}`" in row for test in proofs()[rule.id]), rule.id
