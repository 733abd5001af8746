# SPDX-License-Identifier: Apache-2.0
"""The access policy of a queue: the JSON document of its Policy attribute, read and checked.

A document is kept as it was given, but only if all of it can be read: so a decision never meets an unknown
element. Source: IAM user guide, "Grammar of the IAM JSON policy language"; SQS developer guide, "Amazon SQS
policy quotas".
"""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from sqsqlite.contract.limits import Limits
from sqsqlite.errors import InvalidAttributeValue

# An account, an ARN of IAM or STS, or the unique id that stands for a user or role which is gone.
_is_aws_principal = re.compile(
    r"\*|[0-9]{12}|arn:[a-z-]+:(?:iam|sts)::[a-z0-9-]+:.+|A[A-Z0-9]{15,}"
).fullmatch
_is_action = re.compile(r"\*|sqs:[a-z*?]+", re.IGNORECASE | re.ASCII).fullmatch
_is_operator = re.compile(
    r"Null|(?:For(?:All|Any)Values?:)?(?:String(?:Not)?(?:Equals(?:IgnoreCase)?|Like)|"
    r"(?:Numeric|Date)(?:(?:Not)?Equals|(?:Less|Greater)Than(?:Equals)?)|Bool|BinaryEquals|(?:Not)?IpAddress|"
    r"Arn(?:Not)?(?:Equals|Like))(?:IfExists)?",
    re.IGNORECASE | re.ASCII,
).fullmatch

Text = Annotated[str, msgspec.Meta(min_length=1)]
Texts = Text | Annotated[list[Text], msgspec.Meta(min_length=1)]
"""One value or several, as the documents write them."""

Principals = Text | Annotated[dict[Text, Texts], msgspec.Meta(min_length=1)]
Scalar = str | bool | int | float
Conditions = dict[str, dict[Text, Scalar | Annotated[list[Scalar], msgspec.Meta(min_length=1)]]]


class Statement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="pascal"):
    """Who may, or may not, do what, and when: elements as the document has them.

    Attributes:
        sid: its name; AddPermission's label.
        principal: `*`, or names by kind (`AWS`, `Service`, `Federated`, `CanonicalUser`).
        action: `*`, or `SQS:` in any letter case and an action, with the wildcards `*` and `?`.
        resource: the queue that holds the document if left out.
        condition: values by key by operator.
        not_principal, not_action, not_resource: all but these, in place of the element.
    """

    sid: str | UnsetType = UNSET
    effect: Literal["Allow", "Deny"]
    principal: Principals | UnsetType = UNSET
    not_principal: Principals | UnsetType = UNSET
    action: Texts | UnsetType = UNSET
    not_action: Texts | UnsetType = UNSET
    resource: Texts | UnsetType = UNSET
    not_resource: Texts | UnsetType = UNSET
    condition: Conditions | UnsetType = UNSET

    @property
    def principal_names(self) -> list[tuple[str, str]]:
        """(kind, name) of each principal, of either element; `*` alone means every AWS one."""
        given = self.principal or self.not_principal or {}
        by_kind = {"AWS": given} if isinstance(given, str) else given
        return [(kind, name) for kind, names in by_kind.items() for name in listed(names)]

    @property
    def action_names(self) -> list[str]:
        """The actions, of either element."""
        return listed(self.action or self.not_action or [])


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="pascal"):
    """A document. `statement` may be one, or a list."""

    version: Literal["2008-10-17", "2012-10-17"] | UnsetType = UNSET
    id: str | UnsetType = UNSET
    statement: Statement | list[Statement]

    @property
    def statements(self) -> list[Statement]:
        """The statements, in the document's order."""
        return self.statement if isinstance(self.statement, list) else [self.statement]


_decoder = msgspec.json.Decoder(Policy)


def listed(value: str | list[str]) -> list[str]:
    """One value or several, as a list."""
    return [value] if isinstance(value, str) else value


def read_policy(text: str) -> Policy:
    """The document, whatever its size; see `quota_exceeded`.

    Raises:
        InvalidAttributeValue: it is not a policy: not JSON, an element that is missing, unknown or of another form,
            or two statements of one Sid.
    """
    try:
        policy = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _malformed(f"{error}.") from error
    for statement in policy.statements:
        _check(statement)
    sids = [statement.sid for statement in policy.statements if statement.sid]
    if len(set(sids)) < len(sids):
        raise _malformed("Two statements have one Sid.")
    return policy


def check_policy(text: str, limits: Limits) -> None:
    """Refuse what no queue takes as its Policy.

    Raises:
        InvalidAttributeValue: it is not a policy, or exceeds a quota.
    """
    # Before it is read: a text of any length may be given.
    if len(text.encode("utf-8", "surrogatepass")) > limits.policy_bytes:
        raise _malformed(f"Must be at most {limits.policy_bytes} bytes.")
    exceeded = quota_exceeded(read_policy(text), limits)
    if exceeded is not None:
        raise _malformed(exceeded)


def quota_exceeded(policy: Policy, limits: Limits) -> str | None:
    """The sentence about the first quota that the policy exceeds; None: it keeps them all."""
    statements = policy.statements
    principals = sum(len(one.principal_names) for one in statements)
    resources = sum(len(listed(one.resource or one.not_resource or [])) for one in statements)
    wanted = [
        values for one in statements for keys in (one.condition or {}).values() for values in keys.values()
    ]
    values = sum(len(one) if isinstance(one, list) else 1 for one in wanted)
    actions = max((len(one.action_names) for one in statements), default=0)
    counts = (
        ("Statements", len(statements), limits.policy_statement_count),
        ("Principals", principals, limits.policy_principal_count),
        ("Resources", resources, limits.policy_resource_count),
        ("Conditions", len(wanted), limits.policy_condition_count),
        ("Condition values", values, limits.policy_value_count),
        ("Actions", actions, limits.policy_action_count),
    )
    for name, count, most in counts:
        if count > most:
            return f"{count} {name} were found, maximum allowed is {most}."
    return None


def _check(statement: Statement) -> None:
    """What the types of a statement's elements leave open."""
    if (statement.principal is UNSET) == (statement.not_principal is UNSET):
        raise _malformed("A statement must have either Principal or NotPrincipal.")
    if (statement.action is UNSET) == (statement.not_action is UNSET):
        raise _malformed("A statement must have either Action or NotAction.")
    if statement.resource is not UNSET and statement.not_resource is not UNSET:
        raise _malformed("A statement can't have both Resource and NotResource.")
    for kind, name in statement.principal_names:
        if kind not in ("AWS", "Service", "Federated", "CanonicalUser"):
            raise _malformed(f"{kind} is not a kind of principal.")
        if kind == "AWS" and not _is_aws_principal(name):
            raise _malformed(f"{name} is not a principal.")
    for action in statement.action_names:
        if not _is_action(action):
            raise _malformed(f"{action} is not an action of SQS.")
    for operator in statement.condition or ():
        if not _is_operator(operator):
            raise _malformed(f"{operator} is not a condition operator.")


def _malformed(reason: str) -> InvalidAttributeValue:
    return InvalidAttributeValue(f"Invalid value for the parameter Policy. Reason: {reason}")
