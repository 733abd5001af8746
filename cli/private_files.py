"""Files with secrets in them."""

import os
from pathlib import Path

from sqsqlite.cli.command_line import CommandLine


def advise_privacy(line: CommandLine, path: Path) -> None:
    """Say so if others than its owner can use a file that holds secrets."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        line.say(f"{path}: others can read these secrets: chmod 600 is advised")
