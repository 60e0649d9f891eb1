"""`contexture topics read`: what is shown of records, and what it requires."""

from __future__ import annotations

import pytest

from contexture.cli.topics import print_records_text
from contexture.kafka import TopicRecord
from contexture.operations.actions.topic_reading import ShownRecords
from contexture.operations.environment import named_publication
from contexture.publications import PublicationError


def record(key: bytes | None, value: bytes | None, *headers: tuple[str, bytes | None]) -> TopicRecord:
    return TopicRecord("bikes", 0, 7, key, value, headers, 1_700_000_000_000)


def test_records_are_shown_with_place_time_key_value_and_headers(capsys):
    print_records_text(
        ShownRecords("city_kafka", ("bikes",), (record(b"k", b'{"id":"s1"}', ("h", b"1")), record(None, None)))
    )

    assert capsys.readouterr().out.splitlines() == [
        "bikes[0] at offset 7, 2023-11-14T22:13:20.000+00:00",
        "  key    k",
        '  value  {"id":"s1"}',
        "  header h: 1",
        "bikes[0] at offset 7, 2023-11-14T22:13:20.000+00:00",
        "  key    none",
        "  value  null: deleted",
        "city_kafka: 2 records, the newest of 1 topics",
    ]


def test_what_a_record_holds_does_nothing_to_the_terminal(capsys):
    print_records_text(ShownRecords("k", ("bikes",), (record(b"\x1b[2J", b"\xff\xfe", ("\x07", b"\x1b")),)))
    shown = capsys.readouterr().out

    assert "\x1b[2J" not in shown
    assert "\\x1b[2J" in shown
    assert "2 bytes that are not text; --json has them" in shown


def test_a_long_value_is_cut_and_says_so(capsys):
    print_records_text(ShownRecords("k", ("bikes",), (record(b"k", b"x" * 5000),)))
    (line,) = [each for each in capsys.readouterr().out.splitlines() if each.startswith("  value")]

    assert line.endswith("… (5000 bytes; --json has all)")
    assert len(line) < 2100


def test_neither_topics_nor_a_publication_is_refused(contexture):
    done = contexture("topics", "read")

    assert done.code == 2
    assert "name topics, or give --publication" in done.err


def test_an_unknown_publication_is_reported_with_those_that_are_there(contexture, monkeypatch, tmp_path):
    (tmp_path / "cars.yaml").write_text("name: cars\nsource: {kind: ngsi, connection: broker, service: s}\n")
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path))
    done = contexture("topics", "read", "--publication", "bikes")

    assert done.code == 2
    assert f"there is no publication 'bikes' in {tmp_path}" in done.err
    assert "choose among: cars" in done.err


def test_a_wrong_file_of_another_publication_blocks_no_other(tmp_path):
    (tmp_path / "cars.yaml").write_text("name: cars\nsource: {kind: ngsi, connection: broker, service: s}\n")
    (tmp_path / "bikes.yaml").write_text("name: bikes\nsuorce: {}\n")

    assert named_publication("cars", tmp_path).source.connection == "broker"
    with pytest.raises(PublicationError, match="suorce"):
        named_publication("bikes", tmp_path)
