# SPDX-License-Identifier: Apache-2.0
"""A step of a walk that is a caller's transaction: settles, sends, and a row for each message that it deletes."""

import copy

from sqsqlite.errors import SQSError, UnsettledBatch
from tests.model import steps
from tests.model.blocks import Block
from tests.model.compare import Difference, same, same_refusal
from tests.model.state import Refusal

OPERATIONS = (
    "delete",
    "delete",
    "change",
    "delete_batch",
    "change_batch",
    "delete_many",
    "known gone",
    "send",
)
TABLE = "CREATE TABLE IF NOT EXISTS done (message_id TEXT NOT NULL)"


class GivenUp(Exception):
    """The caller's own error, at the end of a block."""


def transact(walk, length, first, second, third, recent, form, timeout, manner, fate):
    """Up to three operations in one block.

    Args:
        manner: whether refusals are caught in the block (odd), and whether failed entries are accepted (2 or more).
        fate: 0: the caller raises in the end.
    """
    if not walk.has_received:
        return walk.request(*steps.first_receive(walk))
    asked = [
        _operation(walk, OPERATIONS[number], recent + place, form, timeout + place)
        for place, number in enumerate((first, second, third)[: length + 1])
    ]
    walk.told.append(("in a block", asked))
    return _Walked(walk, catches=bool(manner % 2), accepts=manner >= 2, gives_up=fate == 0).walk_through(
        asked
    )


def _operation(walk, name, recent, form, timeout):
    most = len(steps.VISIBILITY)
    match name:
        case "delete":
            return steps.delete(walk, recent, form)
        case "change":
            return steps.change(walk, recent, form, timeout % most)
        case "delete_batch":
            return steps.delete_batch(walk, recent, 2, form, 0)
        case "change_batch":
            action, params = steps.change_batch(walk, recent, 2, form, timeout % most, 0)
            entries = [{"VisibilityTimeout": 10, **entry} for entry in params["Entries"]]
            return action, {**params, "Entries": entries}
        case "send":
            name = walk.names[recent]
            return "SendMessage", {
                "QueueUrl": walk.url(name),
                **steps.message(walk, name, recent % 4, 0, form % 10, 0, 0),
            }
    queue, handle = walk.handle(recent)
    others = [walk.handle(recent + 2 * place) for place in range(3)]
    handles = [handle, *(other for where, other in others if where == queue)]
    if form == 21:
        handles.append("forged")
    params = {"QueueUrl": walk.url(queue), "Handles": handles, "MissingOk": name == "known gone"}
    return "delete_many", params


class _Walked:
    """One block, through the model and through the engine at once."""

    def __init__(self, walk, *, catches, accepts, gives_up):
        self._walk = walk
        self._catches = catches
        self._accepts = accepts
        self._gives_up = gives_up
        self._refused = None

    def walk_through(self, asked):
        walk = self._walk
        pairs = copy.deepcopy(walk.pairs)
        block = Block(walk.model.state)
        ended = None
        try:
            with walk.engine.transaction() as connection:
                connection.execute(TABLE)
                for action, params in asked:
                    self._call(block, connection, action, params)
                if self._accepts:
                    _compare_failures(walk, block.accept(), walk.engine.accept_unsettled())
                if self._gives_up:
                    raise GivenUp
        except (SQSError, GivenUp) as error:
            ended = error
        outcome = self._outcome(block, ended)
        if outcome == "committed":
            walk.done += block.ended
        else:
            walk.model.state = block.roll_back()
            walk.pairs = pairs
        walk.model.state.happened[f"block {outcome}"] += 1
        self._compare_rows()
        walk.compare_all()

    def _call(self, block, connection, action, params):
        walk = self._walk
        before = len(block.ended)
        try:
            expected = block.call(action, walk.side(params, "model"))
        except Refusal as refusal:
            self._compare_refusal(refusal, action, params)
            return
        got = walk.engine.call_in_block(action, walk.side(params, "engine"))
        same(walk.pairs, expected, got)
        for message_id in block.ended[before:]:
            connection.execute("INSERT INTO done VALUES (?)", (message_id,))

    def _compare_refusal(self, refusal, action, params):
        walk = self._walk
        try:
            got = walk.engine.call_in_block(action, walk.side(params, "engine"))
        except SQSError as error:
            found = error.response["Error"]
            same_refusal(walk.pairs, refusal, found["Code"], found["Message"])
            _compare_reason(refusal, error)
            walk.model.state.happened[f"refused in a block: {refusal.reason or refusal.code}"] += 1
            if not self._catches:
                self._refused = error
                raise
        else:
            raise Difference(f"{action} in a block: {got} instead of {refusal.code} ({refusal.text})")

    def _outcome(self, block, ended):
        """How the block ended, if the model agrees."""
        if self._refused is not None or isinstance(ended, GivenUp):
            if ended is not self._refused and not isinstance(ended, GivenUp):
                raise ended
            return "rolled back" if self._refused is None else "refused"
        if block.unsettled:
            if not isinstance(ended, UnsettledBatch):
                raise Difference(
                    f"the block ended with {ended!r} although its batches left entries unsettled"
                )
            _compare_failures(self._walk, block.unsettled, ended.failures)
            return "unsettled"
        if ended is not None:
            raise ended
        return "committed"

    def _compare_rows(self):
        """Each deleted message of a block has a row, and no message has two."""
        walk = self._walk
        with walk.engine.transaction() as connection:
            connection.execute(TABLE)
            rows = [
                row[0] for row in connection.execute("SELECT message_id FROM done ORDER BY rowid").fetchall()
            ]
        if rows != walk.done or len(set(rows)) < len(rows):
            raise Difference(f"rows {rows} instead of {walk.done}")


def _compare_failures(walk, refusals, errors):
    if len(refusals) != len(errors):
        raise Difference(f"unsettled: {errors} instead of {refusals}")
    for refusal, error in zip(refusals, errors, strict=True):
        found = error.response["Error"]
        same_refusal(walk.pairs, refusal, found["Code"], found["Message"])
        _compare_reason(refusal, error)


def _compare_reason(refusal, error):
    reason = getattr(error, "reason", None)
    if reason != refusal.reason:
        raise Difference(f"reason {reason!r} of {error!r} instead of {refusal.reason!r}")


WEIGHT = {
    transact: (8, 3, len(OPERATIONS), len(OPERATIONS), len(OPERATIONS), 10, 24, len(steps.VISIBILITY), 4, 6)
}
