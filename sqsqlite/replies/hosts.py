# SPDX-License-Identifier: Apache-2.0
"""Host queues: made for one requester, kept alive by a tag, removed when their requester is dead."""

import random
import secrets
from typing import Any

from sqsqlite.api.client_errors import code_of, is_missing
from sqsqlite.replies.addresses import HOST_PREFIX, LAST_SIGN, RETENTION

_KEPT_SECONDS = "3600"  # a reply that nobody takes for an hour is nobody's
_LOOKS = 50


def make(client: Any, now_ms: int, idle_seconds: int) -> str:
    """Make a host queue. Returns its URL.

    Args:
        idle_seconds: how long after its last sign of life others may remove it.
    """
    url: str = client.create_queue(
        QueueName=f"{HOST_PREFIX}{secrets.token_hex(8)}",
        Attributes={"MessageRetentionPeriod": _KEPT_SECONDS},
        tags={LAST_SIGN: str(now_ms), RETENTION: str(idle_seconds)},
    )["QueueUrl"]
    return url


def sign(client: Any, url: str, now_ms: int) -> None:
    """Leave a sign of life."""
    client.tag_queue(QueueUrl=url, Tags={LAST_SIGN: str(now_ms)})


def remove(client: Any, url: str) -> None:
    """Remove a host queue; if it is gone already, so much the better."""
    try:
        client.delete_queue(QueueUrl=url)
    except Exception as error:
        if not is_missing(error):
            raise


def sweep(client: Any, now_ms: int) -> int:
    """Remove the host queues whose requester has given no sign of life for too long.

    A queue without our tags is left alone, whatever its name, and so is all that the caller may not see or remove: a
    program with few rights can still ask. Of more than 50 host queues a random 50 are looked at, so that a thousand
    requesters do not make a million calls; each later sweep looks at others.

    Returns:
        How many were removed.
    """
    urls: list[str] = []
    token: str | None = None
    while True:
        more = {"NextToken": token} if token else {}
        try:
            page = client.list_queues(QueueNamePrefix=HOST_PREFIX, MaxResults=1_000, **more)
        except Exception as error:
            if _is_denied(error):
                return 0
            raise
        urls += page.get("QueueUrls", [])
        token = page.get("NextToken")
        if not token:
            break
    looked_at = random.sample(urls, min(_LOOKS, len(urls)))
    return sum(_remove_if_dead(client, url, now_ms) for url in looked_at)


def _remove_if_dead(client: Any, url: str, now_ms: int) -> bool:
    try:
        tags = client.list_queue_tags(QueueUrl=url).get("Tags", {})
        last, idle = tags.get(LAST_SIGN, ""), tags.get(RETENTION, "")
        if not (last.isdecimal() and idle.isdecimal()) or now_ms - int(last) <= int(idle) * 1_000:
            return False
        client.delete_queue(QueueUrl=url)
    except Exception as error:
        if is_missing(error) or _is_denied(error):  # missing: another requester was first
            return False
        raise
    return True


def _is_denied(error: Exception) -> bool:
    return "AccessDenied" in code_of(error)
