"""Java's regular expressions: what is translated matches as in Java, the rest is refused by place."""

from __future__ import annotations

import pytest

from contexture.errors import ConfigurationError
from contexture.publications.cygnus_names.java_regex import compile_java, replacement


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"Room\.\d+", "Room.12", True),
        (r"\d", "\u0663", False),
        (r"\w+", "é", False),
        (r"(?<room>a+)-\k<room>", "aa-aa", True),
        (r"(?<room>a+)-\k<room>", "aa-a", False),
        (r"(a)\12", "aa2", True),
        (r"a++a", "aaa", False),
        (r"(?>a|ab)c", "abc", False),
        (r"\p{Alpha}+[\p{Digit}-]*", "abc1-2", True),
        (r"\P{Alpha}", "1", True),
        (r"[^\p{Punct}]", "]", False),
        (r"[^\p{Punct}]", "a", True),
        (r"\Qa.b[\E+", "a.b[[", True),
        (r"\Qa.b", "a.b", True),
        (r"\h\x{1F600}\x41\u00e9\0101", "\u00a0😀AéA", True),
        (r"[\v]", "\u2028", True),
        (r".", "\r", False),
        (r"(?s).", "\r", True),
        (r"(?is)CAR.", "car\n", True),
        (r"(?i:c)ar", "Car", True),
        (r".*(?<=a{1,2})b", "aab", True),
        (r"((?<=a)b+|a)+", "abb", True),
        (r"(?i)é", "É", False),
        (r".*(é\b.*)", "café au lait", True),
        (r".*f\b.*", "café", False),
        (r".*f\B.*", "café", True),
        (r"(?i:c)ar", "CAR", False),
        (r"a$\r\n", "a\r\n", True),
        (r"^car$", "car", True),
        (r"a\z", "a", True),
        (r"[a|b~&]+", "a|~&", True),
        (r"a]}", "a]}", True),
        (r"\cA\e\t", "\x01\x1b\t", True),
        (r"a{2,3}+", "aaa", True),
        (r"[\w-.]+", "a-b.c_1", True),
        (r"[\w-.]", "/", False),
        (r"[+--]+", "+,-", True),
        (r"[+--]", ".", False),
        (r"[--/]+", "-./", True),
        (r"[a-c-e]+", "b-e", True),
        (r"[a-c-e]", "d", False),
        (r"[-a]", "-", True),
        (r"[a-]", "-", True),
        (r"\B", "", True),
        (r"é\b", "é", True),
        (r"é\b1", "é1", False),
    ],
)
def test_a_translated_expression_matches_as_in_java(pattern: str, text: str, matches: bool) -> None:
    assert (compile_java(pattern).fullmatch(text) is not None) is matches


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("ab[a-z&&[^b]]", "the intersection '&&' at position 7"),
        ("[a[b]]", "the class in a class '[' at position 3"),
        (r"x\p{L}", r"'\p' at position 2"),
        (r"[\P{Alpha}]", r"'\P' in a class at position 2"),
        (r"a\G", r"'\G' at position 2"),
        (r"a\X", r"'\X' at position 2"),
        (r"\b{g}", r"'\b' at position 1"),
        ("(?m)a", "'(?m)' at position 1"),
        ("a(?i)b", "'(?i)' at position 2"),
        ("(?P<a>b)", "'(?P<' at position 1"),
        (r"(a)\2", r"\2 at position 4 refers to no group"),
        ("a{", "'{' at position 2 is no count"),
        ("[]a]", "']' at position 2 begins a class"),
        ("a[b", "'[' at position 2 is never closed"),
        (r"[!-\p{Alpha}]", "'-' at position 3 begins a range that ends with no character"),
        (r"[a-\d]", "'-' at position 3 begins a range"),
        ("[a--b]", "bad character range"),
        (r"\y", r"'\y' at position 1"),
        ("*a", "nothing to repeat"),
        ("(a", "missing )"),
        ("(?<=a+)b", "'+' at position 6 sets no largest length of a look-behind"),
        ("(?<!(?:a|b)*)c", "'*' at position 12 sets no largest length of a look-behind"),
        ("(?<=a{2,})b", "'{' at position 6 sets no largest length of a look-behind"),
    ],
)
def test_what_is_not_translated_is_shown_with_its_place(pattern: str, construct: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        compile_java(pattern)
    assert construct in caught.value.message


@pytest.mark.parametrize(
    ("pattern", "text", "name", "expanded"),
    [
        ("(.*)", "new_$1", "a", "new_a"),
        ("(a)(b)?", "$2-$1", "a", "-a"),
        ("(a)", "$12", "a", "a2"),
        ("(?<room>.+)", r"${room}\$\\", "a", "a$\\"),
        ("a", "$0$0", "a", "aa"),
    ],
)
def test_replacements_are_those_of_java(pattern: str, text: str, name: str, expanded: str) -> None:
    compiled = compile_java(pattern)
    match = compiled.fullmatch(name)
    assert match is not None
    assert replacement(text, compiled).expand(match) == expanded


@pytest.mark.parametrize(
    ("pattern", "name", "replaced"),
    [
        (".*", "a", "xx"),
        ("^(.*)", "a", "x"),
        (".+", "ab", "x"),
        ("a", "banana", "bxnxnx"),
        ("a*", "baac", "xbxxcx"),
        ("|b", "bb", "xbxbx"),
        ("a??", "aa", "xaxax"),
        ("(?<=a)", "ab", "axb"),
        ("z", "a", "a"),
        (".*", "", "x"),
    ],
)
def test_every_match_is_replaced_as_in_java(pattern: str, name: str, replaced: str) -> None:
    compiled = compile_java(pattern)
    assert replacement("x", compiled).everywhere(compiled, name) == replaced


@pytest.mark.parametrize("text", ["a$", "a\\", "$1", "${room}", "$x"])
def test_a_replacement_that_fails_in_java_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="the replacement"):
        replacement(text, compile_java("a"))


@pytest.mark.slow
def test_an_expression_that_does_not_end_is_given_up_with_the_way_out() -> None:
    with pytest.raises(ConfigurationError, match=r"'\(a\|aa\)\+b' did not end within 1 s on a text of 60 characters"):
        compile_java("(a|aa)+b").fullmatch("a" * 60)
