"""Several operations in one transaction, each with an outcome of its own: what requests that arrive together share."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.errors import DiskFull, StoreError
from sqsqlite.store.driver import dbapi

if TYPE_CHECKING:
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction


class Call(NamedTuple):
    """An operation and what it is called with, behind the transaction."""

    operation: Callable[..., Any]
    arguments: tuple[Any, ...]


class Outcome(NamedTuple):
    """What became of a call: its result, or the error that it raised."""

    result: Any
    error: Exception | None


class _HalfDone(Exception):
    """A call failed after it had written."""


def write_all(store: "Store", calls: Sequence[Call]) -> list[Outcome]:
    """Run the calls in order, in one transaction; all that succeeded are committed when this returns.

    A refused call leaves the others alone. Where one fails after it has written, or the disk is full, each runs by
    itself. A commit that failed is the error of all: it is not tried again.
    """
    if len(calls) == 1:
        return [_alone(store, calls[0])]
    try:
        outcomes: list[Outcome] = store.write(_run, calls)
    except _HalfDone:
        return [_alone(store, call) for call in calls]
    except StoreError as error:
        return [Outcome(None, error)] * len(calls)
    # In place: frames that an error knows know the list, so that a caller can empty it for all of them.
    for place in range(len(outcomes)):
        if isinstance(outcomes[place].error, DiskFull):
            outcomes[place] = _alone(store, calls[place])
    return outcomes


def _run(tx: "Transaction", calls: Sequence[Call]) -> list[Outcome]:
    connection = tx.connection
    outcomes = []
    for operation, arguments in calls:
        changes = connection.total_changes
        try:
            outcomes.append(Outcome(operation(tx, *arguments), None))
        except dbapi.Error:
            raise
        except Exception as error:  # whatever it is, it is this call's outcome
            if connection.total_changes != changes:
                raise _HalfDone from error
            outcomes.append(Outcome(None, error))
    return outcomes


def _alone(store: "Store", call: Call) -> Outcome:
    try:
        return Outcome(store.write(call.operation, *call.arguments), None)
    except Exception as error:  # noqa: BLE001 - as above
        return Outcome(None, error)
