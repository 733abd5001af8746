# SPDX-License-Identifier: Apache-2.0
"""The fenced blocks of a page: programs, commands, and their output."""

import re
import sys
from typing import NamedTuple

COMMANDS = {"python": [sys.executable, "-W", "error", "-c"], "sh": ["bash", "-euo", "pipefail", "-c"]}


class Block(NamedTuple):
    """A fenced block: its language, its text, and the text of the `text` block right after it, if there is one."""

    line: int
    language: str
    source: str
    output: str | None

    @property
    def file(self) -> str | None:
        """The name in the first line: a Python block that begins with `# NAME.py` is a file for the page's commands."""
        named = re.match(r"# (\w+\.py)\n", self.source)
        return named[1] if named and self.language == "python" else None


def blocks(text: str) -> list[Block]:
    fences = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
    return [Block(text.count("\n", 0, fence.start()) + 1, *fence.groups()) for fence in fences.finditer(text)]


def runnable(text: str) -> list[Block]:
    return [block for block in blocks(text) if block.language in COMMANDS and block.file is None]


def files(text: str) -> dict[str, str]:
    """Each file that the page shows, by name."""
    return {block.file: block.source for block in blocks(text) if block.file}
