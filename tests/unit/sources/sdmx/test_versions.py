"""The order of versions, and what patterns of versions stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.sources.sdmx.versions import Version, VersionPattern, version_key

ORDERED = [
    "final",
    "0.9.9",
    "1",
    "1.0",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-draft",
    "1.0.0-draft.1",
    "1.0.0",
    "1.0.0.1",
    "1.9",
    "1.10",
    "2.0.0",
    "10.0",
]
HELD = [
    "1",
    "1.0",
    "1.4",
    "2.0",
    "0.9.0",
    "1.0.0",
    "1.2.7",
    "2.3.0",
    "2.3.1-draft",
    "2.3.1",
    "2.3.4",
    "2.4.0-draft",
    "3.1.0",
]
NUMBERS = st.integers(0, 12)
SEMANTIC = st.builds("{}.{}.{}{}".format, NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["", "-draft", "-rc.1", "-7"]))
VERSIONS = SEMANTIC | st.builds("{}.{}".format, NUMBERS, NUMBERS) | st.builds(str, NUMBERS)


def test_versions_are_sorted_by_precedence():
    assert sorted(set(ORDERED), key=version_key) == ORDERED


def test_a_zero_before_a_number_says_nothing():
    assert Version.parse("1.03") == Version.parse("1.3")
    assert VersionPattern.parse("1.3").covers("1.03")


@pytest.mark.parametrize(
    ("text", "stable"), [("1.0.0", True), ("0.1.0", True), ("1.0.0-draft", False), ("1.0", False), ("1", False)]
)
def test_only_whole_semantic_versions_are_stable(text, stable):
    assert Version.parse(text).is_stable is stable


@pytest.mark.parametrize(
    "text", ["", "final", "1.", ".1", "1.0-draft", "1.0.0-", "1.0.0-a..b", "1+", "1 .0", "9" * 5000]
)
def test_what_is_not_made_of_numbers_has_no_order(text):
    with pytest.raises(ValueError, match="is not a version"):
        Version.parse(text)


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("1.0", ["1.0"]),
        ("2.3.1-draft", ["2.3.1-draft"]),
        ("9.9", []),
        ("*", HELD),
        ("*.0", ["1.0", "1.4", "2.0"]),
        ("0*.0", ["1.0", "1.4", "2.0"]),
        ("*.0.0", ["0.9.0", "1.0.0", "1.2.7", "2.3.0", "2.3.1-draft", "2.3.1", "2.3.4", "2.4.0-draft", "3.1.0"]),
        ("1.*", ["1.0", "1.4"]),
        ("1.1*", ["1.4"]),
        ("2.*.0", ["2.3.0", "2.3.1-draft", "2.3.1", "2.3.4", "2.4.0-draft"]),
        ("2.3.1*", ["2.3.1-draft", "2.3.1", "2.3.4"]),
        ("2*.4.0", ["2.4.0-draft", "3.1.0"]),
        ("~", ["3.1.0"]),
        ("~.0", ["2.0"]),
        ("1.~", ["1.4"]),
        ("2.~.0", ["2.4.0-draft"]),
        ("2.3~.1", ["2.4.0-draft"]),
        ("2.3.~", ["2.3.4"]),
        ("+", ["3.1.0"]),
        ("+.0.0", ["3.1.0"]),
        ("0.9.0+", ["0.9.0"]),
        ("2+.3.1", ["3.1.0"]),
        ("2.3+.1", ["2.3.4"]),
        ("2.3.1+", ["2.3.4"]),
        ("2.3.5+", []),
        ("1.0+", ["1.4"]),
        ("2.0+", ["2.3.4"]),
    ],
)
def test_a_pattern_chooses_among_the_versions_of_an_artefact(pattern, chosen):
    assert list(VersionPattern.parse(pattern).select(HELD)) == chosen


def test_unstable_and_older_versions_are_no_latest_stable_one():
    assert VersionPattern.parse("+").select(["0.9.0", "1.0", "2.0.0-draft"]) == ()
    assert VersionPattern.parse("~").select(["0.9.0", "1.0", "2.0.0-draft"]) == ("2.0.0-draft",)


def test_versions_below_1_are_the_latest_stable_ones_only_where_the_0_is_written():
    assert VersionPattern.parse("+").select(["0.9.0"]) == ()
    assert VersionPattern.parse("+.0.0").select(["0.9.0"]) == ()
    assert VersionPattern.parse("0+.0.0").select(["0.9.0"]) == ("0.9.0",)


def test_a_version_without_numbers_is_itself_only():
    assert VersionPattern.parse("final").select(["1.0", "final"]) == ("final",)
    assert VersionPattern.parse("~").select(["1.0", "final"]) == ("1.0",)
    assert VersionPattern.parse("*.0").select(["final"]) == ()


@pytest.mark.parametrize(
    "text", ["", "1+", "1*", "2+.3+.1", "1.2.3.4+", "2.3+.1-draft", "*.3", "1.+.2", "1.x*", "+~", "a b"]
)
def test_what_is_no_pattern_is_refused(text):
    with pytest.raises(ValueError, match=": write "):
        VersionPattern.parse(text)


@given(st.lists(VERSIONS, unique=True), NUMBERS, NUMBERS, NUMBERS, st.integers(0, 2))
def test_the_latest_of_a_range_is_in_it_and_none_of_it_is_later(held, major, minor, patch, place):
    def pattern(operator: str) -> VersionPattern:
        parts = [str(major), str(minor), str(patch)]
        parts[place] += operator
        return VersionPattern.parse(".".join(parts))

    in_range = pattern("*").select(held)
    latest = pattern("~").select(held)
    assert latest == tuple(sorted(in_range, key=version_key)[-1:])
    stable = tuple(version for version in in_range if Version.parse(version).is_stable)
    assert pattern("+").select(held) == tuple(sorted(stable, key=version_key)[-1:])


@given(st.lists(VERSIONS), st.randoms())
def test_the_order_of_versions_is_one_whatever_order_they_come_in(versions, random):
    shuffled = random.sample(versions, len(versions))
    assert sorted(versions, key=version_key) == sorted(shuffled, key=version_key)
