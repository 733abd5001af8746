# SPDX-License-Identifier: Apache-2.0
"""The queues of ElasticMQ's configuration file. What it says of ElasticMQ's own server is passed over."""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from sqsqlite.api.hocon import read_hocon

# ElasticMQ's names for what a queue has here.
_DURATIONS = {
    "defaultVisibilityTimeout": "visibility_timeout",
    "delay": "delay_seconds",
    "receiveMessageWait": "receive_message_wait_time_seconds",
}
_KNOWN = (*_DURATIONS, "contentBasedDeduplication", "deadLettersQueue", "fifo", "tags")
_FORWARDING = ("copyTo", "moveTo")
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

_duration = re.compile(r"([0-9]+(?:\.[0-9]+)?)[ \t]*([a-z]*)").fullmatch
_UNITS = {  # milliseconds
    1: ("", "ms", "milli", "millis", "millisecond", "milliseconds"),
    1000: ("s", "second", "seconds"),
    60_000: ("m", "minute", "minutes"),
    3_600_000: ("h", "hour", "hours"),
    86_400_000: ("d", "day", "days"),
}
_MS = {unit: ms for ms, units in _UNITS.items() for unit in units}


def read_elasticmq(text: str) -> dict[str, dict[str, Any]]:
    """Read the section `queues`.

    Returns:
        For each queue its name and keyword arguments of `SQS.create_queue`.

    Raises:
        ValueError: says which queue has what wrong.
    """
    queues = read_hocon(text).get("queues", {})
    if not isinstance(queues, Mapping):
        allowed = "an object is allowed, as in queues { orders { } }"
        raise ValueError(f"queues is {queues!r}: {allowed}")  # noqa: TRY004 - the file's fault, as all others
    read = {}
    for name, given in queues.items():
        queue = _Queue(name, given)
        read[queue.full_name] = queue.settings()
    for settings in read.values():
        target = settings.get("dead_letter_queue")
        if target not in read and f"{target}.fifo" in read:
            settings["dead_letter_queue"] = f"{target}.fifo"
    return read


class _Queue:
    """A queue of the file, under ElasticMQ's names."""

    def __init__(self, name: str, given: object) -> None:
        self._name = name
        self._given = self._object("the queue", given)
        # ElasticMQ adds the ending itself.
        is_fifo = self._boolean("fifo") and not name.endswith(".fifo")
        self.full_name = f"{name}.fifo" if is_fifo else name

    def settings(self) -> dict[str, Any]:
        """The keyword arguments of `SQS.create_queue`."""
        for name in self._given:
            if name in _FORWARDING:
                self._fail(name, "SQSQLite does not send messages on to another queue; remove the line")
            if name not in _KNOWN:
                self._fail(name, f"it is not known; allowed: {', '.join(_KNOWN)}")
        found: dict[str, Any] = {
            ours: self._seconds(name) for name, ours in _DURATIONS.items() if name in self._given
        }
        if self._boolean("contentBasedDeduplication"):
            found["content_based_deduplication"] = True
        if "tags" in self._given:
            found["tags"] = dict(self._object("tags", self._given["tags"]))
        if "deadLettersQueue" in self._given:
            policy = self._object("deadLettersQueue", self._given["deadLettersQueue"])
            if policy.keys() != {"name", "maxReceiveCount"}:
                self._fail(
                    "deadLettersQueue", "name and maxReceiveCount are needed, and nothing else is allowed"
                )
            found["dead_letter_queue"] = policy["name"]
            found["max_receive_count"] = self._count("maxReceiveCount", policy["maxReceiveCount"])
        return found

    def _object(self, what: str, value: object) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            self._fail(what, f"it is {value!r}: an object is allowed, as in {{ }}")
        return value

    def _boolean(self, name: str) -> bool:
        value = self._given.get(name, "false")
        if isinstance(value, Mapping):
            self._fail(name, f'it is an object. A name with a dot needs quotes: "{self._name}.{name}"')
        truth = _TRUTHS.get(value) if isinstance(value, str) else None
        if truth is None:
            self._fail(name, f"it is {value!r}: true or false is allowed")
        return truth

    def _count(self, name: str, value: object) -> int:
        if not (isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value)):
            self._fail(name, f"it is {value!r}: a whole number is allowed")
        return int(value)

    def _seconds(self, name: str) -> int:
        """A duration as whole seconds. A bare number is milliseconds, as HOCON has it."""
        value = self._given[name]
        found = _duration(value) if isinstance(value, str) else None
        ms = _MS.get(found[2]) if found else None
        if found is None or ms is None:
            self._fail(name, f"it is {value!r}: a duration is allowed, as in 10 seconds")
        seconds = float(found[1]) * ms / 1000
        if not seconds.is_integer():
            self._fail(name, f"it is {value!r}, which is {seconds:g} seconds: whole seconds are allowed")
        return int(seconds)

    def _fail(self, what: str, reason: str) -> NoReturn:
        raise ValueError(f"queue {self._name}: {what}: {reason}")
