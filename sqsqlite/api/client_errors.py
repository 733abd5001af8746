# SPDX-License-Identifier: Apache-2.0
"""What an error of a client says, whichever client raised it: boto3's, ours, or one wrapped by others."""

import re

from sqsqlite.errors import Busy

# Codes of answers after which the same request may succeed. Amazon has several for the same thing.
_PASSING = re.compile(
    r"Throttl|TooManyRequests|SlowDown|OverLimit|RequestLimit|ServiceUnavailable|InternalFailure"
)
_SERVER_ERROR = 500
# botocore's errors when no connection came about. Unlike those of a connection that broke, they are no HTTPClientError.
_NOT_CONNECTED = {"EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError"}
_MISSING = ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")


def code_of(error: Exception) -> str:
    """The code in an error's answer; else the name of its class."""
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return str(code or type(error).__name__)


def words_of(error: Exception) -> str:
    """The code and the reason of an error."""
    response = getattr(error, "response", None)
    message = response.get("Error", {}).get("Message") if isinstance(response, dict) else None
    return f"{code_of(error)}: {message or error}"


def passes(error: Exception) -> bool:
    """Whether the same request may succeed later: throttling, a server's fault, a broken connection, a busy file."""
    if isinstance(error, Busy):
        return True
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return bool(_PASSING.search(code_of(error))) or status >= _SERVER_ERROR or status == 429
    return _is_of_connection(error)


def is_in_doubt(error: Exception) -> bool:
    """Whether the request may have been carried out although no answer came."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return bool(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= _SERVER_ERROR)
    return _is_of_connection(error) and not _kinds(error) & _NOT_CONNECTED


def _is_of_connection(error: Exception) -> bool:
    """Whether a connection broke or was not to be had. An error of TLS is neither: it needs a human."""
    return bool(_kinds(error) & (_NOT_CONNECTED | {"HTTPClientError"}))


def _kinds(error: Exception) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def is_missing(error: Exception) -> bool:
    """Whether the error says that a queue does not exist."""
    return code_of(error) in _MISSING
