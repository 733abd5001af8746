# SPDX-License-Identifier: Apache-2.0
"""Conditions of policies: which are true, which are false, and which are unknown."""

import pytest

from sqsqlite.access.conditions import Wildcards, all_of, compiled
from sqsqlite.access.conditions import holds as all_hold

CONTEXT = {
    "aws:currenttime": "2030-06-15T12:00:00+00:00",
    "aws:epochtime": "1907755200",
    "aws:principalaccount": "111122223333",
    "aws:principalarn": "arn:aws:iam::111122223333:user/worker",
    "aws:securetransport": "false",
    "aws:sourceip": "10.1.2.3",
}


def holds(conditions, context):
    return all_hold(compiled(conditions), context)


@pytest.mark.parametrize(
    ("operator", "key", "wanted", "expected"),
    [
        ("StringEquals", "aws:PrincipalAccount", "111122223333", True),
        ("StringEquals", "aws:PrincipalAccount", ["1", "111122223333"], True),
        ("StringEquals", "aws:PrincipalAccount", "1111", False),
        ("StringEquals", "aws:PrincipalArn", "ARN:AWS:IAM::111122223333:USER/WORKER", False),
        ("StringEqualsIgnoreCase", "aws:PrincipalArn", "ARN:AWS:IAM::111122223333:USER/WORKER", True),
        ("StringNotEquals", "aws:PrincipalAccount", "111122223333", False),
        ("StringNotEquals", "aws:PrincipalAccount", ["1", "2"], True),
        ("StringNotEquals", "aws:PrincipalAccount", ["1", "111122223333"], False),
        ("StringNotEqualsIgnoreCase", "aws:PrincipalAccount", "1", True),
        ("StringLike", "aws:PrincipalArn", "*:user/w?rker", True),
        ("StringLike", "aws:PrincipalArn", "*:user/w?", False),
        ("StringNotLike", "aws:PrincipalArn", "*:user/w*", False),
        ("stringlike", "AWS:PRINCIPALARN", "*", True),
        ("ArnLike", "aws:PrincipalArn", "arn:aws:iam::*:user/*", True),
        ("ArnLike", "aws:PrincipalArn", "arn:*:user/worker", None),
        ("ArnEquals", "aws:PrincipalArn", "arn:aws:iam::111122223333:user/worker", True),
        ("ArnNotEquals", "aws:PrincipalArn", "arn:aws:iam::111122223333:root", True),
        ("ArnNotLike", "aws:PrincipalArn", "arn:aws:iam::1111*:*", False),
        ("Bool", "aws:SecureTransport", "false", True),
        ("Bool", "aws:SecureTransport", True, False),
        ("Bool", "aws:SecureTransport", "yes", None),
        ("IpAddress", "aws:SourceIp", "10.1.0.0/16", True),
        ("IpAddress", "aws:SourceIp", ["192.0.2.0/24", "10.1.2.3"], True),
        ("IpAddress", "aws:SourceIp", "2001:db8::/32", False),
        ("IpAddress", "aws:SourceIp", "somewhere", None),
        ("IpAddress", "aws:SourceIp", ["10.1.0.0/16", "somewhere"], None),
        ("NotIpAddress", "aws:SourceIp", "10.1.0.0/16", False),
        ("NotIpAddress", "aws:SourceIp", "192.0.2.0/24", True),
        ("DateLessThan", "aws:CurrentTime", "2030-06-15T12:00:01Z", True),
        ("DateLessThan", "aws:CurrentTime", "2030-06-15T12:00:00Z", False),
        ("DateLessThanEquals", "aws:CurrentTime", "2030-06-15T12:00:00Z", True),
        ("DateGreaterThan", "aws:CurrentTime", "2030-06-15T13:00:00+02:00", True),
        ("DateGreaterThan", "aws:CurrentTime", "1907755199", True),
        ("DateGreaterThanEquals", "aws:EpochTime", "2030-06-15", True),
        ("DateEquals", "aws:CurrentTime", 1907755200, True),
        ("DateNotEquals", "aws:CurrentTime", 1907755200, False),
        ("DateLessThan", "aws:CurrentTime", "tomorrow", None),
        ("NumericLessThan", "aws:EpochTime", 1907755201, True),
        ("NumericGreaterThanEquals", "aws:EpochTime", "1907755200.5", False),
        ("NumericNotEquals", "aws:EpochTime", "1907755200", False),
        ("NumericEquals", "aws:EpochTime", "nan", None),
        ("NumericEquals", "aws:PrincipalArn", "1", None),
        ("BinaryEquals", "aws:PrincipalAccount", "MTE=", None),
        ("Null", "aws:SourceIp", "false", True),
        ("Null", "aws:SourceIp", "true", False),
        ("Null", "aws:SourceArn", True, True),
        ("ForAnyValue:StringEquals", "aws:PrincipalAccount", "111122223333", True),
        ("ForAllValues:StringEquals", "aws:PrincipalAccount", "1", False),
    ],
)
def test_condition(operator, key, wanted, expected):
    assert holds({operator: {key: wanted}}, CONTEXT) is expected


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("StringEquals", False),
        ("ArnLike", False),
        ("StringNotEquals", True),
        ("ArnNotLike", True),
        ("StringEqualsIfExists", True),
        ("ForAllValues:StringEquals", True),
        ("ForAnyValue:StringEquals", False),
        ("ForAnyValue:StringNotEquals", False),
    ],
)
@pytest.mark.parametrize("key", ["aws:SourceArn", "aws:SourceAccount", "aws:username"])
def test_condition_on_a_key_that_the_request_lacks(operator, key, expected):
    assert holds({operator: {key: "arn:aws:sns:us-east-1:111122223333:topic"}}, CONTEXT) is expected


