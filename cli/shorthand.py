# SPDX-License-Identifier: Apache-2.0
"""Structured values as the AWS CLI takes them, in shorthand, JSON or files, and its skeletons of parameters.

Shorthand is `Name=value,Name=value`. A value is a word, a quoted text, `[value,...]` or `{Name=value,...}`; outside
brackets `Name=a,b` is a list too. A backslash before a comma keeps the comma. `Name@=file://path` reads the value.
Sources: AWS CLI user guide, "Using shorthand syntax"; trials with AWS CLI 1.45 where the guide is silent.
"""

import base64
import binascii
import json
import re
from pathlib import Path
from typing import Any

from msgspec import inspect

_key = re.compile(r"[A-Za-z0-9\-_.#/:]+")
_begins_pair = re.compile(r"""[^,='"\[{][^,=]*=""")  # else a comma begins another item of a list
_quoted = {mark: re.compile(rf"{mark}((?:\\.|[^\\{mark}])*){mark}", re.DOTALL) for mark in "'\""}
_bare = (re.compile(r"(?:\\,|[^,])*"), re.compile(r"(?:\\,|[^,\]}])*"))  # outside and inside brackets
_comma = re.compile(r"\s*,\s*")
_unescaped = re.compile(r"\\(['\"\\])")


class ShorthandError(ValueError):
    """The text is not a shorthand value; the message points at the wrong place."""


def parse_shorthand(text: str) -> dict[str, Any]:
    """Parse a shorthand text. Every leaf is text, or bytes after `@=fileb://`.

    Raises:
        ShorthandError: the text is not a shorthand value.
        OSError: a named file can't be read.
    """
    reader = _Reader(text)
    pairs = reader.pairs("")
    if reader.rest:
        raise reader.error("a comma")
    return pairs


