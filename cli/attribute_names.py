"""Names of attributes that the shell completes."""

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem


class AttributeName(click.types.StringParamType):
    """Text that begins with a name of SQS's; any text is taken, and the request says what it thinks of it.

    Args:
        attributes: "settable" and "readable" of a queue, or "message" for the system attributes of one.
        ending: what follows the name.
    """

    def __init__(self, attributes: str, ending: str = "") -> None:
        self._attributes = attributes
        self._ending = ending

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - Click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The names that begin so."""
        names = _names(self._attributes)
        return [CompletionItem(name + self._ending) for name in names if name.startswith(incomplete)]


def _names(attributes: str) -> Iterable[str]:
    """Loaded when a shell asks: the modules behind them are not for `--help`."""
    if attributes == "message":
        from sqsqlite.contract.requests import MESSAGE_SYSTEM_ATTRIBUTES

        return ["All", *sorted(MESSAGE_SYSTEM_ATTRIBUTES)]
    from sqsqlite.contract import queue_attributes

    if attributes == "settable":
        return queue_attributes.SETTABLE
    return ["All", *queue_attributes.SETTABLE, *queue_attributes.READ_ONLY]
