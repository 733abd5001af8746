# SPDX-License-Identifier: Apache-2.0
"""A file that describes queues, for `serve --queues`: TOML of our own, or the configuration file of ElasticMQ."""

import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.api.settings import QueueSettings
from sqsqlite.errors import ParamValidationError, SQSError
from sqsqlite.operators.installed import install_command

if TYPE_CHECKING:
    from sqsqlite.api.connect import SQS

_SETTINGS = (*QueueSettings.__annotations__, "tags")
_DEAD_LETTERS = "dead_letter_queue"

# ElasticMQ's names for what a queue has here; each duration is in seconds.
_DURATIONS = {
    "defaultVisibilityTimeout": "visibility_timeout",
    "delay": "delay_seconds",
    "receiveMessageWait": "receive_message_wait_time_seconds",
}
_PLAIN = {"contentBasedDeduplication": "content_based_deduplication", "tags": "tags"}
_WITHOUT_MEANING = re.compile(r"^[ \t]*include[ \t]+classpath[ \t]*\([^)\n]*\)[ \t]*;?[ \t]*$", re.MULTILINE)


class BadQueueFile(ValueError):
    """The file can't be read, or describes something that no queue can be."""


class QueueDefinition(NamedTuple):
    """A queue as a file describes it.

    Attributes:
        name: `.fifo` at its end makes a FIFO queue.
        settings: keyword arguments of `SQS.create_queue`.
    """

    name: str
    settings: dict[str, Any]


