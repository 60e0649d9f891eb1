"""Entities' heads, read leniently."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contexture.sources.ngsi.entity_head import EntityHead, moment, read_entity_head

SHOWN = "2026-11-21T05:38:57.863Z"
TIME = b'{"type":"DateTime","value":"2026-11-21T05:38:57.863Z","metadata":{}}'


def test_a_whole_entity() -> None:
    body = b'{"id":"car1","type":"car","servicePath":{"type":"Text","value":"/a","metadata":{}},"dateCreated":' + TIME
    assert read_entity_head(body + b',"dateModified":' + TIME + b',"x":1E400}', None) == EntityHead(
        "/a", "car1", "car", SHOWN, SHOWN
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{}", EntityHead(None, None, None, None, None)),
        (b"[1]", EntityHead(None, None, None, None, None)),
        (b'"text"', EntityHead(None, None, None, None, None)),
        (b'{"id":null,"type":["t"]}', EntityHead(None, None, None, None, None)),
        (b'{"id":"a","servicePath":{"type":"Text","value":7}}', EntityHead(None, "a", None, None, None)),
        (b'{"id":"a","servicePath":{"type":"Text","value":"here"}}', EntityHead(None, "a", None, None, None)),
        (b'{"id":"a","servicePath":{"type":"Address","value":"/b"}}', EntityHead(None, "a", None, None, None)),
        (
            b'{"id":"a","dateCreated":{"type":"Text","value":"%s"}}' % SHOWN.encode(),
            EntityHead(None, "a", None, None, None),
        ),
        (b'{"id":"a","dateModified":{"type":"DateTime","value":"soon"}}', EntityHead(None, "a", None, None, None)),
        (b'{"id":"\\ud800","type":"t"}', EntityHead(None, None, None, None, None)),
    ],
)
def test_what_is_not_as_it_should_be_is_unknown(body: bytes, expected: EntityHead) -> None:
    assert read_entity_head(body, None) == expected


@pytest.mark.parametrize(
    ("scalar", "name"),
    [(b"5", "5"), (b"-1.5", "-1.5"), (b"true", "true"), (b"12345678901234567890123", "12345678901234567890123")],
)
def test_an_id_or_type_that_is_no_text_has_its_text_form(scalar: bytes, name: str) -> None:
    head = read_entity_head(b'{"id":%s,"type":%s}' % (scalar, scalar), "/a")
    assert head.identity == ("/a", name, name)


def test_the_path_that_was_asked_for_wins_over_an_attribute_of_that_name() -> None:
    assert read_entity_head(b'{"id":"a","servicePath":{"type":"Text","value":"/liar"}}', "/a").path == "/a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("never", None),
        ("0001-01-01T00:00:00+05:00", None),
        ("2026-01-01T01:00:00+01:00", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01T00:00:00.00Z", datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_moments(text: str | None, expected: datetime | None) -> None:
    assert moment(text) == expected
