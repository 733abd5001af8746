# SPDX-License-Identifier: Apache-2.0
"""A queue's Policy, compiled: what it says to a request."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from sqsqlite.access.conditions import Wildcards, all_of, compiled, holds
from sqsqlite.contract.policy import Policy, Statement, listed, read_policy
from sqsqlite.errors import InvalidAttributeValue

if TYPE_CHECKING:
    from sqsqlite.access.exchange import Identity

_match_aws_arn = re.compile(
    r"arn:[a-z-]+:(?P<service>iam|sts)::(?P<account>[0-9]{12}):(?P<rest>.+)"
).fullmatch
_is_user = re.compile(r"user/[A-Za-z0-9_+=,.@-]+").fullmatch
_set_region = re.compile(r"^(arn:[^:]*:[^:]*:)[^:]*(:[^:]*:)").sub
# In place of a name: a role or another principal of the account, which cannot be compared with the caller here.
_UNTOLD = ""


@lru_cache(maxsize=256)
def rules_of(text: str, arn: str) -> "Rules | None":
    """A queue's rules.

    Args:
        text: its Policy.
        arn: the queue's own.

    Returns:
        None: the text can't be read. Nothing is kept under Policy that can't be; a file of another version may hold
        some.
    """
    try:
        return Rules(read_policy(text), arn)
    except InvalidAttributeValue:
        return None


class Rules:
    """A policy as the queue of this ARN has it."""

    def __init__(self, policy: Policy, arn: str) -> None:
        self._rules = [_Rule(statement, arn) for statement in policy.statements]

    def decide(self, identity: "Identity", action: str, context: Mapping[str, str]) -> bool | None:
        """False: denied. True: allowed. None: the policy says nothing of it.

        Args:
            action: without `sqs:`. A batch is what its single action is; a Deny may name the batch itself as well.
            context: values by key in lower case.
        """
        is_allowed = None
        for rule in self._rules:
            applies = rule.applies(identity, action, context)
            if rule.is_deny:
                if applies is not False:
                    return False
            elif applies:
                is_allowed = True
        return is_allowed


def single(action: str) -> str:
    """The action that a batch is many of, or the action itself."""
    return action.removesuffix("Batch")


class _Rule:
    """A statement."""

    def __init__(self, statement: Statement, arn: str) -> None:
        self.is_deny = statement.effect == "Deny"
        self._is_of_this_queue = _is_of(statement, arn)
        self._principals = _Principals(name for kind, name in statement.principal_names if kind == "AWS")
        self._is_all_but_principals = bool(statement.not_principal)
        self._actions = Wildcards(name.lower() for name in statement.action_names)
        self._is_all_but_actions = bool(statement.not_action)
        self._conditions = compiled(statement.condition or {})

    def applies(self, identity: "Identity", action: str, context: Mapping[str, str]) -> bool | None:
        """Whether it is about this request; None: unknown."""
        return all_of(self._tests(identity, action, context))

    def _tests(self, identity: "Identity", action: str, context: Mapping[str, str]) -> Iterator[bool | None]:
        yield self._is_of_this_queue
        yield self._is_about(identity)
        yield self._is_about_action(action)
        yield holds(self._conditions, context)

    def _is_about(self, identity: "Identity") -> bool | None:
        found = self._principals.include(identity)
        if self._is_all_but_principals:
            # IAM knows it with Deny alone.
            return self.is_deny and (None if found is None else not found)
        return found

    def _is_about_action(self, action: str) -> bool:
        found = self._names(single(action))
        if self._is_all_but_actions:
            return not found
        return found or (self.is_deny and self._names(action))

    def _names(self, action: str) -> bool:
        return bool(self._actions.matching(f"sqs:{action.lower()}"))


class _Principals:
    """The AWS principals of a statement, by account."""

    def __init__(self, names: Iterable[str]) -> None:
        self._are_all = False
        self._of_accounts: dict[str, set[str]] = {}
        for name in names:
            match = _match_aws_arn(name)
            if match is not None:
                is_told = match["service"] == "iam" and (match["rest"] == "root" or _is_user(match["rest"]))
                self._of_accounts.setdefault(match["account"], set()).add(
                    match["rest"] if is_told else _UNTOLD
                )
            elif name == "*":
                self._are_all = True
            else:
                self._of_accounts.setdefault(name, set()).add("root")

    def include(self, identity: "Identity") -> bool | None:
        """None: unknown."""
        if self._are_all:
            return True
        names = self._of_accounts.get(identity.account_id, set())
        if "root" in names or f"user/{identity.user_name}" in names:
            return True
        return None if _UNTOLD in names else False


def _is_of(statement: Statement, arn: str) -> bool | None:
    """Whether a statement's Resource is the queue; None: it has a variable of IAM's, which is not filled in here."""
    if statement.resource:
        return _any_matches(statement.resource, arn)
    if statement.not_resource:
        found = _any_matches(statement.not_resource, arn)
        return None if found is None else not found
    return True


def _any_matches(resource: str | list[str], arn: str) -> bool | None:
    """Whatever region the patterns have: a file has one, and may be served as another's."""
    region = arn.split(":", 4)[3]
    patterns = [_set_region(rf"\g<1>{region}\g<2>", pattern) for pattern in listed(resource)]
    if Wildcards(patterns).matching(arn):
        return True
    return None if any("${" in pattern for pattern in patterns) else False
