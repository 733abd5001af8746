# SPDX-License-Identifier: Apache-2.0
"""A reader of HOCON, the format of ElasticMQ's configuration, as far as such files use it.

Scalars stay text, since HOCON itself lets `"true"` stand for true and `"10 seconds"` for a duration. Substitutions come
from the environment and from values above. Another file is never included, nor anything fetched.
Source: HOCON, https://github.com/lightbend/config/blob/main/HOCON.md.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NoReturn

_space = re.compile(r"[ \t\r]*").match
_before_value = re.compile(r"(?:\s|#[^\n]*|//[^\n]*)*").match
_between = re.compile(r"(?:[\s,\ufeff]|#[^\n]*|//[^\n]*)*").match
_name = re.compile(r'[^\s$"{}\[\]:=,+#`^?!@*&\\.]+').match
_quoted = re.compile(r'"(?:[^"\\\n]|\\.)*"').match
_long = re.compile(r'"""(.*?"*)"""', re.DOTALL).match
_substitution = re.compile(r"\$\{(\??)[ \t]*([^${}\"\n]+?)[ \t]*\}").match
_plain = re.compile(r"(?:(?!//)[^\n,}\]{\[#\"$\\=:])+").match
_include = re.compile(r'include[ \t]+(?=["a-z])([^\n]*)').match
_classpath = re.compile(r'(?:required\()?classpath\("[^"\n]*"\)\)?[ \t;,]*(?:#.*|//.*)?').fullmatch


class HoconError(ValueError):
    """The text is not HOCON, or has a part that this reader does not take. Says the line."""


def read_hocon(text: str) -> dict[str, Any]:
    """Read a configuration.

    Returns:
        Objects as dicts, arrays as lists, and scalars as text.

    Raises:
        HoconError: says the line and what is wrong.
    """
    reader = _Reader(text)
    try:
        return reader.document()
    except RecursionError as error:
        raise HoconError("objects are nested too deeply") from error


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._root: dict[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """All of the text. The braces around it may be left out."""
        self._pass(_between)
        if self._take("{"):
            self._fields(self._root, "}")
            self._pass(_between)
            if self._at < len(self._text):
                self._fail("there is more after the last }")
        else:
            self._fields(self._root, "")
        return self._root

    def _fields(self, into: dict[str, Any], end: str) -> None:
        opened_at = self._at
        while True:
            self._pass(_between)
            if self._at == len(self._text):
                if end:
                    self._fail("this { has no }", opened_at)
                return
            if end and self._take(end):
                return
            included = _include(self._text, self._at)
            if included:
                self._pass_include(included)
                continue
            self._field(into)

    def _pass_include(self, found: re.Match[str]) -> None:
        """Pass over the defaults of ElasticMQ's own program, which say nothing of queues."""
        if not _classpath(found[1].strip()):
            self._fail(f"{found[0].strip()}: no other file is read; put its lines here")
        self._at = found.end()

    def _field(self, into: dict[str, Any]) -> None:
        path = self._path()
        self._pass(_space)
        if self._text.startswith("+=", self._at):
            self._fail("+= is not read")
        if not (self._take("=") or self._take(":")) and not self._text.startswith("{", self._at):
            self._fail(f"after {'.'.join(path)}, one of = : {{ is allowed")
        for name in path[:-1]:
            if not isinstance(into.get(name), dict):
                into[name] = {}
            into = into[name]
        value = self._value()
        if value is not None:
            _merge(into, path[-1], value)

    def _path(self) -> list[str]:
        """The parts of a key: dots divide it, except in quotes."""
        path = []
        while True:
            found = _quoted(self._text, self._at)
            if found:
                path.append(self._unquoted(found))
            else:
                found = _name(self._text, self._at)
                if found is None:
                    self._fail("a name is expected here")
                path.append(found[0])
            self._at = found.end()
            if not self._take("."):
                return path

    def _value(self) -> Any:
        """An object, an array or a text. None: null, or an optional substitution that nothing defines."""
        self._pass(_before_value)
        if self._take("{"):
            value: dict[str, Any] = {}
            self._fields(value, "}")
            return value
        if self._take("["):
            return self._items()
        return self._scalar()

    def _items(self) -> list[Any]:
        opened_at = self._at
        items: list[Any] = []
        while True:
            self._pass(_between)
            if self._take("]"):
                return items
            if self._at == len(self._text):
                self._fail("this [ has no ]", opened_at)
            items.append(self._value())

    def _scalar(self) -> str | None:
        """What stands up to the end of the line, a comma or a bracket, put together."""
        pieces: list[str] = []
        began, is_defined = self._at, False
        while True:
            piece: str | None
            if found := _long(self._text, self._at):
                piece = found[1]
            elif found := _quoted(self._text, self._at):
                piece = self._unquoted(found)
            elif found := _substitution(self._text, self._at):
                piece = self._substituted(found)
            elif found := _plain(self._text, self._at):
                # Blanks between the pieces count, those around them do not.
                piece = found[0].lstrip() if not pieces else found[0]
                if self._text[found.end() : found.end() + 1] not in ('"', "$"):
                    piece = piece.rstrip()
            else:
                break
            self._at = found.end()
            is_defined = is_defined or not (piece is None or found[0].isspace())
            pieces.append(piece or "")
        if self._text[self._at : self._at + 1] not in ("", "\n", ",", "}", "]", "#", "/"):
            self._fail("this character is not allowed here")
        if not pieces:
            self._fail("a value is expected here")
        is_null = self._text[began : self._at].strip() == "null"
        return "".join(pieces) if is_defined and not is_null else None

    def _substituted(self, found: re.Match[str]) -> str | None:
        """The value above with this path, else that of the environment."""
        value: Any = self._root
        for name in found[2].split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        value = os.environ.get(found[2]) if value is None else value
        if not isinstance(value, str) and not (value is None and found[1]):
            self._fail(f"{found[0]}: it is neither a value above nor a variable of the environment")
        return value

    def _unquoted(self, found: re.Match[str]) -> str:
        try:
            return str(json.loads(found[0], strict=False))
        except ValueError:
            self._fail(f"{found[0]}: this text has an escape that JSON does not know")

    def _pass(self, blank: Any) -> None:
        self._at = blank(self._text, self._at).end()

    def _take(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _fail(self, reason: str, at: int | None = None) -> NoReturn:
        line = self._text.count("\n", 0, self._at if at is None else at) + 1
        raise HoconError(f"line {line}: {reason}")


def _merge(into: dict[str, Any], name: str, value: Any) -> None:
    """Set a field. Two objects of one name are put together, as HOCON does."""
    before = into.get(name)
    if isinstance(before, dict) and isinstance(value, dict):
        for key, inner in value.items():
            _merge(before, key, inner)
    else:
        into[name] = value
