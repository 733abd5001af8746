# SPDX-License-Identifier: Apache-2.0
"""Policies: documents that can be read completely, and the reasons for refusing others."""

import json

import pytest

from sqsqlite.contract.limits import SQS
from sqsqlite.contract.policy import check_policy, quota_exceeded, read_policy
from sqsqlite.errors import InvalidAttributeValue

ARN = "arn:aws:sqs:us-east-1:000000000000:q"
ALLOW = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": ARN}
PREFIX = "Invalid value for the parameter Policy. Reason: "


def document(*statements, **elements):
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements), **elements})


def statement(**elements):
    """ALLOW with other elements; one that is None is left out."""
    return {name: value for name, value in {**ALLOW, **elements}.items() if value is not None}


def reason(text):
    with pytest.raises(InvalidAttributeValue) as refused:
        check_policy(text, SQS)
    assert refused.value.message.startswith(PREFIX)
    return refused.value.message.removeprefix(PREFIX)


def test_a_statement_is_read_element_by_element():
    condition = {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:000000000000:topic"}}
    [read] = read_policy(document(statement(Sid="s", Effect="Deny", Condition=condition))).statements
    assert (read.sid, read.effect, read.resource, read.condition) == ("s", "Deny", ARN, condition)
    assert read.action_names == ["sqs:SendMessage"]


def test_one_statement_may_stand_without_a_list():
    assert read_policy(json.dumps({"Statement": ALLOW})).statements == read_policy(document(ALLOW)).statements


@pytest.mark.parametrize(
    ("principal", "names"),
    [
        ("*", [("AWS", "*")]),
        ({"AWS": "111122223333"}, [("AWS", "111122223333")]),
        (
            {"AWS": ["arn:aws:iam::111122223333:root", "arn:aws:iam::111122223333:user/jane"]},
            [("AWS", "arn:aws:iam::111122223333:root"), ("AWS", "arn:aws:iam::111122223333:user/jane")],
        ),
        ({"AWS": "AIDAJQABLZS4A3QDU576Q"}, [("AWS", "AIDAJQABLZS4A3QDU576Q")]),
        ({"Service": "sns.amazonaws.com", "AWS": "*"}, [("Service", "sns.amazonaws.com"), ("AWS", "*")]),
    ],
)
@pytest.mark.parametrize("element", ["Principal", "NotPrincipal"])
def test_principals_are_listed_by_kind(element, principal, names):
    [read] = read_policy(document(statement(**{"Principal": None, element: principal}))).statements
    assert read.principal_names == names


@pytest.mark.parametrize("element", ["Action", "NotAction"])
@pytest.mark.parametrize("action", ["*", "sqs:*", "SQS:SendMessage", "Sqs:Get*", ["sqs:?urgeQueue", "SQS:*"]])
def test_actions_have_wildcards_and_the_prefix_in_any_letter_case(element, action):
    [read] = read_policy(document(statement(**{"Action": None, element: action}))).statements
    assert read.action_names == (action if isinstance(action, list) else [action])


@pytest.mark.parametrize(
    "condition",
    [
        {"StringEquals": {"aws:SourceAccount": "111122223333"}},
        {
            "ForAllValues:StringLike": {"aws:PrincipalArn": ["a*", "b*"]},
            "Bool": {"aws:SecureTransport": True},
        },
        {"IpAddress": {"aws:SourceIp": ["203.0.113.0/24"]}, "NotIpAddress": {"aws:SourceIp": "203.0.113.7"}},
        {"DateGreaterThanEquals": {"aws:CurrentTime": "2009-01-31T12:00Z"}},
        {"NumericLessThanIfExists": {"aws:MultiFactorAuthAge": 3600}, "Null": {"aws:TokenIssueTime": "true"}},
        {"ArnLike": {"aws:SourceArn": "arn:aws:s3:*:*:bucket"}},
        {},
    ],
)
def test_conditions_of_every_kind_are_read(condition):
    [read] = read_policy(document(statement(Condition=condition))).statements
    assert read.condition == condition


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "{",
        "[]",
        '"x"',
        "null",
        "{}",
        '{"Statement":null}',
        '{"Statement":["x"]}',
        '{"Statement":[],"Version":"2"}',
        '{"Statement":[],"version":"2012-10-17"}',
        '{"Statement":[],"Id":1}',
        '{"Statement":[],"Id":"\ud800"}',
        '{"Statement":[],"Id":"\\ud800"}',
        "[" * 8_000,
        '{"Statement":' + "[" * 8_000,
    ],
)
def test_a_text_that_is_not_a_policy_is_refused(text):
    assert reason(text)


