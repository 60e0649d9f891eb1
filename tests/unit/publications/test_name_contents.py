"""Grouping rules and name mappings travel in the publication."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contexture.errors import ConfigurationError
from contexture.publications import Publication, PublicationError, fingerprint, load_publication_file, parse_publication
from contexture.publications.cygnus_names import GroupingRules, NameMappings

RULES = (
    '{"grouping_rules": [{"id": 1, "fields": ["entityId"], "regex": "%s", "destination": "d", '
    '"fiware_service_path": "/"}]}'
)
PUBLICATION = """
name: hotel
source: {kind: ngsi, connection: broker, service: hotel}
topics: {enable_grouping: true, grouping_rules: rules.json%s}
"""


def load(folder: Path, rules: str, more: str = "") -> Publication:
    (folder / "rules.json").write_text(rules)
    path = folder / "hotel.yaml"
    path.write_text(PUBLICATION % more)
    return load_publication_file(path)


def test_the_contents_are_read_beside_the_publication_and_survive_json(tmp_path: Path) -> None:
    publication = load(tmp_path, "# comment\n" + RULES % "a")
    assert publication.topics.grouping_rules_content == (
        '{"grouping_rules":[{"id":1,"fields":["entityId"],"regex":"a","destination":"d","fiware_service_path":"/"}]}'
    )
    assert Publication.model_validate_json(publication.model_dump_json()) == publication


def test_the_contents_count_for_the_fingerprint_and_comments_do_not(tmp_path: Path) -> None:
    first = fingerprint(load(tmp_path, RULES % "a"))
    assert fingerprint(load(tmp_path, "# comment\n\n" + RULES % "a")) == first
    assert fingerprint(load(tmp_path, RULES % "b")) != first


@pytest.mark.parametrize(
    ("rules", "more", "message"),
    [
        (RULES % "[a&&b]", "", "the intersection '&&' at position 3"),
        ("{", "", "the file is not JSON"),
        (RULES % "a", ", grouping_rules_content: x", "unknown key `grouping_rules_content`"),
        (RULES % "a", ", name_mappings: n.json", "`name_mappings` has no effect"),
        (RULES % "a", ", enable_name_mappings: true, name_mappings: n.json", "n.json cannot be read"),
        (RULES % "a", ", enable_name_mappings: true", "`enable_name_mappings: true` needs a file"),
    ],
)
def test_what_is_wrong_is_an_error_of_the_publication(tmp_path: Path, rules: str, more: str, message: str) -> None:
    with pytest.raises(PublicationError) as caught:
        load(tmp_path, rules, more)
    assert message in str(caught.value)


def test_a_byte_order_mark_and_windows_line_ends_do_not_count(tmp_path: Path) -> None:
    plain = fingerprint(load(tmp_path, RULES % "a"))
    (tmp_path / "rules.json").write_bytes(b"\xef\xbb\xbf# comment\r\n" + (RULES % "a").encode() + b"\r\n")
    assert fingerprint(load_publication_file(tmp_path / "hotel.yaml")) == plain


def test_ends_of_lines_that_json_does_not_know_stay_in_texts() -> None:
    rules = GroupingRules.from_json(RULES % "a|\u2028#b|\u0085#c")
    assert rules.rules[0].regex.fullmatch("\u2028#b") is not None


@pytest.mark.parametrize(
    ("text", "place", "correction"),
    [
        (
            '# rules\n\n{"grouping_rules": [\n  {"id": 1},\n]}',
            "line 4, column 12",
            "remove the comma before the closing",
        ),
        ('{"grouping_rules": [\n],\n}', "line 2, column 2", "remove the comma before the closing bracket"),
        ('{"grouping_rules": [ // none\n]}', "line 1, column 22", "a line of its own that begins with #"),
        ('{"grouping_rules": [] # none\n}', "line 1, column 23", "a line of its own that begins with #"),
        ("{'grouping_rules': []}", "line 1, column 2", "names and texts in double quotes"),
        ("", "line 1, column 1", "names and texts in double quotes"),
        (r'{"grouping_rules": ["a\.b"]}', "line 1, column 23", r"write \\ for each backslash of an expression"),
    ],
)
def test_what_is_no_json_is_reported_with_its_place_in_the_file(text: str, place: str, correction: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        GroupingRules.from_json(text)
    assert place in caught.value.message
    assert correction in caught.value.next_step


@pytest.mark.parametrize(
    ("content", "message", "next_step"),
    [
        ((RULES % "a").encode("utf-16"), "rules.json is not UTF-8", "save the file as UTF-8 text"),
        ((RULES % "\\ud83d").encode(), "the file holds an incomplete character: \\ud83d", "write both halves"),
        (b" " * (1024 * 1024 + 1), "rules.json is larger than 1 MiB", "split the publication"),
        (b"[]", "the file holds no list 'grouping_rules'", 'write {"grouping_rules": [...]}'),
        (b'{"serviceMappings": []}', "the file holds no list 'grouping_rules'", "as for Cygnus"),
        (b"[" * 100_000, "nested too deeply", "correct it"),
    ],
)
def test_unreadable_files_are_reported(tmp_path: Path, content: bytes, message: str, next_step: str) -> None:
    load(tmp_path, RULES % "a")
    (tmp_path / "rules.json").write_bytes(content)
    with pytest.raises(PublicationError) as caught:
        load_publication_file(tmp_path / "hotel.yaml")
    assert message in str(caught.value)
    assert next_step in str(caught.value)


def test_a_file_without_mappings_changes_nothing() -> None:
    assert NameMappings.from_json('# none yet\n{"serviceMappings": []}').service("hotel") == "hotel"


def test_rules_that_cygnus_drops_silently_are_reported(tmp_path: Path) -> None:
    rule = {"id": 1, "fields": ["entityId"], "regex": "a", "destination": "d", "fiware_service_path": "/"}
    rules = [rule, {**rule, "regex": ""}, rule, {**rule, "fiware_service_path": "a"}]
    load(tmp_path, json.dumps({"grouping_rules": rules}), ", compat: cygnus-2.19")

    (note,) = parse_publication(tmp_path / "hotel.yaml").notes

    assert (note.location, note.severity) == ("topics.grouping_rules", "note")
    assert note.message == "grouping rules 2, 4 are left out, as Cygnus does: it groups nothing"


def test_one_dropped_rule_is_reported_and_valid_ones_are_not(tmp_path: Path) -> None:
    load(tmp_path, '{"grouping_rules": [{"id": 1}]}', ", compat: cygnus-2.19")
    assert "grouping rule 1 is left out" in parse_publication(tmp_path / "hotel.yaml").notes[0].message

    load(tmp_path, RULES % "a", ", compat: cygnus-2.19")
    assert parse_publication(tmp_path / "hotel.yaml").notes == ()


def test_files_are_looked_at_also_where_the_publication_is_wrong_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(PublicationError) as caught:
        load(tmp_path, RULES % "[a&&b]", ", partitions: 0")
    assert [problem.location for problem in caught.value.problems] == ["topics.grouping_rules", "topics.partitions"]
