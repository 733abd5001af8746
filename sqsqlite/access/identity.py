"""Whose request it is."""

from typing import NamedTuple


class Identity(NamedTuple):
    """Whose request it is.

    Attributes:
        user_name: for policies that name a user; empty: the account itself.
    """

    account_id: str
    user_name: str = ""

    @property
    def arn(self) -> str:
        """As policies name it."""
        return f"arn:aws:iam::{self.account_id}:{f'user/{self.user_name}' if self.user_name else 'root'}"
