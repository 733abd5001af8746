# SPDX-License-Identifier: Apache-2.0
"""aiobotocore: dozens of its receives wait in one event loop."""

import pytest

from tests.clients.tools import programs, version_of
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def python(conforms):
    found = programs("aiobotocore") / "python"
    conforms("aiobotocore", version_of(found, "aiobotocore"))
    return found


def test_waiting_receives_get_a_message_each_and_a_cancelled_one_none(python, endpoint):
    """Before, a round trip and an error caught by its class."""
    endpoint.run(python, ROOT / "tests" / "clients" / "programs" / "aiobotocore_round_trip.py")


def test_example_runs(python, endpoint):
    """docs/clients/aiobotocore_orders.py."""
    printed = endpoint.run(python, ROOT / "docs" / "clients" / "aiobotocore_orders.py")
    assert printed == f"{[f'order {number}' for number in range(10)]}\n"
