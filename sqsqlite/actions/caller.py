"""Who calls, and by which address they know their queues."""

from typing import NamedTuple

from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID, DEFAULT_BASE_URL


class Caller(NamedTuple):
    """The account whose queues a name means, and what URLs and SenderId (None: the account) are made of."""

    account_id: str = DEFAULT_ACCOUNT_ID
    sender_id: str | None = None
    base_url: str = DEFAULT_BASE_URL


LOCAL = Caller()
"""Everything inside this process: no server, no keys."""
