# SPDX-License-Identifier: Apache-2.0
"""Each test of a rule fails while the rule is switched off, and passes otherwise.

Two rules of a theme run at a time; a mutant costs less than a second of processor time.
"""

import pytest

from tests.contract.contract import rules, themes
from tests.contract.mutants import failures_unmutated, survivors

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]


def test_every_rules_tests_pass_without_a_switched_off_rule():
    assert failures_unmutated(rules()) == {}


@pytest.mark.parametrize("theme", themes(), ids=lambda theme: theme.name)
def test_a_rules_tests_fail_when_it_is_switched_off(theme):
    assert dict(survivors(theme.rules)) == {}
