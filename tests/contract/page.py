"""docs/contract.md, which Git ignores: `make contract` makes it of the rules and the tests marked with them."""

from collections.abc import Iterator
from itertools import groupby

from tests.contract.contract import Rule, Theme, proofs, themes
from tests.contract.package import ROOT

PAGE = ROOT / "docs" / "contract.md"

_HEAD = """\
# The contract, rule by rule

What Amazon SQS promises and what clients have recorded of it, as rules with numbers, in our own words. Beside each
rule stand the tests that prove it, and what happened when the rule was switched off in the code: each of its tests must
then fail, by a check of its own. `python -m tests.contract.mutants` switches them off one by one, and so do the slow
tests.

{counts}

Tests are named below `tests/`; those in `behaviour/` run through every door. Sources: `API_...` is a page of the API
reference (version 2012-11-05), "recorded" what clients and the makers of emulators saw of Amazon SQS, and reference
documents 0 to 4 are those of [promises.md](promises.md). Where this project differs from Amazon on purpose, the rule
says which mode it is of; [differences.md](differences.md) says why.

`make contract` makes this page of `tests/contract/rules/` and the marks on the tests.
"""


def render() -> str:
    """The whole page."""
    every = [rule for theme in themes() for rule in theme.rules]
    kept = [rule for rule in every if not rule.is_mutated]
    counts = (
        f"{len(every) - len(kept)} rules are proven so. {len(kept)} more have tests, but no place in the code where\n"
        "they could be switched off: the last column says why."
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
