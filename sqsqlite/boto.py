# SPDX-License-Identifier: Apache-2.0
"""A real boto3 client or resource, answered in process: no server, no socket, no credentials.

botocore emits `before-call` once a request is validated and serialized; the handler that answers the event takes the
place of the network. So everything before it (parameter validation, paginators, the user's own handlers) and after it
(modelled exceptions, resources) is boto3's own.
"""

import asyncio
import inspect
import os
import threading
import uuid
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any, Self, Unpack

from sqsqlite.actions.dispatch import call
from sqsqlite.actions.opening import OpenOptions, check_names, open_store
from sqsqlite.actions.queue_rows import LOCAL, Caller
from sqsqlite.contract import shapes
from sqsqlite.contract.names import DEFAULT_BASE_URL, DEFAULT_REGION
from sqsqlite.errors import SQSError
from sqsqlite.store.store import Store

try:
    from botocore.awsrequest import AWSResponse
    from botocore.config import Config
    from botocore.session import Session
except ModuleNotFoundError as error:
    from sqsqlite.operators.installed import install_command

    raise ModuleNotFoundError(f"sqsqlite.boto needs boto3: {install_command('boto3')}") from error

_PARAMETERS = "sqsqlite_parameters"
# Event emitters with their files: the first of two handlers would answer.
_attached: "weakref.WeakKeyDictionary[Any, Store]" = weakref.WeakKeyDictionary()
_making = threading.Lock()  # a session of boto3's is for one thread at a time

Answer = tuple[AWSResponse, dict[str, Any]]


def client(
    path: str | os.PathLike[str], *, region_name: str | None = None, **options: Unpack[OpenOptions]
) -> Any:
    """A boto3 client (`boto3.client("sqs")`) on a file of queues; `client.close()` closes the file too.

    Its configuration is its own: profiles, credentials and endpoints in files and environment variables don't count.

    Args:
        path: the file; made if it does not exist.
        region_name: boto3's name for the option `region`.
        options: those of `sqsqlite.connect`.

    Raises:
        TypeError: another option, or `region` together with `region_name`.
        StoreError, ValueError: as `sqsqlite.connect`.
        ModuleNotFoundError: boto3 is not installed.
    """
    options = _with_region("client", options, region_name)
    with _making:
        made = _session().client("sqs", **_settings(options))
    return _closing(made, path, options)


def resource(
    path: str | os.PathLike[str], *, region_name: str | None = None, **options: Unpack[OpenOptions]
) -> Any:
    """A boto3 service resource (`boto3.resource("sqs")`) on a file of queues.

    `resource.meta.client.close()` closes the file. Arguments and errors: see `client`.
    """
    options = _with_region("resource", options, region_name)
    with _making:
        made = _session().resource("sqs", **_settings(options))
    _closing(made.meta.client, path, options)
    return made


