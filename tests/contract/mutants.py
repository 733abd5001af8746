# SPDX-License-Identifier: Apache-2.0
"""Switches rules off one at a time and runs their tests: each test must fail by its own check.

`python -m tests.contract.mutants [RULE or THEME ...]` does it from the shell.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tests.contract.contract import Rule, proofs, rules
from tests.contract.package import ROOT, package

AT_A_TIME = 2
# The package as in a wheel: these two folders lie inside it.
INSIDE = ("cli", "migrations")
# A mutant may wait for ever.
SECONDS_A_TEST = 15
SECONDS_IN_ALL = 3_000

# Python 3.11's parser fails in two threads at once: "AST constructor recursion depth mismatch".
_ONE_AT_A_TIME = Lock()

_PYTEST = (
    *("-m", "pytest", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider"),
    *("-p", "pytest_timeout", f"--timeout={SECONDS_A_TEST}", "-p", "tests.contract.verdict"),
)


class Tree:
    """A copy of the package and its tests, in which one file at a time is changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copytree(ROOT / "sqsqlite", path / "sqsqlite")
        shutil.copytree(ROOT / "tests", path / "tests")
        shutil.copy2(ROOT / "pyproject.toml", path)
        for folder in INSIDE:
            shutil.copytree(ROOT / folder, path / "sqsqlite" / folder)

    @contextmanager
    def mutated(self, rule: Rule) -> Iterator[None]:
        """The tree with the rule switched off, if the rule has a switch."""
        if rule.switch is None:
            yield
            return
        with _ONE_AT_A_TIME:
            file, changed = rule.switch.apply(package())
        path = self.path / file
        kept = path.read_text(encoding="utf-8")
        _write(path, changed)
        try:
            yield
        finally:
            _write(path, kept)

    def run(self, tests: Iterable[str]) -> dict[str, str]:
        """The tests' verdicts: see verdict.py."""
        verdict = self.path / "verdict.json"
        verdict.unlink(missing_ok=True)
        ended = subprocess.run(
            [sys.executable, *_PYTEST, *tests],
            cwd=self.path,
            env={
                **os.environ,
                "CONTRACT_VERDICT": str(verdict),
                "PYTHONPATH": str(self.path),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # they take longer to load than the tests to run
            },
            capture_output=True,
            text=True,
            timeout=SECONDS_IN_ALL,
            check=False,
        )
        if ended.returncode not in (0, 1) or not verdict.exists():
            return dict.fromkeys(
                tests, f"pytest ended with {ended.returncode}: {ended.stdout[-600:]}{ended.stderr[-600:]}"
            )
        return json.loads(verdict.read_text(encoding="utf-8"))

    def run_to_fail(self, tests: Iterable[str]) -> dict[str, str]:
        """The tests that do not fail by their own check, with their verdicts."""
        verdicts = self.run(tests)
        return {test: verdicts.get(test, "not run") for test in tests if verdicts.get(test) != "refuted"}


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    # Python recognizes stale compiled code by size and second, and both may be equal.
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


@contextmanager
def trees(count: int = AT_A_TIME) -> Iterator[list[Tree]]:
    with tempfile.TemporaryDirectory(prefix="sqsqlite-mutants-") as folder:
        yield [Tree(Path(folder) / str(number)) for number in range(count)]


def survivors(chosen: Iterable[Rule]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each rule with the tests that did not fail by their own check while it was switched off, and their verdicts."""
    free: SimpleQueue[Tree] = SimpleQueue()
    tests_of = proofs()  # here, in one thread: see _ONE_AT_A_TIME

    def refute(rule: Rule) -> tuple[str, dict[str, str]]:
        tree = free.get()
        try:
            with tree.mutated(rule):
                left = tree.run_to_fail(tests_of[rule.id])
                # Again, because the package's own sweeper may have been there first.
                left = left and tree.run_to_fail(left)
        finally:
            free.put(tree)
        return rule.id, left

    with trees() as some, ThreadPoolExecutor(len(some)) as pool:
        for tree in some:
            free.put(tree)
        for rule_id, left in pool.map(refute, [rule for rule in chosen if rule.is_mutated]):
            if left:
                yield rule_id, left


def failures_unmutated(chosen: Iterable[Rule]) -> dict[str, str]:
    """The rules' tests that fail although no rule is switched off."""
    tests = sorted({test for rule in chosen for test in proofs()[rule.id]})
    with trees(1) as [tree]:
        verdicts = tree.run(tests)
    return {test: verdicts.get(test, "not run") for test in tests if verdicts.get(test) != "passed"}


def main(names: list[str]) -> int:
    chosen = [rule for rule in rules() if not names or rule.id in names or rule.id.split(".")[0] in names]
    failed = failures_unmutated(chosen)
    for test, what in failed.items():
        print(f"fails although nothing is switched off: {test}: {what}")
    survived = 0
    for rule_id, left in survivors(chosen):
        survived += 1
        for test, what in left.items():
            print(f"{rule_id} is switched off, and does not fail: {test}: {what}", flush=True)
    print(f"{len(chosen)} rules, {survived} with tests that do not fail")
    return bool(failed or survived)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
