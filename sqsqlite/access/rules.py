# SPDX-License-Identifier: Apache-2.0
"""A queue's Policy, compiled once to decide on many requests."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from sqsqlite.access.conditions import Wildcards, all_of, compiled, holds
from sqsqlite.access.exchange import Identity
from sqsqlite.contract.policy import Policy, Statement, listed, read_policy
from sqsqlite.errors import InvalidAttributeValue

_match_aws_arn = re.compile(
    r"arn:[a-z-]+:(?P<service>iam|sts)::(?P<account>[0-9]{12}):(?P<rest>.+)"
).fullmatch
_is_user = re.compile(r"user/[A-Za-z0-9_+=,.@-]+").fullmatch
_set_region = re.compile(r"^(arn:[^:]*:[^:]*:)[^:]*(:[^:]*:)").sub
# Stands for a role, or for another name of an account that can't be compared with the caller.
_UNKNOWN = ""


@lru_cache(maxsize=256)
def rules_of(text: str, arn: str) -> "Rules | None":
    """Compile a queue's Policy.

    Args:
        text: the Policy.
        arn: the queue's.

    Returns:
        None: the text can't be read. Only a file of another version can hold such a text.
    """
    try:
        return Rules(read_policy(text), arn)
    except InvalidAttributeValue:
        return None


class Rules:
    """A policy, compiled for the queue of this ARN."""

    def __init__(self, policy: Policy, arn: str) -> None:
        self._rules = [_Rule(statement, arn) for statement in policy.statements]

    def decide(self, identity: Identity, action: str, context: Mapping[str, str]) -> bool | None:
        """Return False if the policy denies the request, True if it allows it, None if no statement applies.

        Args:
            action: without `sqs:`. A batch counts as its single action; a Deny may also name the batch itself.
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
    """Return the single action of a batch, or the action itself."""
    return action.removesuffix("Batch")


class _Rule:
    """A statement, compiled."""

    def __init__(self, statement: Statement, arn: str) -> None:
        self.is_deny = statement.effect == "Deny"
        self._is_of_this_queue = _is_of(statement, arn)
        self._principals = _Principals(name for kind, name in statement.principal_names if kind == "AWS")
        self._is_all_but_principals = bool(statement.not_principal)
        self._actions = Wildcards(name.lower() for name in statement.action_names)
        self._is_all_but_actions = bool(statement.not_action)
        self._conditions = compiled(statement.condition or {})

    def applies(self, identity: Identity, action: str, context: Mapping[str, str]) -> bool | None:
        """Return whether the statement covers this request; None: unknown."""
        return all_of(self._tests(identity, action, context))

    def _tests(self, identity: Identity, action: str, context: Mapping[str, str]) -> Iterator[bool | None]:
        yield self._is_of_this_queue
        yield self._is_about(identity)
        yield self._is_about_action(action)
        yield holds(self._conditions, context)

    def _is_about(self, identity: Identity) -> bool | None:
        found = self._principals.include(identity)
        if self._is_all_but_principals:
            # IAM allows NotPrincipal with Deny alone.
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
                rest = match["rest"]
                is_known = match["service"] == "iam" and (rest == "root" or _is_user(rest))
                self._of_accounts.setdefault(match["account"], set()).add(rest if is_known else _UNKNOWN)
            elif name == "*":
                self._are_all = True
            else:
                self._of_accounts.setdefault(name, set()).add("root")

    def include(self, identity: Identity) -> bool | None:
        """Return whether the principals include the caller; None: unknown."""
        if self._are_all:
            return True
        names = self._of_accounts.get(identity.account_id, set())
        if "root" in names or f"user/{identity.user_name}" in names:
            return True
        return None if _UNKNOWN in names else False


def _is_of(statement: Statement, arn: str) -> bool | None:
    """Return whether a statement's Resource is the queue; None: unknown, as it has a variable of IAM."""
    if statement.resource:
        return _any_matches(statement.resource, arn)
    if statement.not_resource:
        found = _any_matches(statement.not_resource, arn)
        return None if found is None else not found
    return True


def _any_matches(resource: str | list[str], arn: str) -> bool | None:
    """Compare resources with the queue's ARN, ignoring their region: the same file may be served for another."""
    region = arn.split(":", 4)[3]
    patterns = [_set_region(rf"\g<1>{region}\g<2>", pattern) for pattern in listed(resource)]
    if Wildcards(patterns).matching(arn):
        return True
    return None if any("${" in pattern for pattern in patterns) else False
