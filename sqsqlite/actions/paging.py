# SPDX-License-Identifier: Apache-2.0
"""Pages of names: an opaque token that says after which name to go on."""

import base64
import binascii
from typing import Any

from sqsqlite.contract.limits import Limits
from sqsqlite.errors import InvalidParameterValue
from sqsqlite.store.transaction import Snapshot


def page(
    snapshot: Snapshot,
    statement: str,
    parameters: dict[str, Any],
    max_results: int | None,
    next_token: str | None,
    limits: Limits,
) -> tuple[list[str], str | None]:
    """Names of one page, and the token of the next.

    Without MaxResults there is no token, and at most 1,000 names. Source: API_ListQueues.

    Raises:
        InvalidParameterValue: a token that was never given out.
    """
    size = limits.list_result_count.high if max_results is None else max_results
    row = {
        **parameters,
        "after_name": "" if next_token is None else _name_of(next_token),
        "max_results": size + 1,
    }
    names = [found[0] for found in snapshot.execute(statement, row)]
    more = len(names) > size
    names = names[:size]
    return names, _token_of(names[-1]) if more and max_results is not None else None


def _token_of(name: str) -> str:
    return base64.urlsafe_b64encode(b"1" + name.encode()).decode("ascii")


def _name_of(token: str) -> str:
    try:
        raw = base64.urlsafe_b64decode(token.encode("ascii"))
        if raw[:1] == b"1":
            return raw[1:].decode()
    except (binascii.Error, UnicodeError, ValueError):
        pass
    raise InvalidParameterValue(
        f"Value {token} for parameter NextToken is invalid. Reason: Invalid or expired next token."
    )
