# SPDX-License-Identifier: Apache-2.0
"""The options that every command takes, before the verb or after it."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import click

from sqsqlite.cli.table import on_screen
from sqsqlite.contract.limits import BUSY_TIMEOUT_SECONDS, Range

FORMATS = ("json", "jsonl", "table", "csv", "csv-safe", "text")
DEFAULT_PATH = "sqsqlite.db"
ENVIRONMENT = "SQSQLITE_DB"

_KEPT = "sqsqlite.options"


def span(limit: Range) -> str:
    """A range in words for a help text. The request checks the value, since --limits native allows more."""
    return f"{limit.low:,} to {limit.high:,}"


def all_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Make one decorator of several options. The help lists them in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def given(context: click.Context) -> dict[str, Any]:
    """The options given so far, by name. All contexts of a run share one dict, through Click's meta."""
    kept: dict[str, Any] = context.meta.setdefault(_KEPT, {})
    return kept


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep an option. The one after the verb wins over the one before it, and both win over the environment."""
    if value is not None:
        given(context)[str(parameter.name)] = value


def _compile(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Compile the expression, so that an error in it is reported before the verb does anything."""
    if value is not None:
        import jmespath

        try:
            _keep(context, parameter, jmespath.compile(value))
        except jmespath.exceptions.JMESPathError as error:
            words = on_screen(f"{value!r} is not a JMESPath expression: {error}")
            raise click.BadParameter(words) from error


def _keep_number(context: click.Context, parameter: click.Parameter, value: float | None) -> None:
    """Keep a number, but refuse NaN, which Click accepts in any range."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("NaN is not a number of seconds")
    _keep(context, parameter, value)


def _refuse(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None and not context.resilient_parsing:
        raise click.UsageError(
            f"{parameter.opts[0]} chooses a server or an account, but this command works on the file that --db FILE "
            "names. To reach an endpoint, use aws itself or another SQS client."
        )


# By name, in the order of `sqsqlite --help`; the keyword arguments of click.Option.
_OPTIONS: Mapping[tuple[str, ...], Mapping[str, Any]] = {
    ("--db",): {
        "metavar": "FILE",
        "type": click.Path(),
        "help": f"The file. Default: the environment's {ENVIRONMENT}, else ./{DEFAULT_PATH}.",
    },
    ("--output",): {
        "type": click.Choice(FORMATS),
        "help": "Default: a table on a terminal, else jsonl; json for the AWS CLI's commands. csv-safe is csv "
        "that spreadsheets never read as formulas.",
    },
    ("--out",): {
        "metavar": "PATH",
        "type": click.Path(),
        "help": "Write the data to this file instead of standard output.",
    },
    ("--query",): {"metavar": "JMESPATH", "callback": _compile, "help": "Print only this part of the data."},
    ("--synchronous",): {
        "type": click.Choice(("FULL", "NORMAL"), case_sensitive=False),
        "metavar": "FULL|NORMAL",
        "help": "NORMAL is faster, but a power loss may undo the last commits. Default: FULL.",
    },
    ("--compat",): {
        "type": click.Choice(("docs", "aws")),
        "help": "Treat old receipt handles as errors (docs, the default), or leniently as Amazon does (aws).",
    },
    ("--limits",): {
        "type": click.Choice(("sqs", "native")),
        "help": "native lifts the limits that only Amazon needs. Default: sqs.",
    },
    ("--busy-timeout",): {
        "metavar": "SECONDS",
        "type": click.FloatRange(0, BUSY_TIMEOUT_SECONDS.high),
        "callback": _keep_number,
        "help": "How long to wait for other writers. Default: 30.",
    },
    ("--region",): {"metavar": "NAME", "help": "The region in ARNs. Default: us-east-1."},
    ("--adopt",): {
        "is_flag": True,
        "default": None,
        "help": "Add the tables of the queues to an existing SQLite file of an application.",
    },
    ("--no-color",): {
        "is_flag": True,
        "default": None,
        "help": "Use no colours; NO_COLOR in the environment does the same.",
    },
    ("-q", "--quiet"): {
        "is_flag": True,
        "default": None,
        "help": "Write only errors to standard error.",
    },
    ("-v", "--verbose"): {"is_flag": True, "default": None, "help": "Say which file is used."},
}

# Flags of the AWS CLI that a file can't honour. Ignoring them in silence would mislead.
_REFUSED = ("--endpoint-url", "--profile")


def root_options() -> list[click.Parameter]:
    """The options before the verb. Only these read the environment."""
    return [*_made(click.Option)]


def add_options(command: click.Command) -> click.Command:
    """Let a command and its subcommands take the options after the verb too. Its own of the same name stay."""
    if isinstance(command, click.Group):
        for child in command.commands.values():
            add_options(child)
    keep_examples(command)
    taken = {flag for parameter in command.params for flag in parameter.opts}
    added = [option for option in _made(_AfterVerb) if taken.isdisjoint(option.opts)]
    command.params += added
    if command.epilog is None:
        command.epilog = "The options of `sqsqlite --help`, such as --db and --output, work here too."
    return command


def keep_examples(command: click.Command) -> click.Command:
    r"""Keep the line ends of the examples in a command's help.

    Click's mark for such lines is the control character that a docstring writes as \b; ours are raw and hold the
    two characters.
    """
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    return command


class _AfterVerb(click.Option):
    """An option of every command. The shell completes it after the verb; only `sqsqlite --help` describes it."""

    def get_help_record(self, ctx: click.Context) -> None:  # noqa: ARG002 - Click's signature
        return None


def _made(kind: type[click.Option]) -> list[click.Option]:
    made = [click.Option((flag,), expose_value=False, callback=_refuse, hidden=True) for flag in _REFUSED]
    for flags, settings in _OPTIONS.items():
        environment = ENVIRONMENT if flags == ("--db",) and kind is click.Option else None
        made.append(kind(flags, expose_value=False, envvar=environment, **{"callback": _keep, **settings}))
    return made
