# SPDX-License-Identifier: Apache-2.0
"""Runs of the command inside the test process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from sqsqlite.cli import main


@dataclass
class Ran:
    """The result of a run."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        """JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


def runner_on(path: Path) -> Run:
    """`run("queues", "--output", "json")` on the file; `input` is standard input, `env` is added."""

    def run(*words: object, input: str | bytes | None = None, env: dict[str, str] | None = None) -> Ran:  # noqa: A002
        result: Result = CliRunner().invoke(
            main,
            [str(word) for word in words],
            prog_name="sqsqlite",
            input=input,
            env={"SQSQLITE_DB": str(path), **(env or {})},
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run
