"""Amazon SQS in one SQLite file."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["SQS", "ManualClock", "Message", "Queue", "__version__", "client", "connect", "errors"]

if TYPE_CHECKING:
    from sqsqlite import errors
    from sqsqlite._api import SQS, Queue, connect
    from sqsqlite._client import client
    from sqsqlite._message import Message
    from sqsqlite.store.clock import ManualClock

_HOMES = {
    "SQS": "_api",
    "Queue": "_api",
    "connect": "_api",
    "client": "_client",
    "Message": "_message",
    "ManualClock": "store.clock",
}


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