@pytest.mark.parametrize("operator", ["StringEquals", "StringNotEquals", "StringEqualsIfExists", "Null"])
def test_condition_on_an_unknown_key_is_undecided(operator):
    assert holds({operator: {"aws:PrincipalOrgID": "o-1"}}, CONTEXT) is None


def test_condition_with_a_variable_is_undecided():
    assert holds({"StringEquals": {"aws:PrincipalAccount": ["${aws:username}"]}}, CONTEXT) is None


def test_all_conditions_must_hold():
    account = {"aws:PrincipalAccount": "111122223333"}
    assert holds({}, CONTEXT) is True
    assert holds({"StringEquals": {**account, "aws:SourceIp": "10.1.2.3"}, "Bool": {}}, CONTEXT) is True
    assert holds({"StringEquals": account, "IpAddress": {"aws:SourceIp": "192.0.2.1"}}, CONTEXT) is False
    assert holds({"StringEquals": {"x": "y"}, "IpAddress": {"aws:SourceIp": "192.0.2.1"}}, CONTEXT) is False


def test_ipv4_mapped_ipv6_address_counts_as_its_ipv4_address():
    context = {**CONTEXT, "aws:sourceip": "::ffff:10.1.2.3"}
    assert holds({"IpAddress": {"aws:SourceIp": "10.1.0.0/16"}}, context) is True


@pytest.mark.parametrize(
    ("parts", "expected"),
    [([], True), ([True, None], None), ([None, False], False), ([False, None], False), ([True, True], True)],
)
def test_a_false_condition_outweighs_an_undecided_one(parts, expected):
    assert all_of(parts) is expected


# --- wildcards


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("*", "anything\nat all", True),
        ("a*", "abc", True),
        ("*c", "abc", True),
        ("a*c", "ac", True),
        ("a*c", "abcd", False),
        ("ab*bc", "abc", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("*b?d*", "abcdbxde", True),
        ("**a**", "bab", True),
        ("a*b*c*d", "a1b2c3d", True),
        ("a*b*c*d", "a1c2b3d", False),
        ("*aab", "aaab", True),
        ("a.c", "abc", False),
        ("[a]*", "[a]b", True),
    ],
)
def test_wildcards(pattern, text, expected):
    assert bool(Wildcards([pattern]).matching(text)) is expected


def test_hostile_pattern_is_matched_quickly():
    """A matcher that backtracks would exceed the test's time limit."""
    assert not Wildcards(["*a" * 4_000 + "b"]).matching("a" * 10_000)
    assert not Wildcards(["*?a" * 2_000 + "b"]).matching("a" * 10_000)
