# SPDX-License-Identifier: Apache-2.0
"""Finding the clients of a process: each client of SQS is tied to the mock at its next call.

boto3 keeps no list of its clients, and a client that was made before the mock must be answered too. So botocore's one
method that makes every call is wrapped, once in a process. It stays wrapped, since others may have wrapped it in turn;
while there is no mock it costs one comparison.
"""

import functools
import importlib.util
import threading
import weakref
from typing import Any

from sqsqlite.boto import Answers, store_of
from sqsqlite.testing.regions import Regions

_lock = threading.Lock()
_ties: "weakref.WeakKeyDictionary[Any, Answers]" = weakref.WeakKeyDictionary()
_METHOD = "_make_api_call"


_in_force: Regions | None = None


def answer_from(regions: Regions) -> None:
    """Answer each client from its region's file, until `release`.

    Raises:
        ModuleNotFoundError: boto3 is not installed.
    """
    global _in_force  # the clients of a process are global too
    _watch()
    _in_force = regions


@functools.cache
def _watch() -> None:
    """Wrap the methods of botocore and, where it is installed, aiobotocore."""
    from botocore.client import BaseClient

    setattr(BaseClient, _METHOD, _watched(getattr(BaseClient, _METHOD)))
    if importlib.util.find_spec("aiobotocore") is not None:
        from aiobotocore.client import AioBaseClient

        setattr(AioBaseClient, _METHOD, _watched(getattr(AioBaseClient, _METHOD)))


def _watched(method: Any) -> Any:
    @functools.wraps(method)
    def watched(client: Any, *args: Any, **kwargs: Any) -> Any:
        if _in_force is not None and client.meta.service_model.service_name == "sqs":
            _tie(client)
        return method(client, *args, **kwargs)

    return watched


def _tie(client: Any) -> None:
    """Let the mock in force answer a client that no file answers yet."""
    events, meta = client.meta.events, client.meta
    with _lock:
        regions = _in_force
        if regions is None or events in _ties or store_of(client) is not None:
            return
        region = meta.region_name
        _ties[events] = Answers(
            events, lambda: regions.store(region), regions.caller(meta.endpoint_url), first=False
        )


def release() -> None:
    """Give all clients back to the network."""
    global _in_force
    with _lock:
        _in_force = None
        for answers in list(_ties.values()):
            answers.end()
        _ties.clear()
