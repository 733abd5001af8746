# SPDX-License-Identifier: Apache-2.0
"""The AWS CLI's verbs: one command for each action, made from the fields of its request.

`sqsqlite send-message --queue-url U --message-body B` takes the flags of `aws sqs send-message` and prints the same.
It ignores the host and the account in a queue URL: a file used without a server has one account.
"""

import base64
import json
from typing import Any

import click
from msgspec import inspect

from sqsqlite.cli.arguments import AttributeName, QueueName, with_fifo_hint
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import PARTIAL, Failure
from sqsqlite.cli.options import span
from sqsqlite.cli.shorthand import fit, load, skeleton, structure, without_none
from sqsqlite.cli.verbs import VERBS
from sqsqlite.contract.limits import SQS
from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID, is_queue_arn, queue_arn, queue_name
from sqsqlite.contract.shapes import ACTIONS
from sqsqlite.errors import QueueDoesNotExist

_PAGINATED = ("list-queues", "list-dead-letter-source-queues")
_CREATING = ("create-queue",)
_ARNS = frozenset({"SourceArn", "DestinationArn"})

_URL = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
_EXAMPLES = {
    "add-permission": "--queue-url orders --label read --aws-account-ids 123456789012 --actions ReceiveMessage",
    "cancel-message-move-task": "--task-handle HANDLE",
    "change-message-visibility": "--queue-url orders --receipt-handle HANDLE --visibility-timeout 300",
    "change-message-visibility-batch": (
        "--queue-url orders --entries Id=1,ReceiptHandle=HANDLE,VisibilityTimeout=300"
    ),
    "create-queue": "--queue-name orders --attributes VisibilityTimeout=60,MessageRetentionPeriod=86400",
    "delete-message": "--queue-url orders --receipt-handle HANDLE",
    "delete-message-batch": "--queue-url orders --entries Id=1,ReceiptHandle=HANDLE Id=2,ReceiptHandle=HANDLE",
    "delete-queue": "--queue-url orders",
    "get-queue-attributes": f"--queue-url {_URL} --attribute-names All",
    "get-queue-url": "--queue-name orders --query QueueUrl --output text",
    "list-dead-letter-source-queues": "--queue-url orders-failed",
    "list-message-move-tasks": "--source-arn orders-failed",
    "list-queue-tags": "--queue-url orders",
    "list-queues": "--queue-name-prefix ord --max-items 10",
    "purge-queue": "--queue-url orders",
    "receive-message": "--queue-url orders --max-number-of-messages 10 --wait-time-seconds 20",
    "remove-permission": "--queue-url orders --label read",
    "send-message": (
        "--queue-url orders --message-body hello "
        "--message-attributes 'kind={DataType=String,StringValue=greeting}'"
    ),
    "send-message-batch": "--queue-url orders --entries Id=1,MessageBody=hello Id=2,MessageBody=again",
    "set-queue-attributes": f"--queue-url {_URL} --attributes VisibilityTimeout=120",
    "start-message-move-task": "--source-arn arn:aws:sqs:us-east-1:000000000000:orders-failed",
    "tag-queue": "--queue-url orders --tags team=sales,stage=test",
    "untag-queue": "--queue-url orders --tag-keys team stage",
}

_HELP = {
    "QueueUrl": "The queue, by URL, name or ARN.",
    "SourceArn": "The dead-letter queue, by ARN, name or URL.",
    "DestinationArn": "One queue for all messages, by ARN, name or URL. Default: each message's source queue.",
    "QueueName": f"{span(SQS.queue_name_characters)} letters, digits, - and _.",
    "Attributes": "Name=value,... or JSON.",
    "tags": "Key=value,... or JSON.",
    "Tags": "Key=value,... or JSON.",
    "Entries": "Up to ten entries: Name=value,... each, or one JSON list.",
    "MessageAttributes": "'Name={DataType=String,StringValue=...},...' or JSON.",
    "MessageSystemAttributes": "'AWSTraceHeader={DataType=String,StringValue=...}' or JSON.",
    "AttributeNames": "Names, or All.",
    "DelaySeconds": f"{span(SQS.delay_seconds)}.",
    "MaxNumberOfMessages": f"{span(SQS.max_number_of_messages)}.",
    "VisibilityTimeout": f"Seconds, {span(SQS.visibility_timeout_seconds)}.",
    "WaitTimeSeconds": f"{span(SQS.receive_message_wait_time_seconds)}.",
    "MessageBody": "The text, or file://PATH.",
    "Label": f"The name of the permission: {span(SQS.permission_label_characters)} letters, digits, - and _.",
    "AWSAccountIds": "The accounts to permit, 12 digits each.",
    "Actions": f"Up to {SQS.policy_action_count} SQS actions, or *.",
}

