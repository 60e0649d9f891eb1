"""Java properties as `java.util.Properties.load` reads them."""

from __future__ import annotations

import pytest

from contexture.errors import ConfigurationError
from contexture.importers.properties_file import JavaProperty, parse_properties


def pairs(text: str) -> list[tuple[str, str]]:
    return [(each.key, each.value) for each in parse_properties(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", [("a", "1")]),
        ("a = 1", [("a", "1")]),
        ("a:1", [("a", "1")]),
        ("a : = 1", [("a", "= 1")]),
        ("a 1 2", [("a", "1 2")]),
        ("a", [("a", "")]),
        ("a=", [("a", "")]),
        ("=1", [("", "1")]),
        ("  \t a=1 ", [("a", "1 ")]),
        ("# a=1\n! b=2\n  # c=3\n\n \nd=4", [("d", "4")]),
        ("a=# no comment", [("a", "# no comment")]),
        ("a=1\r\nb=2\rc=3", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("a=1,\\\n   2,\\\n\t3", [("a", "1,2,3")]),
        ("a\\\n  b=1", [("ab", "1")]),
        ("a=1\\\n# 2", [("a", "1# 2")]),
        ("a=1\\\\\nb=2", [("a", "1\\"), ("b", "2")]),
        ("a=1\\\\\\\nb", [("a", "1\\b")]),
        ("a=1\\", [("a", "1")]),
        ("a=\\\n", [("a", "")]),
        ("\\\n  # no key\nb=2", [("b", "2")]),
        ("\\\n\\\n\nb=2", [("b", "2")]),
        ("a=1\\\n\\\n  # 2", [("a", "1# 2")]),
        ("a=\\\n\nb=2", [("a", ""), ("b", "2")]),
        ("a\\=b\\:c\\ d=1", [("a=b:c d", "1")]),
        ('a=\\t\\n\\f\\r\\\\\\z\\"', [("a", '\t\n\f\r\\z"')]),
        ("a=\\u00e9\\uD83D\\uDE00", [("a", "é😀")]),
        ("a=\\ud800", [("a", "\ufffd")]),
        ("a=é", [("a", "é")]),
        ("a=1\na=2", [("a", "1"), ("a", "2")]),
        ("", []),
    ],
)
def test_keys_and_values(text: str, expected: list[tuple[str, str]]) -> None:
    assert pairs(text) == expected


def test_a_property_has_the_line_it_begins_on() -> None:
    assert parse_properties("# c\na=1\\\n2\n\nb=3") == [JavaProperty("a", "12", 2), JavaProperty("b", "3", 5)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=1\nb=\\uzzzz", "a=\\u"])
def test_a_wrong_escape_is_reported_with_its_line(text: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"line {text.count(chr(10)) + 1}: \\u is not followed by four"):
        parse_properties(text)
