# SPDX-License-Identifier: Apache-2.0
"""Queue names, URLs and ARNs. The host of a URL is ignored: account and name find the queue.

Source: developer guide, "Queue and message identifiers"; API_CreateQueue, QueueName.
"""

import re
from functools import lru_cache

from sqsqlite.errors import InvalidAttributeName, InvalidParameterValue, QueueDoesNotExist

DEFAULT_ACCOUNT_ID = "000000000000"
DEFAULT_REGION = "us-east-1"
DEFAULT_BASE_URL = "http://localhost:9324"

NO_SUCH_QUEUE = "The specified queue does not exist."

# Names are 1 to 80 characters, and `.fifo` counts. ASCII only, which `\w` would not be.
_NAME = r"[A-Za-z0-9_-]{1,75}\.fifo|[A-Za-z0-9_-]{1,80}"
_is_name = re.compile(_NAME).fullmatch
_match_url = re.compile(
    rf"https?://[^/?#]+/(?:queue/[a-z0-9-]+/)?(?P<account>\d{{12}})/(?P<name>{_NAME})/?", re.ASCII
).fullmatch
_match_arn = re.compile(
    rf"arn:[a-z-]+:sqs:(?P<region>[a-z0-9-]+):(?P<account>\d{{12}}):(?P<name>{_NAME})", re.ASCII
).fullmatch

# Longer texts are read anew each time: else a client would decide how much memory the cache takes.
_CACHED_CHARACTERS = 512


def queue_name(name_or_url_or_arn: str) -> tuple[str | None, str]:
    """Account id (None where a bare name leaves it open) and name of the queue that a text names.

    Takes a bare name, an ARN, and the URLs of Amazon SQS and of local endpoints, whatever their host:
    `/ACCOUNT/NAME` and `/queue/REGION/ACCOUNT/NAME`, with or without a slash at the end.

    Raises:
        QueueDoesNotExist: the text is not a name, URL or ARN.
    """
    if len(name_or_url_or_arn) > _CACHED_CHARACTERS:
        return _read(name_or_url_or_arn)
    return _read_once(name_or_url_or_arn)


def _read(name_or_url_or_arn: str) -> tuple[str | None, str]:
    if _is_name(name_or_url_or_arn):
        return None, name_or_url_or_arn
    match = _match_url(name_or_url_or_arn) or _match_arn(name_or_url_or_arn)
    if match is None:
        raise QueueDoesNotExist(NO_SUCH_QUEUE)
    return match["account"], match["name"]


_read_once = lru_cache(maxsize=4_096)(_read)


def is_queue_name(text: str) -> bool:
    """Whether the text has the form of a queue's name; the queue need not exist."""
    return _is_name(text) is not None


def is_queue_arn(text: str) -> bool:
    """Whether the text has the form of a queue's ARN; the queue need not exist."""
    return _match_arn(text) is not None


def check_queue_name(name: str, fifo: bool, attributes_has_fifo: bool = False) -> None:
    """Check the name of a queue about to be created.

    Args:
        name: 1 to 80 letters, digits, `-` and `_`; a FIFO queue's ends with `.fifo`, no other does.
        fifo: whether FifoQueue is true.
        attributes_has_fifo: whether FifoQueue is among the attributes, with whatever value.

    Raises:
        InvalidParameterValue: the name is not one for this type of queue.
        InvalidAttributeName: FifoQueue is given for a standard queue, be it "false".
    Source: API_CreateQueue, QueueName and FifoQueue.
    """
    named = bool(_is_name(name))
    if fifo:
        if not (named and name.endswith(".fifo")):
            raise InvalidParameterValue(
                "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, "
                "must end with .fifo suffix and be 1 to 80 in length."
            )
        return
    if not named or name.endswith(".fifo"):
        raise InvalidParameterValue(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
        )
    if attributes_has_fifo:
        raise InvalidAttributeName("Unknown Attribute FifoQueue.")


def queue_url(base_url: str, account_id: str, name: str) -> str:
    """The queue's URL below `base_url` (scheme, host and port, with or without a slash at the end)."""
    return f"{base_url.rstrip('/')}/{account_id}/{name}"


def queue_arn(region: str, account_id: str, name: str) -> str:
    """The queue's ARN, in the partition `aws`."""
    return f"arn:aws:sqs:{region}:{account_id}:{name}"
