# SPDX-License-Identifier: Apache-2.0
"""A comparison of the answers of engine and model, where each makes up ids of its own."""

import json
import re

IDS = ("MessageId", "ReceiptHandle", "TaskHandle", "SequenceNumber")
JSON_TEXTS = ("Policy", "RedrivePolicy", "RedriveAllowPolicy")
UNORDERED = ("QueueUrls", "queueUrls")


class Difference(AssertionError):
    """The engine's answer differs from the model's."""


class Pairs:
    """Which id of the engine stands for which of the model: one for one, from the first time they are seen."""

    def __init__(self):
        self.engine_of = {}
        self.model_of = {}
        self._last_sequence = 0

    def bind(self, kind, expected, got):
        key, value = (kind, expected), (kind, got)
        if (
            self.engine_of.setdefault(key, got) != got
            or self.model_of.setdefault(value, expected) != expected
        ):
            raise Difference(f"{kind}: {got}, but {expected} was {self.engine_of[key]}")

    def see_sequence(self, got, *, sent):
        """Sequence numbers have 20 digits, and those of sends grow."""
        if not re.fullmatch("[0-9]{20}", got) or (sent and int(got) <= self._last_sequence):
            raise Difference(f"SequenceNumber {got} after {self._last_sequence}")
        if sent:
            self._last_sequence = int(got)

    def text(self, text):
        """A text of the model's, with the engine's handles."""
        return re.sub(r"receipt \d+", lambda found: self.engine_of[("ReceiptHandle", found[0])], text)


def same(pairs, expected, got, where="answer"):
    """Raise Difference unless the engine's value means the model's."""
    if isinstance(expected, dict) and isinstance(got, dict):
        _same_dict(pairs, expected, got, where)
    elif isinstance(expected, list) and isinstance(got, list):
        _same_list(pairs, expected, got, where)
    elif not _same_value(pairs, expected, got, where):
        raise Difference(f"{where}: {got!r} instead of {expected!r}")


def _same_dict(pairs, expected, got, where):
    if "refusal" in expected:
        same_refusal(pairs, expected["refusal"], got.get("Code"), got.get("Message"), where)
        expected = {name: value for name, value in expected.items() if name != "refusal"}
        got = {name: value for name, value in got.items() if name not in ("Code", "Message")}
    if expected.keys() != got.keys():
        raise Difference(f"{where}: {sorted(got)} instead of {sorted(expected)}: {got} instead of {expected}")
    for name, value in expected.items():
        same(pairs, value, got[name], f"{where}.{name}")


def _same_list(pairs, expected, got, where):
    if len(expected) != len(got):
        raise Difference(f"{where}: {got} instead of {expected}")
    if where.endswith(UNORDERED):
        expected, got = sorted(expected), sorted(got)
    for one, other in zip(expected, got, strict=True):
        same(pairs, one, other, where)


def _same_value(pairs, expected, got, where):
    key = where.rpartition(".")[2]
    if key == "MessageDeduplicationId" and ("MessageId", expected) in pairs.engine_of:
        key = "MessageId"  # the deduplication id of a dead letter: its message id
    if key in IDS:
        if key == "SequenceNumber" and (key, expected) not in pairs.engine_of:
            pairs.see_sequence(got, sent="Messages" not in where)
        pairs.bind(key, expected, got)
        return True
    if key in JSON_TEXTS and expected and got:
        return json.loads(expected) == json.loads(got)
    return bool(got) if key == "NextToken" else expected == got


def same_refusal(pairs, refusal, code, text, where="refusal"):
    if refusal.code != code:
        raise Difference(f"{where}: {code} ({text}) instead of {refusal.code} ({refusal.text})")
    expected = pairs.text(refusal.text)
    if text != expected if refusal.whole else not text.startswith(expected):
        raise Difference(f"{where}: {text!r} instead of {expected!r}")
