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
    from sqsqlite._api import SQS, connect
    from sqsqlite._client import Client, client
    from sqsqlite._message import Message, SentMessage
    from sqsqlite._move_task import MoveTask
    from sqsqlite._queue import Queue
    from sqsqlite.move_filter import MoveFilter
    from sqsqlite.service.inspect import Peeked, QueueStatistics
    from sqsqlite.service.metrics import QueueMetrics
    from sqsqlite.store.clock import ManualClock

_HOMES = {
    "SQS": "_api",
    "connect": "_api",
    "Client": "_client",
    "client": "_client",
    "Message": "_message",
    "SentMessage": "_message",
    "MoveTask": "_move_task",
    "MoveFilter": "move_filter",
    "Queue": "_queue",
    "Peeked": "service.inspect",
    "QueueMetrics": "service.metrics",
    "QueueStatistics": "service.inspect",
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
