"""The demo's comparison finds what is missing, doubled, changed or out of order."""

from __future__ import annotations

from contexture_sandbox.demo.comparison import Comparison, Sequences

Record = tuple[str, bytes | None, bytes | None]

SENT: list[Record] = [
    ("cars", b"1", b"a"),
    ("cars", b"1", b"b"),
    ("cars", b"2", None),
    ("bikes", None, b"x"),
    ("bikes", None, b"y"),
]


def sequences(records: list[Record]) -> Sequences:
    collected = Sequences()
    for topic, key, value in records:
        collected.add(topic, key, value, ())
    return collected


def test_the_same_records_are_equal_whatever_order_other_keys_come_in() -> None:
    mixed = [SENT[4], SENT[2], SENT[0], SENT[3], SENT[1]]

    assert sequences(SENT).different(sequences(mixed)) == 0


def test_a_missing_record_is_found() -> None:
    assert sequences(SENT).different(sequences(SENT[:-1])) == 1


def test_a_missing_key_is_found() -> None:
    assert sequences(SENT).different(sequences([SENT[0], SENT[1], SENT[3], SENT[4]])) == 1


def test_a_doubled_record_is_found_with_and_without_a_key() -> None:
    assert sequences(SENT).different(sequences([*SENT, SENT[1]])) == 1
    assert sequences(SENT).different(sequences([*SENT, SENT[4]])) == 1


def test_records_of_one_key_in_another_order_are_found() -> None:
    assert sequences(SENT).different(sequences([SENT[1], SENT[0], *SENT[2:]])) == 1


def test_a_tombstone_is_not_an_empty_value() -> None:
    assert sequences([("cars", b"2", None)]).different(sequences([("cars", b"2", b"")])) == 1


def test_a_header_makes_a_difference() -> None:
    plain, marked = Sequences(), Sequences()
    plain.add("cars", b"1", b"a", ())
    marked.add("cars", b"1", b"a", (("contexture-backfill", b"2026-01-01T00:00:00+00:00"),))

    assert plain.different(marked) == 1


def test_equal_needs_as_many_read_as_prepared() -> None:
    assert Comparison(topics=1, prepared=2, read=2, different=0).equal
    assert not Comparison(topics=1, prepared=2, read=3, different=0).equal
    assert not Comparison(topics=1, prepared=2, read=2, different=1).equal


def test_topics_are_compared_apart_from_others() -> None:
    assert sequences(SENT).of({"cars"}).different(sequences(SENT[:3])) == 0
    assert sequences(SENT).of({"bikes"}).different(sequences(SENT[3:])) == 0
