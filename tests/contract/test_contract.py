"""Every rule has its tests and can be switched off where its file says so, and docs/contract.md can be made.

That the tests fail when it is, test_mutants.py shows.
"""

from tests.contract.contract import ROOT, proofs, rules, themes
from tests.contract.page import render

RULES = rules()


def test_rules_are_numbered_one_by_one_below_their_theme():
    assert [rule.id for rule in RULES] == [
        f"{theme.name}.{number}" for theme in themes() for number in range(1, len(theme.rules) + 1)
    ]


def test_every_rule_has_tests():
    assert [rule.id for rule in RULES if not proofs().get(rule.id)] == []


def test_every_mark_is_of_a_rule_that_there_is():
    assert sorted(proofs().keys() - {rule.id for rule in RULES}) == []


def test_a_rule_has_a_switch_or_says_why_not():
    for rule in RULES:
        switch = (rule.file, rule.old, rule.new, rule.off)
        if rule.is_mutated:
            assert None not in switch, rule.id
        else:
            assert switch == (None,) * 4, rule.id


def test_a_rule_is_switched_off_at_one_place():
    """If not, the code was changed: let `old` and `new` follow it, and run `python -m tests.contract.mutants RULE`."""
    texts = {rule.file: (ROOT / rule.file).read_text(encoding="utf-8") for rule in RULES if rule.is_mutated}
    mutated = [rule for rule in RULES if rule.is_mutated]
    assert [rule.id for rule in mutated if texts[rule.file].count(rule.old) != 1] == []
    assert [rule.id for rule in mutated if rule.old == rule.new] == []


def test_no_two_rules_say_the_same():
    sentences = [(rule.id.split(".")[0], rule.rule) for rule in RULES]
    assert len(set(sentences)) == len(sentences)


def test_the_page_has_every_rule_with_its_tests():
    page = render()
    for rule in RULES:
        [row] = [line for line in page.splitlines() if line.startswith(f"| {rule.id} |")]
        assert all(f"`{test.partition('::')[2]}`" in row for test in proofs()[rule.id]), rule.id
