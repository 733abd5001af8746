# SPDX-License-Identifier: Apache-2.0
"""`make contract` writes docs/contract.md from the rules and the marks on the tests; Git ignores the page."""

from collections.abc import Iterator
from itertools import groupby

from tests.contract.contract import Rule, Theme, proofs, themes
from tests.contract.package import ROOT

PAGE = ROOT / "docs" / "contract.md"

_HEAD = """\
# The contract, rule by rule

This page lists what Amazon SQS promises and what clients have recorded of it, as numbered rules in our own words. Each
row names the tests that prove the rule. The last column says what happens when the rule is switched off in the code:
each of its tests must then fail by its own check. `python -m tests.contract.mutants` switches the rules off one by
one, and so do the slow tests.

{counts}

Names of tests are relative to `tests/`. The tests in `behaviour/` run through every API. Sources: `API_...` is a page
of the API reference (version 2012-11-05), "recorded" is what clients and the makers of emulators saw of Amazon SQS, and
[promises.md](promises.md) lists reference documents 0 to 4. If this project differs from Amazon on purpose, the rule
names its mode; [differences.md](differences.md) says why.

`make contract` writes this page from `tests/contract/rules/` and the marks on the tests.
"""


def render() -> str:
    """The whole page."""
    every = [rule for theme in themes() for rule in theme.rules]
    kept = [rule for rule in every if not rule.is_mutated]
    counts = (
        f"{len(every) - len(kept)} rules are proven in this way. {len(kept)} more have tests, but no single change of\n"
        "the code switches them off: the last column says why."
    )
    return "\n".join([_HEAD.format(counts=counts), *(_section(theme) for theme in themes())])


def _section(theme: Theme) -> str:
    rows = "\n".join(f"| {' | '.join(_row(rule))} |" for rule in theme.rules)
    return f"## {theme.title}\n\n| number | rule | source | tests | switched off |\n|---|---|---|---|---|\n{rows}\n"


def _row(rule: Rule) -> Iterator[str]:
    yield rule.id
    yield _cell(rule.rule)
    yield _cell(rule.source)
    yield _tests(rule)
    yield _cell(f"{rule.off} (`{rule.switch.within}`)" if rule.is_mutated else f"*not*: {rule.kept}")


def _tests(rule: Rule) -> str:
    named = [test.removeprefix("tests/").split("::") for test in proofs().get(rule.id, ())]
    files = groupby(named, key=lambda pair: pair[0])
    return "; ".join(f"`{file}`: {', '.join(f'`{name}`' for _, name in some)}" for file, some in files)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
