# SPDX-License-Identifier: Apache-2.0
"""Rules switched off in the engine: a walk detects each of them."""

import pytest

from tests.contract.package import package
from tests.model.mutants import OF_THE_CONTRACT, OF_THE_ENGINE, UNTOUCHED, chosen, hunted
from tests.model.seek import HISTORIES


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_a_walk_detects_an_engine_with_a_rule_switched_off():
    untouched, *others = hunted([UNTOUCHED, *chosen()])
    assert untouched == (UNTOUCHED, HISTORIES, None)
    assert {rule.id: how for rule, _, how in others if how != "difference"} == {}


def test_switches_of_the_mutants_fit_the_code():
    assert len(chosen()) == len(OF_THE_CONTRACT) + len(OF_THE_ENGINE)
    for rule in OF_THE_ENGINE:
        file, changed = rule.switch.apply(package())
        compile(changed, file, "exec")
