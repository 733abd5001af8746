# SPDX-License-Identifier: Apache-2.0
"""Amazon SQS in one SQLite file."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "SQS",
    "AccessKey",
    "AccessKeys",
    "Client",
    "DamagedMessage",
    "DeadLetter",
    "DeadLetterCount",
    "Finding",
    "Loaded",
    "ManualClock",
    "Message",
    "Migration",
    "MoveFilter",
    "MoveTask",
    "NewKey",
    "Peeked",
    "PlannedMove",
    "Queue",
    "QueueMetrics",
    "QueueStatistics",
    "Requester",
    "Responder",
    "SchemaState",
    "SentMessage",
    "Session",
    "Upgrade",
    "__version__",
    "check",
    "check_dump",
    "client",
    "connect",
    "dbapi",
    "errors",
    "key_file_session",
    "restore",
    "schema_state",
    "upgrade",
]

if TYPE_CHECKING:
    from sqsqlite import boto as boto
    from sqsqlite import dbapi, errors
    from sqsqlite.access.keys import AccessKey, NewKey, Session
    from sqsqlite.api.client import Client, client
    from sqsqlite.api.closed_file import (
        SchemaState,
        check,
        check_dump,
        key_file_session,
        restore,
        schema_state,
        upgrade,
    )
    from sqsqlite.api.connect import SQS, connect
    from sqsqlite.api.file import AccessKeys
    from sqsqlite.api.message import Message, SentMessage
    from sqsqlite.api.move_task import MoveTask
    from sqsqlite.api.queue import Queue
    from sqsqlite.contract.move_filter import MoveFilter
    from sqsqlite.operators.check import DamagedMessage, Finding
    from sqsqlite.operators.dead_letters import DeadLetter, DeadLetterCount, PlannedMove
    from sqsqlite.operators.inspect import Peeked
    from sqsqlite.operators.load import Loaded
    from sqsqlite.operators.metrics import QueueMetrics
    from sqsqlite.operators.statistics import QueueStatistics
    from sqsqlite.replies import Requester, Responder
    from sqsqlite.store.clock import ManualClock
    from sqsqlite.store.migrate import Migration, Upgrade

_HOMES = {
    "AccessKey": "access.keys",
    "NewKey": "access.keys",
    "Session": "access.keys",
    "Client": "api.client",
    "client": "api.client",
    "SQS": "api.connect",
    "connect": "api.connect",
    "AccessKeys": "api.file",
    "SchemaState": "api.closed_file",
    "check": "api.closed_file",
    "check_dump": "api.closed_file",
    "key_file_session": "api.closed_file",
    "restore": "api.closed_file",
    "schema_state": "api.closed_file",
    "upgrade": "api.closed_file",
    "Message": "api.message",
    "SentMessage": "api.message",
    "MoveTask": "api.move_task",
    "Queue": "api.queue",
    "MoveFilter": "contract.move_filter",
    "DamagedMessage": "operators.check",
    "Finding": "operators.check",
    "DeadLetter": "operators.dead_letters",
    "DeadLetterCount": "operators.dead_letters",
    "PlannedMove": "operators.dead_letters",
    "Peeked": "operators.inspect",
    "Loaded": "operators.load",
    "QueueMetrics": "operators.metrics",
    "QueueStatistics": "operators.statistics",
    "Requester": "replies",
    "Responder": "replies",
    "ManualClock": "store.clock",
    "Migration": "store.migrate",
    "Upgrade": "store.migrate",
}


if not TYPE_CHECKING:  # a type checker would take any name for one that this gives

    def __getattr__(name: str) -> Any:
        """Names are loaded when they are first used: `import sqsqlite` costs next to nothing."""
        from importlib import import_module

        if name in _HOMES:
            value = getattr(import_module(f"sqsqlite.{_HOMES[name]}"), name)
        elif name in ("boto", "dbapi", "errors"):
            value = import_module(f"sqsqlite.{name}")
        else:
            raise AttributeError(f"module 'sqsqlite' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """What completion shows: the public names, loaded or not. `boto` needs boto3, so `__all__` is without it."""
    return sorted({*__all__, "boto", *(name for name in globals() if name.startswith("__"))})
