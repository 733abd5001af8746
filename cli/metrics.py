"""CloudWatch's metrics, by CloudWatch's names."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.queue_names import QueueName
from sqsqlite.cli.table import Column

if TYPE_CHECKING:
    from sqsqlite import QueueMetrics

_COLUMNS = (Column("QueueName", "queue"), Column("metric"), Column("value"))


@click.command("metrics")
@click.argument("queue", metavar="[QUEUE]", required=False, type=QueueName())
@click.pass_obj
def metrics(line: CommandLine, queue: str | None) -> None:
    r"""Show CloudWatch's metrics of the queues.

    \b
      sqsqlite metrics
      sqsqlite metrics orders --query '[0].ApproximateAgeOfOldestMessage'

    One instant of all queues, or of QUEUE. Counts are exact and ages are in seconds. NumberOf... and SentMessageSize
    are those of the running minute and the one before it. FIFO queues and standard ones have some metrics of their
    own. As a table there is a line for each metric; in the other formats an object for each queue.
    """
    found = line.sqs.metrics() if queue is None else [line.queue(queue).metrics()]
    if line.output.makes_tables:
        line.print_rows((cell for one in found for cell in _cells(one)), _COLUMNS)
    else:
        line.print_rows(_rows(found))


def _rows(found: "list[QueueMetrics]") -> Iterator[dict[str, Any]]:
    """The same names for each queue, null where its kind has no such metric."""
    measured = [(one.name, one.cloudwatch()) for one in found]
    names = dict.fromkeys(name for _, values in measured for name in values)
    for queue, values in measured:
        yield {"QueueName": queue, **{name: values.get(name) for name in names}}


def _cells(found: "QueueMetrics") -> Iterator[dict[str, Any]]:
    for name, value in found.cloudwatch().items():
        yield {"QueueName": found.name, "metric": name, "value": value}
