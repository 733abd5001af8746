# SPDX-License-Identifier: Apache-2.0
"""The command `sqsqlite`. It loads Click alone until a verb needs more."""

import atexit
import errno
import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import click

from sqsqlite import __version__
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import (
    EXIT_CODES,
    INTERRUPTED,
    PIPE_CLOSED,
    TERMINATED,
    Failure,
    Terminated,
    end,
    failure_of,
    handled_by,
    leave_quietly,
)
from sqsqlite.cli.options import add_options, given, keep_examples, root_options
from sqsqlite.cli.table import on_screen
from sqsqlite.cli.verbs import VERBS
from sqsqlite.errors import SQSQLiteError

__all__ = ["main"]

# A full disk, a used-up quota, a process's limit on the size of files.
_OUT_OF_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

# When Python ends, it looks for cycles among the objects of all modules, which takes a tenth of a short command's CPU
# time. It skips frozen objects; the end of the process frees them.
atexit.register(gc.freeze)

# With Python's default of 700, the collector runs about thirty times while the modules load, and finds nothing.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


class Verbs(click.Group):
    """The verbs of the table. Each one is loaded when it is used."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or suggest similar ones. Click itself would search only the verbs that are loaded."""
        name = args[0]
        if name == "help":
            return self._help(ctx, args[1:])
        if name not in VERBS and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(on_screen(_unknown(name)), ctx)
        return super().resolve_command(ctx, args)

    def _help(
        self, ctx: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """`help`, as other programs have it: `--help` of the command that follows."""
        if not words:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return self.resolve_command(ctx, [*words, "--help"])

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - Click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a verb. A second call returns the same object, so its options are added once."""
        if cmd_name in VERBS and cmd_name not in self.commands:
            self.commands[cmd_name] = add_options(VERBS[cmd_name].load())
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the verbs under their headings, without loading any of them."""
        for section in dict.fromkeys(verb.section for verb in VERBS.values()):
            lines = [(name, verb.summary) for name, verb in VERBS.items() if verb.section == section]
            with formatter.section(section):
                formatter.write_dl(lines)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb, close the file, and turn an error or a signal into its exit code."""
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        if sys.stdin is None:  # Python sets it so when the descriptor is closed
            sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open for the run
        line = ctx.obj = CommandLine(given(ctx))
        try:
            with handled_by(end, signal.SIGTERM):
                return _run(line, lambda: super(Verbs, self).invoke(ctx))
        except Failure as failure:
            failure.coloured = line.coloured
            raise


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    similar = " or ".join(get_close_matches(name, VERBS))
    return f"there is no command {name}" + (f": did you mean {similar}?" if similar else "")


def _run(line: CommandLine, verb: Callable[[], Any]) -> Any:
    try:
        try:
            result = verb()
            line.finish_output(failed=False)
        except (Failure, click.exceptions.Exit):
            line.finish_output(failed=True)
            raise
        finally:
            line.close()
        if sys.stdout is not None:
            sys.stdout.flush()
    except SQSQLiteError as error:
        raise failure_of(error) from error
    except Terminated as error:
        raise Failure("", TERMINATED) from error
    except (KeyboardInterrupt, click.Abort) as error:
        raise Failure("", INTERRUPTED) from error
    except UnicodeEncodeError as error:
        if sys.stdout is None or error.encoding == "utf-8":
            raise
        raise Failure(
            f"standard output is in {sys.stdout.encoding}, which has no {error.object[error.start]!a}: write to a file "
            "with --out, or set PYTHONIOENCODING=utf-8"
        ) from error
    except OSError as error:
        if error.errno != errno.EPIPE:
            name = "DiskFull" if error.errno in _OUT_OF_ROOM else type(error).__name__
            raise Failure(f"{name}: {error}") from error
        leave_quietly()
        raise Failure("", PIPE_CLOSED) from error
    return result


@click.group(
    cls=Verbs,
    params=root_options(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, "--version", prog_name="sqsqlite", message="%(prog)s %(version)s")
def main() -> None:
    r"""Amazon SQS in one SQLite file.

    Give a QUEUE by its name, its URL (of any host) or its ARN. `sqsqlite COMMAND --help` explains a command, with
    examples.

    \b
      sqsqlite create orders
      sqsqlite send orders "paint the fence"
      sqsqlite receive orders --delete
    """


keep_examples(main)