def read_queue_file(path: Path) -> list[QueueDefinition]:
    """Read a file, and check what can be checked without a database.

    Args:
        path: ElasticMQ's format if the name ends in `.conf`, else TOML.

    Returns:
        The queues, dead-letter queues before the queues that name them.

    Raises:
        BadQueueFile: says where and why.
        ModuleNotFoundError: ElasticMQ's format needs the package pyhocon.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadQueueFile(f"{path}: can't be read: {error}") from error
    queues = _read_hocon(path, text) if path.suffix == ".conf" else _read_toml(path, text)
    return _in_order(path, queues)


def make_queues(sqs: "SQS", path: Path, definitions: list[QueueDefinition]) -> None:
    """Make all queues of a file in one transaction. One that exists with equal attributes stays as it is.

    Raises:
        BadQueueFile: SQS refuses a queue, or one exists with other attributes; then none is made.
    """
    with sqs.transaction():
        for name, settings in definitions:
            try:
                sqs.create_queue(name, fifo=name.endswith(".fifo"), **settings)
            except (SQSError, ParamValidationError, ValueError, TypeError) as error:
                raise BadQueueFile(f"{path}: queue {name}: {type(error).__name__}: {error}") from error


def _read_toml(path: Path, text: str) -> dict[str, dict[str, Any]]:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadQueueFile(
            f"{path}: {error}. The file is TOML; the name of ElasticMQ's configuration ends in .conf"
        ) from error
    _refuse_others(path, "", found, ("queues",))
    queues = _table(path, "queues", found.get("queues", {}))
    read = {}
    for name, given in queues.items():
        settings = _table(path, f"queues.{name}", given)
        _refuse_others(path, f"queue {name}: ", settings, _SETTINGS)
        read[name] = dict(settings)
    return read


def _table(path: Path, name: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise BadQueueFile(f"{path}: {name} is {given!r}: a table is allowed, such as [queues.orders]")
    return given


def _refuse_others(path: Path, where: str, given: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    unknown = [name for name in given if name not in allowed]
    if unknown:
        raise BadQueueFile(
            f"{path}: {where}{', '.join(map(str, unknown))} is not known; allowed: {', '.join(allowed)}"
        )


def _read_hocon(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """ElasticMQ's file. What it says of ElasticMQ's own server is passed over."""
    try:
        from pyhocon import ConfigFactory
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{path}: ElasticMQ's configuration needs the package pyhocon: {install_command('elasticmq')}"
        ) from error
    try:
        found = ConfigFactory.parse_string(_WITHOUT_MEANING.sub("", text), basedir=str(path.parent))
    except Exception as error:  # pyhocon raises its parser's errors, its own and Python's
        raise BadQueueFile(f"{path}: can't be read as HOCON: {error}") from error
    queues = _table(path, "queues", found.get("queues", {}))
    read: dict[str, dict[str, Any]] = {}
    for quoted, given in queues.items():
        name = quoted.strip('"')
        settings = _table(path, f"queues.{name}", given)
        # ElasticMQ adds the ending itself.
        is_fifo = _boolean(path, name, "fifo", settings.get("fifo", False))
        full_name = f"{name}.fifo" if is_fifo and not name.endswith(".fifo") else name
        read[full_name] = _of_elasticmq(path, name, settings)
    for settings in read.values():
        target = settings.get(_DEAD_LETTERS)
        if target not in read and f"{target}.fifo" in read:
            settings[_DEAD_LETTERS] = f"{target}.fifo"
    return read


def _of_elasticmq(path: Path, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, value in given.items():
        if key in _DURATIONS:
            settings[_DURATIONS[key]] = _seconds(path, name, key, value)
        elif key == "contentBasedDeduplication":
            if _boolean(path, name, key, value):
                settings[_PLAIN[key]] = True
        elif key == "tags":
            tags = _table(path, f"queues.{name}.tags", value)
            settings[_PLAIN[key]] = {tag.strip('"'): str(text) for tag, text in tags.items()}
        elif key == "deadLettersQueue":
            policy = _table(path, f"queues.{name}.deadLettersQueue", value)
            _refuse_others(path, f"queue {name}: deadLettersQueue: ", policy, ("name", "maxReceiveCount"))
            if "name" not in policy or "maxReceiveCount" not in policy:
                raise BadQueueFile(f"{path}: queue {name}: deadLettersQueue needs name and maxReceiveCount")
            settings[_DEAD_LETTERS] = str(policy["name"]).strip('"')
            settings["max_receive_count"] = policy["maxReceiveCount"]
        elif key in ("copyTo", "moveTo"):
            raise BadQueueFile(
                f"{path}: queue {name}: {key}: SQSQLite does not send messages on to another queue as ElasticMQ does; "
                "remove the line"
            )
        elif key != "fifo":
            known = (*_DURATIONS, *_PLAIN, "deadLettersQueue", "fifo")
            raise BadQueueFile(f"{path}: queue {name}: {key} is not known; allowed: {', '.join(known)}")
    return settings


def _boolean(path: Path, name: str, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadQueueFile(f"{path}: queue {name}: {key} is {value!r}: true or false is allowed")
    return value


def _seconds(path: Path, name: str, key: str, value: object) -> int:
    """A duration as whole seconds. A bare number is milliseconds, as HOCON has it."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000
    else:
        raise BadQueueFile(
            f"{path}: queue {name}: {key} is {value!r}: a duration is allowed, as in 10 seconds"
        )
    if seconds != int(seconds):
        raise BadQueueFile(f"{path}: queue {name}: {key} is {seconds:g} s: whole seconds are allowed")
    return int(seconds)


def _in_order(path: Path, queues: Mapping[str, dict[str, Any]]) -> list[QueueDefinition]:
    """Dead-letter queues first: a queue can name only one that exists."""
    ordered: dict[str, QueueDefinition] = {}

    def add(name: str, below: tuple[str, ...]) -> None:
        if name in below:
            raise BadQueueFile(f"{path}: {' -> '.join((*below, name))}: dead-letter queues in a circle")
        target = queues[name].get(_DEAD_LETTERS)
        if isinstance(target, str) and target in queues and target != name:
            add(target, (*below, name))
        ordered.setdefault(name, QueueDefinition(name, queues[name]))

    for name in queues:
        add(name, ())
    return list(ordered.values())
