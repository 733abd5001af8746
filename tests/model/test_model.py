# SPDX-License-Identifier: Apache-2.0
"""Random histories, walked by the model and by the engine at once: docs/model.md says what is compared."""

import ast
from pathlib import Path

import pytest

from tests.model.histories import BOTH, FEW_IN_FLIGHT, FIFO_ONLY, STANDARD_ONLY, explore
from tests.model.sqs_model import ACTIONS

BLOCK_OUTCOMES = (
    "block committed",
    "block refused",
    "block rolled back",
    "block unsettled",
    "delete in a block: current",
    "refused in a block: ended",
    "refused in a block: gone",
    "refused in a block: replaced",
)
STANDARD_OUTCOMES = (
    *BLOCK_OUTCOMES,
    "refused in a block: moved",
    "ReceiveMessage",
    "SendMessageBatch entries failed",
    "DeleteMessageBatch entries failed",
    "ChangeMessageVisibilityBatch entries failed",
    "SendMessage AWS.SimpleQueueService.NonExistentQueue",
    "SendMessage InvalidMessageContents",
    "SendMessage InvalidParameterValue",
    "SendMessage MissingParameter",
    "CreateQueue AWS.SimpleQueueService.QueueDeletedRecently",
    "CreateQueue QueueAlreadyExists",
    "PurgeQueue AWS.SimpleQueueService.PurgeQueueInProgress",
    "ChangeMessageVisibility AWS.SimpleQueueService.MessageNotInflight",
    "DeleteMessage ReceiptHandleIsInvalid",
    "delete by a handle: current",
    "delete by a handle: ended",
    "delete by a handle: gone",
    "delete by a handle: moved",
    "delete by a handle: replaced",
    "change by a handle: current",
    "change by a handle: ended",
    "change by a handle: gone",
    "change by a handle: replaced",
    "dead letter",
    "expired",
    "moved by a task",
    "move task completed",
    "move task failed",
    "promoted from a delay",
    "promoted from flight",
    "received again",
    "reopened",
    "upkeep",
)
FIFO_OUTCOMES = (
    *BLOCK_OUTCOMES,
    "duplicate",
    "dead letter",
    "group blocked",
    "moved by a task",
    "receive attempt replayed",
    "received again",
    "reopened",
)


@pytest.mark.parametrize(
    ("mix", "outcomes"),
    [
        pytest.param(STANDARD_ONLY, STANDARD_OUTCOMES, id="standard", marks=pytest.mark.slow),
        pytest.param(FIFO_ONLY, FIFO_OUTCOMES, id="fifo", marks=pytest.mark.slow),
        pytest.param(BOTH, ACTIONS, id="both"),
    ],
)
def test_engine_answers_what_the_model_answers(mix, outcomes):
    """Over 200 histories in all, in which every compared outcome occurs."""
    happened = explore(70, 50, mixes=(mix,))
    assert [outcome for outcome in outcomes if not happened[outcome]] == []


@pytest.mark.slow
def test_engine_answers_what_the_model_answers_in_aws_mode():
    happened = explore(30, 50, compat="aws")
    assert happened["delete by a handle: replaced"]
    assert happened["refused in a block: replaced"]


def test_engine_and_model_have_the_same_limit_in_flight():
    happened = explore(30, 50, in_flight_limits=FEW_IN_FLIGHT)
    assert happened["ReceiveMessage OverLimit"]


def test_model_imports_nothing_of_the_package():
    """All of it except for the two files that open the engine and draw histories for it."""
    folder = Path(__file__).parent
    model = {
        "state",
        "attributes",
        "queues",
        "sending",
        "receiving",
        "settling",
        "blocks",
        "fairness",
        "moves",
        "permissions",
    }
    for name in model | {"sqs_model"}:
        tree = ast.parse((folder / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert not any(one.name.startswith("sqsqlite") for one in node.names)
            elif isinstance(node, ast.ImportFrom):
                local = node.module.removeprefix("tests.model").removeprefix(".")
                assert not node.module.startswith("sqsqlite")
                assert not node.module.startswith("tests") or not local or local in model
