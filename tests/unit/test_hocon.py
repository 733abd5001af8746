# SPDX-License-Identifier: Apache-2.0
"""The reader of HOCON."""

import pytest

from sqsqlite.api.hocon import HoconError, read_hocon


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("{}", {}),
        ("\ufeff{ a = 1 } # end", {"a": "1"}),
        ('{"a": {"b": [1, true, "x"]}}', {"a": {"b": ["1", "true", "x"]}}),
        ("a { b = 1, c = 2\n d = 3 }", {"a": {"b": "1", "c": "2", "d": "3"}}),
        ("a.b.c = 1\na { b { d = 2 } }\na.b.c = 3", {"a": {"b": {"c": "3", "d": "2"}}}),
        ('"a.b" { } \n"a.b".c = 1', {"a.b": {"c": "1"}}),
        ("a = 1\na { b = 2 }", {"a": {"b": "2"}}),
        ("a = 10 seconds // ten\nb = 5s # five\nc=x/y", {"a": "10 seconds", "b": "5s", "c": "x/y"}),
        ("a =\n  // the value\n  1", {"a": "1"}),
        ('a = " b "   \nc = d "e f"  g', {"a": " b ", "c": "d e f  g"}),
        ('a = """x\n"y""""', {"a": 'x\n"y"'}),
        (r'a = "\u00fc\n\"" ', {"a": 'ü\n"'}),
        ("a = null, b { c = null }", {"b": {}}),
        ("a = 1\na = null\nb = ${a}0", {"a": "1", "b": "10"}),
        ("a { b = 2 }\nc = x${a.b}y", {"a": {"b": "2"}, "c": "x2y"}),
        ("a = ${?NOT_SET_ANYWHERE}, b = 1${?NOT_SET_ANYWHERE}", {"b": "1"}),
        ("a = 1\na = ${?NOT_SET_ANYWHERE}", {"a": "1"}),
        ("a = ${SET_IN_THE_TEST}", {"a": "from outside"}),
        ('include classpath("application.conf")\na = 1', {"a": "1"}),
        ('a { include required(classpath("x.conf")) // defaults\n}', {"a": {}}),
        ("included = 1, include = 2", {"included": "1", "include": "2"}),
    ],
)
def test_text_is_read(monkeypatch, text, expected):
    monkeypatch.setenv("SET_IN_THE_TEST", "from outside")
    assert read_hocon(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a {\n b {\n }\n", "line 1: this { has no }"),
        ("a = 1\nb = [1,\n", "line 2: this [ has no ]"),
        ("{ a = 1 }\n}", "line 2: there is more after the last }"),
        ("a = 1\n}", "line 2: a name is expected here"),
        ("a\nb = 1", "line 1: after a, one of = : { is allowed"),
        ("a b = 1", "line 1: after a, one of = : { is allowed"),
        ("a. = 1", "line 1: a name is expected here"),
        ("a += 1", "line 1: += is not read"),
        ("a = , b = 1", "line 1: a value is expected here"),
        ("a = b = 1", "line 1: this character is not allowed here"),
        ('a = "x" { }', "line 1: this character is not allowed here"),
        ('a = "x', "line 1: this character is not allowed here"),
        (r'a = "\x"', r'line 1: "\x": this text has an escape that JSON does not know'),
        ("a = ${nowhere.to.be.found}", "line 1: ${nowhere.to.be.found}: it is neither a value above nor"),
        ("a { }\nb = ${a}", "line 2: ${a}: it is neither a value above nor"),
        ('\ninclude "other.conf"', 'line 2: include "other.conf": no other file is read; put its lines here'),
        ('include url("http://localhost/x")', "no other file is read"),
        ('include required(file("x.conf"))', "no other file is read"),
        ("a { " * 20_000, "objects are nested too deeply"),
        ("a = [" + "[" * 20_000, "objects are nested too deeply"),
    ],
)
def test_a_bad_text_is_refused_with_its_line(text, reason):
    with pytest.raises(HoconError) as refused:
        read_hocon(text)
    assert reason in str(refused.value)
