# SPDX-License-Identifier: Apache-2.0
"""From a file to Amazon SQS or any other endpoint, and back: `forward` and `fetch`."""

from sqsqlite.transfer.ends import End, TransferError, client_for, create_like
from sqsqlite.transfer.run import Refused, Transfer, TransferResult, fetch, forward

__all__ = [
    "End",
    "Refused",
    "Transfer",
    "TransferError",
    "TransferResult",
    "client_for",
    "create_like",
    "fetch",
    "forward",
]
