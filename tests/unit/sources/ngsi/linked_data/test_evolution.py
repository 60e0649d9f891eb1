"""The temporal representation of an entity (GS CIM 009, clause 4.5.7), with literal values."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contexture.sources.ngsi.entity import EntityError
from contexture.sources.ngsi.history import HistoryInterval, entity_versions, parse_entity_history, range_end


def at(minute: int) -> datetime:
    return datetime(2026, 1, 1, 10, minute, tzinfo=UTC)


HISTORY = b"""{"id": "urn:ngsi-ld:Car:1", "type": "Car", "createdAt": "2026-01-01T09:00:00Z",
"speed": [
 {"type": "Property", "value": 1E5, "modifiedAt": "2026-01-01T10:03:00Z"},
 {"type": "Property", "value": 1.0, "modifiedAt": "2026-01-01T10:01:00Z"}],
"colour": {"type": "Property", "value": "red", "modifiedAt": "2026-01-01T10:01:00Z"},
"scope": [{"type": "Property", "value": ["/Madrid"], "modifiedAt": "2026-01-01T10:02:00Z"}],
"empty": []}"""


def bodies(history: bytes, before: bytes | None = None, *, whole: bool = True) -> list[tuple[int, bytes]]:
    known = parse_entity_history(before) if before else None
    return [(time.minute, body) for time, body in entity_versions(parse_entity_history(history), known, whole=whole)]


def test_the_whole_entity_is_returned_after_each_change_with_its_numbers_as_they_were_written() -> None:
    first, second, third = bodies(HISTORY)
    colour = b'"colour":{"type":"Property","value":"red","modifiedAt":"2026-01-01T10:01:00Z"}'
    head = b'{"id":"urn:ngsi-ld:Car:1","type":"Car","modifiedAt":"2026-01-01T10:0'
    assert first == (
        1,
        head + b'1:00Z","speed":{"type":"Property","value":1.0,"modifiedAt":"2026-01-01T10:01:00Z"},' + colour + b"}",
    )
    assert second[0] == 2
    assert second[1].endswith(colour + b',"scope":["/Madrid"]}')
    assert third[0] == 3
    assert b'"value":1E5' in third[1]
    assert colour in third[1]


def test_only_what_changed_is_returned_when_attributes_are_published() -> None:
    versions = bodies(HISTORY, whole=False)
    assert [(minute, b"colour" in body, b"speed" in body) for minute, body in versions] == [
        (1, True, True),
        (2, False, False),
        (3, False, True),
    ]


def test_what_was_known_before_belongs_to_the_whole_entity() -> None:
    before = b"""{"id": "urn:ngsi-ld:Car:1", "type": "Car", "owner": [
    {"type": "Relationship", "object": "urn:a", "modifiedAt": "2026-01-01T09:00:00Z"}]}"""
    assert all(b'"object":"urn:a"' in body for _, body in bodies(HISTORY, before))
    assert not any(b"owner" in body for _, body in bodies(HISTORY, before, whole=False))


def test_instances_of_several_datasets_stand_beside_each_other() -> None:
    history = b"""{"id": "urn:a:1", "type": "Car", "speed": [
    {"type": "Property", "value": 1, "datasetId": "urn:gps", "modifiedAt": "2026-01-01T10:01:00Z"},
    {"type": "Property", "value": 2, "modifiedAt": "2026-01-01T10:02:00Z"}]}"""
    _, (_, last) = bodies(history)
    assert b'"speed":[{"type":"Property","value":1,' in last
    assert b',{"type":"Property","value":2,' in last


@pytest.mark.parametrize(
    "removed",
    [
        b'"value": "urn:ngsi-ld:null", "modifiedAt": "2026-01-01T10:02:00Z"',  # clause 4.5.0
        b'"value": 1, "deletedAt": "2026-01-01T10:02:00Z"',  # clause 4.8
    ],
)
def test_a_removed_attribute_is_left_out(removed: bytes) -> None:
    history = b"""{"id": "urn:a:1", "type": "Car", "speed": [
    {"type": "Property", "value": 1, "modifiedAt": "2026-01-01T10:01:00Z"}, {"type": "Property", %b}]}"""
    assert [(minute, b"speed" in body) for minute, body in bodies(history % removed)] == [(1, True), (2, False)]
    assert [minute for minute, _ in bodies(history % removed, whole=False)] == [1]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[]", "not a JSON object"),
        (b'{"type": "Car"}', "no id"),
        (b'{"id": "urn:a:1", "type": "Car", "speed": [{"type": "Property", "value": 1}]}', "has no time"),
        (b'{"id": "urn:a:1", "type": "Car", "speed": 7}', "holds no instances"),
        (b"{", "not JSON that can be read"),
    ],
)
def test_what_is_no_history_is_said_to_be_none(body: bytes, words: str) -> None:
    with pytest.raises(EntityError, match=words):
        parse_entity_history(body)


@pytest.mark.parametrize(
    ("header", "end"),
    [
        ("date-time 2026-01-01T10:00:00Z-2026-01-01T10:05:00.250Z/*", "2026-01-01T10:05:00.250000+00:00"),
        ("date-time 2026-01-01T10:00-2026-01-01T10:05:00/3", "2026-01-01T10:05:00+00:00"),
        ("DATE-TIME 2026-01-01T10:00:00-05:00-2026-01-01T10:05:00-05:00/9", "2026-01-01T15:05:00+00:00"),
    ],
)
def test_the_range_of_a_part_shows_its_latest_time(header: str, end: str) -> None:
    found = range_end(header)
    assert found is not None
    assert found.isoformat() == end


@pytest.mark.parametrize("header", ["", "bytes 0-9/10", "date-time yesterday-today/*", "date-time */3"])
def test_an_unreadable_range_is_ignored(header: str) -> None:
    assert range_end(header) is None


def test_a_stretch_is_cut_at_the_time_that_was_reached_or_in_the_middle() -> None:
    stretch = HistoryInterval(at(0), at(10))
    assert stretch.halves(at(3)) == (HistoryInterval(at(0), at(3)), HistoryInterval(at(3), at(10)))
    assert (
        stretch.halves(at(10))
        == stretch.halves(None)
        == (HistoryInterval(at(0), at(5)), HistoryInterval(at(5), at(10)))
    )
    millisecond = HistoryInterval(at(0), at(0).replace(microsecond=1000))
    assert millisecond.halves(at(0)) is None
