# SPDX-License-Identifier: Apache-2.0
"""A file that describes queues, for `serve --queues`: TOML of our own, or the configuration file of ElasticMQ."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.api.elasticmq import read_elasticmq
from sqsqlite.api.settings import QueueSettings
from sqsqlite.errors import ParamValidationError, SQSError

if TYPE_CHECKING:
    from sqsqlite.api.connect import SQS

_SETTINGS = (*QueueSettings.__annotations__, "tags")
# Attributes may have SQS's names too.
_OURS = {"".join(word.capitalize() for word in name.split("_")): name for name in _SETTINGS}
_DEAD_LETTERS = "dead_letter_queue"


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
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadQueueFile(f"{path}: can't be read: {error}") from error
    queues = _read_elasticmq(path, text) if path.suffix == ".conf" else _read_toml(path, text)
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
        _refuse_others(path, f"queue {name}: ", settings, (*_SETTINGS, *_OURS))
        read[name] = {_OURS.get(key, key): value for key, value in settings.items()}
        if len(read[name]) < len(settings):
            raise BadQueueFile(
                f"{path}: queue {name}: a setting is given twice, by SQS's name and by Python's"
            )
        _table(path, f"queue {name}: tags", settings.get("tags", {}))
    return read


def _table(path: Path, name: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise BadQueueFile(f"{path}: {name} is {given!r}: a table is allowed, such as [queues.orders]")
    return given


def _refuse_others(path: Path, where: str, given: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    unknown = [name for name in given if name not in allowed]
    if unknown:
        names = [name for name in allowed if name not in _OURS]
        raise BadQueueFile(f"{path}: {where}{', '.join(unknown)} is not known; allowed: {', '.join(names)}")


def _read_elasticmq(path: Path, text: str) -> dict[str, dict[str, Any]]:
    try:
        return read_elasticmq(text)
    except ValueError as error:
        raise BadQueueFile(f"{path}: {error}") from error


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