@pytest.mark.parametrize(
    ("elements", "why"),
    [
        ({"Effect": None}, "Effect"),
        ({"Effect": "allow"}, "Effect"),
        ({"Principal": None}, "either Principal or NotPrincipal"),
        ({"NotPrincipal": "*"}, "either Principal or NotPrincipal"),
        ({"Principal": {}}, "Principal"),
        ({"Principal": {"AWS": []}}, "Principal"),
        ({"Principal": {"aws": "*"}}, "aws is not a kind of principal"),
        ({"Principal": "111122223333x"}, "111122223333x is not a principal"),
        ({"Principal": {"AWS": "arn:aws:s3:::bucket"}}, "arn:aws:s3:::bucket is not a principal"),
        ({"Action": None}, "either Action or NotAction"),
        ({"NotAction": "*"}, "either Action or NotAction"),
        ({"Action": []}, "Action"),
        ({"Action": ""}, "Action"),
        ({"Action": "SendMessage"}, "SendMessage is not an action of SQS"),
        ({"Action": ["sqs:*", "s3:GetObject"]}, "s3:GetObject is not an action of SQS"),
        ({"Resource": 3}, "Resource"),
        ({"NotResource": "*"}, "both Resource and NotResource"),
        ({"Condition": {"Equals": {"a": "b"}}}, "Equals is not a condition operator"),
        ({"Condition": {"NullIfExists": {"a": "b"}}}, "NullIfExists is not a condition operator"),
        ({"Condition": {"Bool": "x"}}, "Condition"),
        ({"Condition": {"Bool": {"a": []}}}, "Condition"),
        ({"Condition": {"Bool": {"a": None}}}, "Condition"),
        ({"Principals": "*"}, "unknown field `Principals`"),
        ({"Sid": 1}, "Sid"),
    ],
)
def test_a_statement_that_cannot_be_read_whole_is_refused(elements, why):
    """The unread element could be the one that restricts a right."""
    assert why in reason(document(ALLOW, statement(**elements)))


def test_statements_have_sids_of_their_own_or_none():
    check_policy(document(ALLOW, ALLOW, statement(Sid=""), statement(Sid=""), statement(Sid="a")), SQS)
    assert reason(document(statement(Sid="a"), statement(Sid="a"))) == "Two statements have one Sid."


def accounts(count):
    return [f"{number:012}" for number in range(count)]


def conditions(count):
    return {"StringEquals": {f"aws:{number}": "x" for number in range(count)}}


def values(count):
    """The values of two conditions."""
    return {
        "IpAddress": {"aws:SourceIp": [f"10.0.0.{number}" for number in range(count - 1)]},
        "Bool": {"aws:SecureTransport": True},
    }


@pytest.mark.rule("permission.21")
@pytest.mark.parametrize(
    ("most", "one_more", "why"),
    [
        ([ALLOW] * 20, [ALLOW] * 21, "21 Statements were found, maximum allowed is 20."),
        (
            [statement(Principal={"AWS": accounts(25)})] * 2,
            [statement(Principal={"AWS": accounts(25)})] * 2 + [ALLOW],
            "51 Principals were found, maximum allowed is 50.",
        ),
        (
            [statement(Condition=conditions(5))] * 2,
            [statement(Condition=conditions(5)), statement(Condition=conditions(6))],
            "11 Conditions were found, maximum allowed is 10.",
        ),
        (
            [statement(Resource=[ARN] * 25), statement(Resource=None, NotResource=[ARN] * 25)],
            [statement(Resource=[ARN] * 50), statement(Resource=None, NotResource=ARN)],
            "51 Resources were found, maximum allowed is 50.",
        ),
        (
            [statement(Condition=values(60)), statement(Condition=values(40))],
            [statement(Condition=values(60)), statement(Condition=values(41))],
            "101 Condition values were found, maximum allowed is 100.",
        ),
        (
            [statement(Action=["sqs:*"] * 7)] * 2,
            [ALLOW, statement(Action=["sqs:*"] * 8)],
            "8 Actions were found, maximum allowed is 7.",
        ),
    ],
    ids=["statements", "principals", "conditions", "resources", "values", "actions"],
)
def test_a_policy_keeps_the_quotas(most, one_more, why):
    """The limit on actions is one of a statement, the others are of the whole document."""
    check_policy(document(*most), SQS)
    assert reason(document(*one_more)) == why


def test_a_policy_has_at_most_8192_bytes():
    def of(size):
        return document(Id="ö" * 10 + "x" * (size - len(document(Id="ö" * 10))))

    def in_utf8(text):
        return json.dumps(json.loads(text), ensure_ascii=False)

    largest = in_utf8(of(8_192 + 40))  # an escaped ö has 6 bytes, one in UTF-8 has 2
    assert len(largest.encode()) == 8_192
    check_policy(largest, SQS)
    assert reason(largest + " ") == "Must be at most 8192 bytes."


def test_quotas_are_those_of_the_limits_in_force():
    policy = read_policy(document(ALLOW, ALLOW))
    assert quota_exceeded(policy, SQS) is None
    fewer = SQS._replace(policy_statement_count=1)
    assert quota_exceeded(policy, fewer) == "2 Statements were found, maximum allowed is 1."