class _Reader:
    """A text and a place in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    @property
    def rest(self) -> str:
        return self.text[self.place :]

    def error(self, wanted: str) -> ShorthandError:
        found = repr(self.rest[0]) if self.rest else "the end"
        return ShorthandError(f"expected {wanted}, found {found}:\n{self.text}\n{' ' * self.place}^")

    def skip_blanks(self) -> None:
        self.place += len(self.rest) - len(self.rest.lstrip())

    def take(self, mark: str) -> bool:
        """Go past the mark and the blanks after it, if the mark comes next. Returns whether it does."""
        self.skip_blanks()
        if not self.rest.startswith(mark):
            return False
        self.place += len(mark)
        self.skip_blanks()
        return True

    def pairs(self, end: str) -> dict[str, Any]:
        """`Name=value,...`, up to the end of the text or the closing mark."""
        found: dict[str, Any] = {}
        if end and self.take(end):
            return found
        while True:
            start = self.place
            match = _key.match(self.text, self.place)
            if match is None:
                raise self.error("a name")
            self.place = match.end()
            from_file = self.take("@")
            if not self.take("="):
                raise self.error("'='")
            if match[0] in found:
                self.place = start
                raise self.error(f"a name other than {match[0]}, which was given before")
            found[match[0]] = self.value(end, from_file=from_file)
            if end and self.take(end):
                return found
            if not self.take(","):
                if end or self.rest:
                    raise self.error("a comma")
                return found
            if end and self.take(end):
                return found

    def value(self, end: str, *, from_file: bool = False) -> Any:
        """One value; outside brackets, the list that commas join."""
        self.skip_blanks()
        if self.take("["):
            return self.items()
        if self.take("{"):
            return self.pairs("}")
        first = self.word(inside=bool(end), from_file=from_file)
        if end:
            return first
        items = [first]
        while (comma := _comma.match(self.text, self.place)) is not None:
            if _begins_pair.match(self.text, comma.end()):
                break
            self.place = comma.end()
            if self.rest[:1] in ("", ","):
                raise self.error("a value")
            items.append(self.word(inside=False, from_file=from_file))
        return first if len(items) == 1 else items

    def items(self) -> list[Any]:
        """`value,...]`."""
        found: list[Any] = []
        while not self.take("]"):
            if found and not self.take(","):
                raise self.error("a comma or ']'")
            if self.take("]"):
                break
            found.append(self.value("]"))
        return found

    def word(self, *, inside: bool, from_file: bool = False) -> str | bytes:
        """A quoted text, or the text up to a comma; inside brackets, also up to a closing bracket."""
        mark = self.rest[:1]
        if mark and mark in _quoted:
            match = _quoted[mark].match(self.text, self.place)
            if match is None:
                raise self.error(f"text between {mark} and {mark}")
            self.place = match.end()
            text = _unescaped.sub(r"\1", match[1])
        else:
            bare = _bare[inside].match(self.text, self.place)
            assert bare is not None
            self.place = bare.end()
            text = bare[0].replace(r"\,", ",").rstrip()
        return load(text) if from_file else text


def load(text: str) -> str | bytes:
    """The value of a parameter: the content of `file://path` (text) or `fileb://path` (bytes), else the text itself.

    Raises:
        OSError: the file can't be read.
    """
    if text.startswith("file://"):
        return Path(text.removeprefix("file://")).expanduser().read_text(encoding="utf-8")
    if text.startswith("fileb://"):
        return Path(text.removeprefix("fileb://")).expanduser().read_bytes()
    return text


def structure(words: tuple[str, ...], shape: inspect.Type, *, raw_binary: bool = False) -> Any:
    """Turn the words of a flag into the value of a parameter.

    Args:
        words: one word; several for a list.
        shape: the type of the request's field, as msgspec describes it.
        raw_binary: binary values are plain text instead of Base64.

    Raises:
        ShorthandError: a word is not a shorthand value.
        OSError: a named file can't be read.
        ValueError: a word is not the JSON or Base64 that it should be.
    """
    shape = without_none(shape)
    loaded = [load(word) for word in words]
    [first, *more] = [text.decode() if isinstance(text, bytes) else text for text in loaded]
    if first.lstrip().startswith("[") or (first.lstrip().startswith("{") and not more):
        value = json.loads(first)
        return fit(
            shape,
            [value] if isinstance(shape, inspect.ListType) and isinstance(value, dict) else value,
            raw_binary,
        )
    if isinstance(shape, inspect.ListType):
        if isinstance(without_none(shape.item_type), inspect.StrType):
            return [first, *more]
        return fit(shape, [_one_structure(word) for word in (first, *more)], raw_binary)
    return fit(shape, parse_shorthand(first), raw_binary)


def _one_structure(word: str) -> Any:
    return json.loads(word) if word.lstrip().startswith("{") else parse_shorthand(word)


def fit(shape: inspect.Type, value: Any, raw_binary: bool) -> Any:
    """Convert leaves to the types of the shape. Values that do not fit stay, and the request refuses them."""
    shape = without_none(shape)
    if isinstance(shape, inspect.StructType) and isinstance(value, dict):
        types = {field.encode_name: field.type for field in shape.fields}
        return {
            name: fit(types[name], child, raw_binary) if name in types else child
            for name, child in value.items()
        }
    if isinstance(shape, inspect.DictType) and isinstance(value, dict):
        return {name: fit(shape.value_type, child, raw_binary) for name, child in value.items()}
    if isinstance(shape, inspect.ListType):
        items = [value] if isinstance(value, str | dict) else value
        return (
            [fit(shape.item_type, item, raw_binary) for item in items] if isinstance(items, list) else items
        )
    if isinstance(shape, inspect.IntType) and isinstance(value, str):
        return int(value) if re.fullmatch(r"[+-]?[0-9]+", value) else value
    if isinstance(shape, inspect.BytesType) and isinstance(value, str):
        return value.encode() if raw_binary else _from_base64(value)
    return value


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(
            f"{text!r} is not Base64, the default form of binary values; "
            "--cli-binary-format raw-in-base64-out takes plain text"
        ) from error


def without_none(shape: inspect.Type) -> inspect.Type:
    """The type of an optional field."""
    if isinstance(shape, inspect.UnionType):
        [shape] = [one for one in shape.types if not isinstance(one, inspect.NoneType)]
    return shape


# --- skeleton


def skeleton(fields: tuple[inspect.Field, ...]) -> dict[str, Any]:
    """The skeleton of --generate-cli-skeleton: each field by SQS's name, with an empty value of its type."""
    return {field.encode_name: _empty(field.type) for field in fields}


def _empty(shape: inspect.Type) -> Any:
    shape = without_none(shape)
    if isinstance(shape, inspect.StructType):
        return skeleton(shape.fields)
    if isinstance(shape, inspect.DictType):
        return {"KeyName": _empty(shape.value_type)}
    if isinstance(shape, inspect.ListType):
        return [_empty(shape.item_type)]
    return 0 if isinstance(shape, inspect.IntType) else ""
