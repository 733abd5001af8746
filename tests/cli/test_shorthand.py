# SPDX-License-Identifier: Apache-2.0
"""The AWS CLI's shorthand, beyond the recorded lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqsqlite.cli.shorthand import ShorthandError, parse_shorthand

NAMES = st.from_regex(r"[A-Za-z0-9_.#/:-]{1,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(st.dictionaries(NAMES, TEXTS, min_size=1, max_size=4))
def test_quoted_texts_of_any_characters_are_read_back(pairs):
    assert parse_shorthand(",".join(f"{name}={quoted(text)}" for name, text in pairs.items())) == pairs


@given(st.dictionaries(NAMES, st.lists(TEXTS, max_size=3), min_size=1, max_size=3))
def test_lists_in_brackets_are_read_back(pairs):
    text = ",".join(f"{name}=[{','.join(map(quoted, items))}]" for name, items in pairs.items())
    assert parse_shorthand(text) == pairs


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, TEXTS, max_size=3), min_size=1, max_size=3))
def test_structures_in_braces_are_read_back(pairs):
    text = ",".join(
        f"{name}={{{','.join(f'{inner}={quoted(value)}' for inner, value in items.items())}}}"
        for name, items in pairs.items()
    )
    assert parse_shorthand(text) == pairs


@given(st.text(max_size=30))
def test_any_other_text_is_read_or_refused_without_a_crash(text):
    try:
        found = parse_shorthand(text) if "@" not in text else {}
    except ShorthandError as error:
        assert "expected" in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert isinstance(found, dict)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "a name"),
        ("a", "'='"),
        ("a b=c", "'='"),
        ("a=b,a=c", "a name other than a, which was given before"),
        ("a=[b", "a comma or ']'"),
        ("a={b=c", "a comma"),
        ("a='b", "text between ' and '"),
        ("a=b,", "a value"),
        ("a=b,,c", "a value"),
    ],
)
def test_error_points_at_the_place_of_a_mistake(text, wanted):
    with pytest.raises(ShorthandError) as refused:
        parse_shorthand(text)
    assert f"expected {wanted}" in str(refused.value)
    assert str(refused.value).splitlines()[-1].strip() == "^"


def test_a_comma_before_a_closing_bracket_is_ignored():
    assert parse_shorthand("a=[b,],c={d=e,}") == {"a": ["b"], "c": {"d": "e"}}


def test_a_word_may_hold_brackets_and_equals_signs():
    assert parse_shorthand("a=b[1]=c}d,e={f=g=h}") == {"a": "b[1]=c}d", "e": {"f": "g=h"}}


def test_a_value_can_come_from_a_file(tmp_path):
    (tmp_path / "body.txt").write_text("a, b=c\n")
    assert parse_shorthand(f"Id=1,MessageBody@=file://{tmp_path}/body.txt") == {
        "Id": "1",
        "MessageBody": "a, b=c\n",
    }
    assert parse_shorthand(f"V@=fileb://{tmp_path}/body.txt") == {"V": b"a, b=c\n"}
    with pytest.raises(FileNotFoundError):
        parse_shorthand(f"V@=file://{tmp_path}/none")
