# SPDX-License-Identifier: Apache-2.0
"""The two ends of a transfer: a queue behind a client with boto3's methods, and which of its errors pass by."""

import re
from typing import Any
from urllib.parse import urlsplit

from sqsqlite.api.client_errors import words_of
from sqsqlite.contract.names import DEFAULT_REGION
from sqsqlite.errors import SQSQLiteError
from sqsqlite.operators.installed import install_command

_of_amazon = re.compile(
    r"(?:sqs(?:-fips)?\.(?P<region>[a-z0-9-]+)|(?P<older>[a-z0-9-]+)\.queue|(?P<oldest>queue))\.amazonaws\.com(?:\.cn)?"
).fullmatch
# Settings that another queue can have as they are. A redrive policy names a queue that the other end may lack.
_COPIED = (
    "DelaySeconds",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "VisibilityTimeout",
    "FifoQueue",
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "FifoThroughputLimit",
)


class TransferError(SQSQLiteError):
    """A transfer that can't go on. What was not moved is still in its queue."""


class End:
    """A queue at one end.

    Args:
        client: a client with boto3's methods: boto3's own, `sqsqlite.client`, or `SQS.client`.
        url: the queue's URL; for a client of a file its name will do.
        name: how to call this end in a sentence.

    Raises:
        TransferError: the queue can't be reached, or does not exist.
    """

    def __init__(self, client: Any, url: str, name: str) -> None:
        self.client = client
        self.url = url
        self.name = name
        self.attributes: dict[str, str] = {}

    @property
    def is_fifo(self) -> bool:
        """Whether it is a FIFO queue. Known after `look`."""
        return self.attributes.get("FifoQueue") == "true"

    def look(self) -> dict[str, str]:
        """Read the queue's attributes.

        Raises:
            TransferError: the queue can't be reached, or does not exist.
        """
        try:
            found = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])
        except Exception as error:
            raise TransferError(f"{self.name} {self.url}: {words_of(error)}") from error
        self.attributes = found.get("Attributes", {})
        return self.attributes


def client_for(url: str, *, region: str | None = None, profile: str | None = None) -> Any:
    """A boto3 client for the endpoint of a queue's URL.

    Credentials come from where boto3 looks for them. If there are none and the endpoint is not Amazon's, requests are
    not signed: an endpoint without access keys accepts that.

    Args:
        url: for example https://sqs.eu-central-1.amazonaws.com/123456789012/orders.
        region: Default: that of Amazon's URL, else boto3's default, else us-east-1.
        profile: a profile of the AWS configuration.

    Raises:
        TransferError: the URL is none, or the profile does not exist.
        ModuleNotFoundError: boto3 is not installed.
    """
    try:
        import boto3
        from botocore import UNSIGNED
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error}: to reach another endpoint needs boto3: {install_command('boto3')}"
        ) from error
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.count("/") < 2:
        raise TransferError(
            f"{url}: this is no URL of a queue, such as https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
        )
    amazon = _of_amazon(parts.hostname)
    try:
        session = boto3.Session(profile_name=profile)
        found = region or (amazon and (amazon["region"] or amazon["older"])) or session.region_name
        signed = amazon is not None or session.get_credentials() is not None
        # One attempt: a retry of boto3's own would send a batch twice without a word.
        settings: dict[str, Any] = {"retries": {"total_max_attempts": 1}}
        if not signed:
            settings["signature_version"] = UNSIGNED
        return session.client(
            "sqs",
            region_name=found or DEFAULT_REGION,
            endpoint_url=f"{parts.scheme}://{parts.netloc}",
            config=Config(**settings),
        )
    except (BotoCoreError, ValueError) as error:
        raise TransferError(f"{url}: {error}") from error


def create_like(source: End, target: End) -> str:
    """Make the target queue with the settings of the source, if it is missing. Returns its URL.

    Raises:
        TransferError: it exists with other settings, or can't be made.
    """
    given = {name: source.attributes[name] for name in _COPIED if name in source.attributes}
    try:
        made = target.client.create_queue(
            QueueName=urlsplit(target.url).path.rsplit("/", 1)[-1], Attributes=given
        )
    except Exception as error:
        raise TransferError(f"{target.name} {target.url}: {words_of(error)}") from error
    url: str = made["QueueUrl"]
    return url