# Flags of the AWS CLI about connections and its own display. They mean nothing here, and are ignored.
_IGNORED = (
    ("--no-cli-pager", None),
    ("--no-sign-request", None),
    ("--no-verify-ssl", None),
    ("--cli-connect-timeout", "SECONDS"),
    ("--cli-read-timeout", "SECONDS"),
    ("--color", "MODE"),
)


_METAVARS: dict[type, str] = {inspect.IntType: "INTEGER", inspect.ListType: "...", inspect.DictType: "MAP"}


def __getattr__(name: str) -> click.Command:
    """Make the command of an action (`create_queue`) when its verb is used."""
    verb = name.replace("_", "-")
    for action, kind in ACTIONS.items():
        if _verb(action) == verb:
            return _command(verb, kind)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _verb(action: str) -> str:
    return "".join(f"-{mark.lower()}" if mark.isupper() else mark for mark in action).removeprefix("-")


class ActionCommand(click.Command):
    """A command whose flags can take several words: `--attribute-names A B`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat such a flag before each of its words, as Click expects."""
        several = {
            flag for option in self.params if getattr(option, "multiple", False) for flag in option.opts
        }
        written: list[str] = []
        flag = None
        for word in args:
            if word.startswith("-"):
                flag = word if word in several else None
            elif flag is not None and written[-1] != flag:
                written.append(flag)
            written.append(word)
        return super().parse_args(ctx, written)


def _command(verb: str, kind: Any) -> click.Command:
    """The command of one request class."""
    fields = inspect.type_info(kind).fields  # type: ignore[attr-defined] # a StructType: a request is a Struct

    @click.pass_obj
    def run(line: CommandLine, /, **given: Any) -> None:
        _run(line, verb, fields, given)

    parameters = [_flag(verb, field) for field in fields] + _extra_flags(paginated=verb in _PAGINATED)
    return ActionCommand(
        verb,
        callback=run,
        params=parameters,
        help=(
            f"{VERBS[verb].summary}\n\n\b\n  sqsqlite {verb} {_EXAMPLES[verb]}\n\n"
            f"Flags and output are those of `aws sqs {verb}`. A value may be file://PATH."
        ),
    )


def _flag(verb: str, field: inspect.Field) -> click.Option:
    shape = without_none(field.type)
    return click.Option(
        [_flag_name(field), field.name],
        type=int if isinstance(shape, inspect.IntType) else _completed(verb, field.name),
        multiple=isinstance(shape, inspect.ListType),
        metavar=_METAVARS.get(type(shape), "TEXT"),
        help=_HELP.get(field.encode_name, "") + (" [required]" if field.required else ""),
    )


def _completed(verb: str, field_name: str) -> click.types.StringParamType:
    """The type of a text, which decides what the shell completes."""
    if field_name in {"queue_url", "source_arn", "destination_arn"} or (
        field_name == "queue_name" and verb != "create-queue"
    ):
        return QueueName()
    if field_name == "attributes":
        return AttributeName("settable", "=")
    if field_name == "attribute_names" and verb == "get-queue-attributes":
        return AttributeName("readable")
    if field_name in {"attribute_names", "message_system_attribute_names"}:
        return AttributeName("message")
    return click.types.StringParamType()


def _flag_name(field: inspect.Field) -> str:
    return "--" + field.name.replace("_", "-")


def _extra_flags(*, paginated: bool) -> list[click.Parameter]:
    """The flags that the AWS CLI adds to the flags of an action."""
    flags = [
        click.Option(["--cli-input-json"], metavar="JSON", help="All parameters; flags win over it."),
        click.Option(
            ["--generate-cli-skeleton"],
            is_flag=False,
            flag_value="input",
            type=click.Choice(["input"]),
            help="Print an example for --cli-input-json, and do nothing.",
        ),
        click.Option(
            ["--cli-binary-format"],
            type=click.Choice(["base64", "raw-in-base64-out"]),
            help="The form of binary values. Default: base64.",
        ),
        click.Option(
            ["--no-paginate"],
            is_flag=True,
            hidden=not paginated,
            help="Return one page, even if there are more.",
        ),
    ]
    if paginated:
        flags += [
            click.Option(["--max-items"], type=click.IntRange(min=1), help="The number of results in all."),
            click.Option(["--page-size"], type=int, help="The number of results on a page."),
            click.Option(
                ["--starting-token"], metavar="TOKEN", help="Continue where an earlier --max-items ended."
            ),
        ]
    ignored = (
        click.Option([flag], is_flag=metavar is None, metavar=metavar, hidden=True, expose_value=False)
        for flag, metavar in _IGNORED
    )
    return [*flags, *ignored]


