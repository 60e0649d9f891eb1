"""Grouping rules and name mappings travel in the publication."""

from __future__ import annotations

from pathlib import Path

import pytest

from contexture.publications import Publication, PublicationError, fingerprint, load_publication_file

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
        ("{", "", "the file is no JSON"),
        (RULES % "a", ", grouping_rules_content: x", "unknown key `grouping_rules_content`"),
        (RULES % "a", ", name_mappings: n.json", "`name_mappings` has no effect"),
        (RULES % "a", ", enable_name_mappings: true, name_mappings: n.json", "n.json can't be read"),
        (RULES % "a", ", enable_name_mappings: true", "`enable_name_mappings: true` needs a file"),
    ],
)
def test_what_is_wrong_is_an_error_of_the_publication(tmp_path: Path, rules: str, more: str, message: str) -> None:
    with pytest.raises(PublicationError) as caught:
        load(tmp_path, rules, more)
    assert message in str(caught.value)
