"""Amazon SQS in one SQLite file."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "SQS",
    "Client",
    "ManualClock",
    "Message",
    "MoveFilter",
    "MoveTask",
    "Peeked",
    "Queue",
    "QueueMetrics",
    "QueueStatistics",
    "SentMessage",
    "__version__",
    "client",
    "connect",
    "errors",
]

if TYPE_CHECKING:
    from sqsqlite import boto as boto
    from sqsqlite import errors
    from sqsqlite.api.client import Client, client
    from sqsqlite.api.connect import SQS, connect
    from sqsqlite.api.message import Message, SentMessage
    from sqsqlite.api.move_task import MoveTask
    from sqsqlite.api.queue import Queue
    from sqsqlite.contract.move_filter import MoveFilter
    from sqsqlite.operators.inspect import Peeked, QueueStatistics
    from sqsqlite.operators.metrics import QueueMetrics
    from sqsqlite.store.clock import ManualClock

_HOMES = {
    "SQS": "api.connect",
    "connect": "api.connect",
    "Client": "api.client",
    "client": "api.client",
    "Message": "api.message",
    "SentMessage": "api.message",
    "MoveTask": "api.move_task",
    "MoveFilter": "contract.move_filter",
    "Queue": "api.queue",
    "Peeked": "operators.inspect",
    "QueueMetrics": "operators.metrics",
    "QueueStatistics": "operators.inspect",
    "ManualClock": "store.clock",
}


if not TYPE_CHECKING:  # a type checker would take any name for one that this gives

    def __getattr__(name: str) -> Any:
        """Names are loaded when they are first used: `import sqsqlite` costs next to nothing."""
        from importlib import import_module

        if name in _HOMES:
            value = getattr(import_module(f"sqsqlite.{_HOMES[name]}"), name)
        elif name in ("errors", "boto"):
            value = import_module(f"sqsqlite.{name}")
        else:
            raise AttributeError(f"module 'sqsqlite' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """What completion shows: the public names, loaded or not. `boto` needs boto3, so `__all__` is without it."""
    return sorted({*__all__, "boto", *(name for name in globals() if name.startswith("__"))})
