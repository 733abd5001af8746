# SPDX-License-Identifier: Apache-2.0
"""The table of commands: the home of each one, and its line in `sqsqlite --help`, which loads no command."""

from importlib import import_module
from typing import NamedTuple

import click

EVERYDAY = "Everyday commands"
FILES = "The file"
ENDPOINT = "The endpoint"
ANALYTICS = "Analytics (Spark, which needs Java)"
AWS = "Commands of the AWS CLI (aws sqs ..., with its flags)"


class Verb(NamedTuple):
    """One command.

    Attributes:
        home: `module:attribute` below sqsqlite.cli.
        section: its heading in `sqsqlite --help`.
        summary: the first sentence of its own help.
    """

    home: str
    section: str
    summary: str

    def load(self) -> click.Command:
        """Import the module and return the command."""
        module, _, attribute = self.home.partition(":")
        command = getattr(import_module(f"sqsqlite.cli.{module}"), attribute)
        assert isinstance(command, click.Command), self.home
        return command


VERBS: dict[str, Verb] = {
    "queues": Verb("queues:queues", EVERYDAY, "List the queues with their counts."),
    "create": Verb("queues:create", EVERYDAY, "Make a queue, and the file if it does not exist."),
    "set": Verb("queues:set_", EVERYDAY, "Change a queue's attributes and tags."),
    "send": Verb("send:send", EVERYDAY, "Send a message, or one for each line of standard input."),
    "receive": Verb("receive:receive", EVERYDAY, "Receive messages, or run a command for each."),
    "peek": Verb("receive:peek", EVERYDAY, "Look at messages without receiving them."),
    "tail": Verb("receive:tail", EVERYDAY, "Show the latest messages; -f waits for new ones."),
    "stats": Verb("stats:stats", EVERYDAY, "Show counts, ages, and the activity of the last minute or two."),
    "metrics": Verb("stats:metrics", EVERYDAY, "Show CloudWatch's metrics of the queues."),
    "top": Verb("stats:top", EVERYDAY, "Watch the queues, refreshed every second."),
    "dlq": Verb("dead_letters:dlq", EVERYDAY, "Show dead letters, their sources and receive counts."),
    "redrive": Verb("dead_letters:redrive", EVERYDAY, "Send dead letters back to their source queues."),
    "purge": Verb("queues:purge", EVERYDAY, "Delete all messages of a queue, including messages in flight."),
    "delete": Verb("queues:delete", EVERYDAY, "Delete a queue with its messages."),
    "demo": Verb("demo:demo", EVERYDAY, "Run workers on real input, kill one, and show that it adds up."),
    "completion": Verb("arguments:completion", EVERYDAY, "Print how to switch on shell completion."),
    "db": Verb("files:db", FILES, "Upgrade the file's schema, or show its version."),
    "backup": Verb("files:backup", FILES, "Copy the file while it is in use."),
    "restore": Verb("files:restore", FILES, "Make a file from a backup."),
    "check": Verb("files:check", FILES, "Check the file for damage."),
    "dump": Verb("files:dump", FILES, "Write messages as JSON lines."),
    "load": Verb("files:load", FILES, "Load the messages of a dump."),
    "payloads": Verb("payloads:payloads", FILES, "Look after the big bodies of messages in a payload store."),
    "serve": Verb("serve:serve", ENDPOINT, "Serve the file to SQS clients, until Ctrl-C or SIGTERM."),
    "keys": Verb("access_keys:keys", ENDPOINT, "Make, list, rotate and remove the access keys of serve."),
    "forward": Verb(
        "transfer:forward", ENDPOINT, "Move a queue's messages to Amazon SQS or another endpoint."
    ),
    "fetch": Verb(
        "transfer:fetch", ENDPOINT, "Move messages from Amazon SQS or another endpoint to a queue."
    ),
    "report": Verb("report:report", ANALYTICS, "Report on the queues with Spark, over JDBC."),
    "export": Verb("analytics:export", ANALYTICS, "Export queues to Parquet, for analysis elsewhere."),
    "analytics": Verb(
        "analytics:analytics", ANALYTICS, "Fetch the JDBC driver, or print the types of the reporting views."
    ),
}

_ACTIONS = {
    "create-queue": "Make a queue, or find an equal one.",
    "delete-queue": "Delete a queue with its messages, without asking.",
    "get-queue-url": "Print a queue's URL.",
    "list-queues": "List the URLs of queues.",
    "list-dead-letter-source-queues": "List the queues that send their dead letters to a queue.",
    "get-queue-attributes": "Print a queue's attributes and counts.",
    "set-queue-attributes": "Set attributes, either all or none.",
    "purge-queue": "Delete all messages of a queue, without asking.",
    "send-message": "Send a message.",
    "send-message-batch": "Send up to ten messages.",
    "receive-message": "Receive up to ten messages.",
    "delete-message": "Delete a received message.",
    "delete-message-batch": "Delete up to ten received messages.",
    "change-message-visibility": "Change how long a received message stays hidden, from now.",
    "change-message-visibility-batch": "Change how long up to ten messages stay hidden, from now.",
    "tag-queue": "Add tags to a queue, or give them other values.",
    "untag-queue": "Remove tags from a queue.",
    "list-queue-tags": "Print a queue's tags.",
    "add-permission": "Let other accounts use a queue.",
    "remove-permission": "Withdraw a permission.",
    "start-message-move-task": "Move a dead-letter queue's messages.",
    "list-message-move-tasks": "List a dead-letter queue's move tasks.",
    "cancel-message-move-task": "Stop a running move task.",
}
VERBS |= {name: Verb(f"actions:{name.replace('-', '_')}", AWS, summary) for name, summary in _ACTIONS.items()}
