"""aiobotocore, whose receives wait by the dozen in one event loop."""

import pytest

from tests.clients.tools import programs
from tests.packaging.checkout import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(700)]


@pytest.fixture
def python():
    return programs("aiobotocore") / "python"


def test_waiting_receives_get_a_message_each_and_a_cancelled_one_none(python, endpoint, conforms):
    """A round trip and an error by its class come before."""
    printed = endpoint.run(python, ROOT / "tests" / "clients" / "programs" / "aiobotocore_round_trip.py")
    conforms("aiobotocore", printed.strip())


def test_example_runs(python, endpoint):
    """docs/clients/aiobotocore_orders.py."""
    printed = endpoint.run(python, ROOT / "docs" / "clients" / "aiobotocore_orders.py")
    assert printed == f"{[f'order {number}' for number in range(10)]}\n"
