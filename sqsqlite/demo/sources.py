"""The demo's input: the source files of the machine's own Python standard library, and counting what is in one."""

import ast
import os
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

_OTHERS = {"site-packages", "dist-packages", "__pycache__"}  # installed beside the library, not of it


class Unparsable(Exception):
    """The file is no Python source of this Python's grammar."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a source file holds; functions include methods and those inside others."""

    functions: int
    classes: int
    lines: int


def standard_library() -> Path:
    """The folder of this Python's standard library."""
    return Path(sysconfig.get_path("stdlib"))


def find(root: Path) -> list[Path]:
    """All source files below `root`, in the same order on every run; without what was installed beside them."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - _OTHERS)
        found += [Path(folder, name) for name in sorted(names) if name.endswith(".py")]
    return found


def sample(paths: Sequence[Path], limit: int | None) -> list[Path]:
    """`limit` of the paths, evenly spread over them; all of them if there are no more, or without a limit."""
    if limit is None or len(paths) <= limit:
        return list(paths)
    return [paths[place * len(paths) // limit] for place in range(limit)]


def count(path: Path) -> Counts:
    """Read and parse a source file.

    Raises:
        Unparsable: its text can't be decoded or parsed.
        OSError: it can't be read.
    """
    source = path.read_bytes()
    try:
        tree = ast.parse(source, filename=str(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise Unparsable(f"{path}: {error}") from error
    functions = classes = 0
    for node in ast.walk(tree):
        functions += isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        classes += isinstance(node, ast.ClassDef)
    return Counts(functions, classes, len(source.splitlines()))


def parses(path: Path) -> bool:
    """Whether `count` would take the file."""
    try:
        count(path)
    except Unparsable:
        return False
    return True


def ships_unparsable(paths: Sequence[Path]) -> bool:
    """Whether a file among `paths` is there to be unparsable, as input of the library's own tests.

    Only those that look so are parsed: the others are the workers' business.
    """
    return any(_looks_broken(path) and not parses(path) for path in paths)


def _looks_broken(path: PurePath) -> bool:
    return path.name.startswith("bad") or path.parent.name.endswith("data")


def write_truncated(source: Path, target: Path) -> None:
    """Copy the first half of a source file, cut where it does not parse.

    Raises:
        Unparsable: no cut of `source` does that.
    """
    text = source.read_bytes()
    for end in range(len(text) // 2, 0, -1):
        target.write_bytes(text[:end])
        if not parses(target):
            return
    raise Unparsable(f"{source}: wherever it is cut, the rest parses")