def _run(line: CommandLine, verb: str, fields: tuple[inspect.Field, ...], given: dict[str, Any]) -> None:
    if given.pop("generate_cli_skeleton"):
        line.output.document(skeleton(fields))
        return
    paging = {
        "MaxItems": given.pop("max_items", None),
        "PageSize": given.pop("page_size", None),
        "StartingToken": given.pop("starting_token", None),
    }
    in_pages = not given.pop("no_paginate") and verb in _PAGINATED
    parameters = _parameters(fields, given)
    client = line.open(create=verb in _CREATING).client
    for name in _ARNS & parameters.keys():
        parameters[name] = _arn(parameters[name], line.sqs.region)
    with line.naming(parameters.get("QueueUrl") or parameters.get("QueueName")):
        if in_pages and not parameters.keys() & {"MaxResults", "NextToken"}:
            pages = client.get_paginator(verb.replace("-", "_")).paginate(
                PaginationConfig=paging, **parameters
            )
            result = {name: found for name, found in pages.build_full_result().items() if found}
        else:
            made = parameters if verb in _CREATING else {}
            with with_fifo_hint(made, "--attributes FifoQueue=true makes one"):
                result = getattr(client, verb.replace("-", "_"))(**parameters)
            del result["ResponseMetadata"]
    line.output.document(_json_value(result))
    if result.get("Failed"):
        line.output.flush()
        raise Failure(f"failed entries: {len(result['Failed'])}", PARTIAL)


def _parameters(fields: tuple[inspect.Field, ...], given: dict[str, Any]) -> dict[str, Any]:
    """The request's parameters by SQS's names, from the flags and --cli-input-json."""
    raw_binary = given.pop("cli_binary_format") == "raw-in-base64-out"
    parameters = _input_json(fields, given.pop("cli_input_json"), raw_binary=raw_binary)
    for field in fields:
        value = given[field.name]
        if value is None or value == ():
            continue
        try:
            parameters[field.encode_name] = _value(field, value, raw_binary=raw_binary)
        except (ValueError, OSError) as error:
            raise click.BadParameter(str(error), param_hint=_flag_name(field)) from error
    for field in fields:
        if field.required and field.encode_name not in parameters:
            raise click.MissingParameter(param_type="option", param_hint=_flag_name(field))
    if isinstance(parameters.get("QueueUrl"), str):
        parameters["QueueUrl"] = _without_account(parameters["QueueUrl"])
    return parameters


def _input_json(fields: tuple[inspect.Field, ...], text: str | None, *, raw_binary: bool) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(load(text))
    except (ValueError, OSError) as error:
        raise click.BadParameter(str(error), param_hint="--cli-input-json") from error
    if not isinstance(found, dict):
        raise click.BadParameter("it must be a JSON object", param_hint="--cli-input-json")
    types = {field.encode_name: field.type for field in fields}
    return {
        name: fit(types[name], value, raw_binary) if name in types else value for name, value in found.items()
    }


def _value(field: inspect.Field, value: Any, *, raw_binary: bool) -> Any:
    if isinstance(value, int):
        return value
    if isinstance(value, str) and isinstance(without_none(field.type), inspect.StrType):
        return load(value)
    return structure((value,) if isinstance(value, str) else value, field.type, raw_binary=raw_binary)


def _without_account(url: str) -> str:
    """Reduce a URL to its name, so that Amazon's URLs in documents and scripts find the queue of that name."""
    try:
        return queue_name(url)[1]
    except QueueDoesNotExist:
        return url  # not a URL: the service refuses it in SQS's words


def _arn(queue: Any, region: str) -> Any:
    """The ARN of a queue given by name or URL, where the AWS CLI takes only ARNs."""
    if not isinstance(queue, str) or is_queue_arn(queue):
        return queue
    try:
        return queue_arn(region, DEFAULT_ACCOUNT_ID, queue_name(queue)[1])
    except QueueDoesNotExist:
        return queue  # not a name or URL: the service refuses it in SQS's words


def _json_value(value: Any) -> Any:
    """Encode binary values in Base64, as the AWS CLI prints them."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {name: _json_value(item) for name, item in value.items()}
    return [_json_value(item) for item in value] if isinstance(value, list) else value