def attach(target: Any, path: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> "Attachment":
    """Answer an existing client or resource from a file, until the attachment is closed.

    Args:
        target: a boto3, botocore or aiobotocore client for SQS, a boto3 SQS resource, or a session: then the SQS
            clients made from it afterwards.
        path: the file; made if it does not exist.
        options: those of `sqsqlite.connect`.

    Raises:
        TypeError: the target is of another kind, or an option does not exist.
        ValueError: the target is attached already, or an option has a value that is not allowed.
        StoreError: as `sqsqlite.connect`.
    """
    check_names("attach", options)
    events = _events_of(target)
    if events in _attached:
        raise ValueError(f"{target!r} is attached to a file already: close that attachment first")
    return Attachment(events, open_store(path, **options))


class Answers:
    """What answers a client in place of the network.

    Args:
        events: the client's emitter.
        find_store: gives the open file at each call.
        caller: whose queues the client means.
        first: answer before the handlers that the emitter has. Otherwise they may answer, as botocore's Stubber does.
    """

    def __init__(
        self, events: Any, find_store: Callable[[], Store], caller: Caller = LOCAL, *, first: bool = True
    ) -> None:
        self._events = events
        self._find_store = find_store
        self._caller = caller
        # aiobotocore awaits its handlers, so there a long poll must not hold the event loop.
        waits = inspect.iscoroutinefunction(getattr(events, "_emitter", events).emit_until_response)
        self._handlers = {
            "before-parameter-build.sqs": _keep_parameters,
            "before-call.sqs": self._answer_on_thread if waits else self._answer,
        }
        for event, handler in self._handlers.items():
            (events.register_first if first else events.register)(event, handler)

    def end(self) -> None:
        """Give the client back to the network. A second time does nothing."""
        for event, handler in self._handlers.items():
            self._events.unregister(event, handler)
        self._handlers = {}

    def _answer(self, model: Any, context: dict[str, Any], **_: Any) -> Answer:
        kind = shapes.ACTIONS[model.name]
        try:
            result = shapes.to_dict(call(self._find_store(), kind, context.pop(_PARAMETERS), self._caller))
        except SQSError as error:
            return _refusal(error)
        return _response(200, result, {})

    async def _answer_on_thread(self, model: Any, context: dict[str, Any], **_: Any) -> Answer:
        return await asyncio.to_thread(self._answer, model, context)


class Attachment:
    """The tie between a client and a file. A context manager; `close()` gives the client back to the network."""

    def __init__(self, events: Any, store: Store) -> None:
        self._events = events
        self._store = store
        self._answers = Answers(events, lambda: store)
        _attached[events] = store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Detach, then close the file. A second time does nothing."""
        self._answers.end()
        _attached.pop(self._events, None)
        self.close_file()

    def close_file(self) -> None:
        """Close the file but stay attached: what is called afterwards raises StoreClosed, and stays off the network."""
        self._store.close()


def _keep_parameters(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    """Keep the caller's own dict: `before-call` brings nothing but the bytes that would have been sent."""
    context[_PARAMETERS] = params


def _response(status: int, parsed: dict[str, Any], headers: dict[str, str]) -> Answer:
    request_id = str(uuid.uuid4())
    headers |= {"x-amzn-requestid": request_id, "content-type": "application/x-amz-json-1.0"}
    parsed["ResponseMetadata"] = {
        "RequestId": request_id,
        "HTTPStatusCode": status,
        "HTTPHeaders": headers,
        "RetryAttempts": 0,
    }
    return AWSResponse(None, status, headers, None), parsed


def _refusal(error: SQSError) -> Answer:
    """The error as botocore parses it from a response; it then finds the exception's class by QueryErrorCode."""
    headers = {"x-amzn-query-error": f"{error.query_code};{error.fault}"}
    return _response(error.http_status, error.response, headers)


@cache
def _session() -> Any:
    """A boto3 session deaf to the machine's profiles, configuration and credential files.

    One for all: it keeps the service model, whose reading is nearly all that making a client costs (42 ms or 1.4 ms).
    """
    import boto3

    silent = dict.fromkeys(("profile", "config_file", "credentials_file"), (None, None, None, None))
    return boto3.Session(botocore_session=Session(session_vars=silent))


def _with_region(function: str, options: OpenOptions, region_name: str | None) -> OpenOptions:
    """The options, `region_name` as the `region` among them.

    Raises:
        TypeError: an option does not exist; what else boto3's own functions take has no meaning for a file.
    """
    check_names(function, options)
    if region_name is None:
        return options
    if "region" in options:
        raise TypeError("region and region_name are the same option: one of them is allowed")
    return {**options, "region": region_name}


def _settings(options: OpenOptions) -> dict[str, Any]:
    """Arguments that leave boto3 nothing to look for; the credentials are never used, for nothing is signed."""
    return {
        "region_name": options.get("region", DEFAULT_REGION),
        "endpoint_url": DEFAULT_BASE_URL,
        "aws_access_key_id": "unused",
        "aws_secret_access_key": "unused",
        "config": Config(use_fips_endpoint=False, use_dualstack_endpoint=False),
    }


def client_over(store: Store, caller: Caller = LOCAL) -> Any:
    """A boto3 client on a file that is open already, and stays open when the client is closed."""
    with _making:
        made = _session().client("sqs", **_settings({"region": store.settings.region}))
    Answers(made.meta.events, lambda: store, caller)
    _attached[made.meta.events] = store
    return made


def store_of(client: Any) -> Store | None:
    """The open file that answers a client. None: no file does, or only a mock's."""
    return _attached.get(client.meta.events)


def _closing(made: Any, path: str | os.PathLike[str], options: OpenOptions) -> Any:
    """Tie the client to the file and to its end."""
    attachment = attach(made, path, **options)
    close_endpoint = made.close

    def close() -> None:
        """Close the client and its file."""
        attachment.close_file()
        close_endpoint()

    made.close = close
    return made


def _events_of(target: Any) -> Any:
    if hasattr(target, "get_component"):  # a session of botocore's
        return target.get_component("event_emitter")
    if hasattr(target, "get_available_resources"):  # a session of boto3's
        return target.events
    meta: Any = getattr(target, "meta", None)
    meta = getattr(getattr(meta, "client", None), "meta", meta)  # a resource has a client
    if getattr(getattr(meta, "service_model", None), "service_name", None) != "sqs":
        raise TypeError(f"{target!r} is no SQS client, no SQS resource and no session")
    return meta.events
