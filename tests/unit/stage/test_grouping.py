"""From placed events to records: the lines of a sub-batch are one record, in arrival order."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from spark_jobs.entities.assemble import LineGrouper, SingleRecords, tombstones

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

Event = tuple[int, int, list[str], bytes]


def placed(*events: Event, key: bytes | None = None) -> Any:
    """Placed events: batch, sub-batch, topics and value."""
    batch, sub_batch, topics, values = zip(*events, strict=True)
    return pa.table(
        {
            "batch": pa.array(batch, pa.int64()),
            "sub_batch": pa.array(sub_batch, pa.int64()),
            "topics": pa.array(topics, pa.list_(pa.string())),
            "key": pa.array([key] * len(events), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([NOON] * len(events), pa.timestamp("ms", tz="UTC")),
            "identity_hash": pa.array([b"%016d" % n for n in range(len(events))], pa.binary(16)),
        }
    )


def record_fields(*tables: Any) -> list[tuple[int, int, str, bytes, int]]:
    rows = [row for table in tables if table is not None for row in table.to_pylist()]
    return [(row["batch"], row["sub_batch"], row["topic"], row["value"], row["events"]) for row in rows]


def test_the_lines_of_a_sub_batch_are_one_record_without_a_newline_at_the_end():
    grouper = LineGrouper(1_000)
    first = grouper.records(placed((0, 0, ["A"], b"a1"), (0, 1, ["B"], b"b1"), (0, 0, ["A"], b"a2")))
    second = grouper.records(placed((0, 1, ["B"], b"b2"), (1, 0, ["B"], b"b3")))

    assert record_fields(first) == []
    assert record_fields(second) == [(0, 0, "A", b"a1\na2", 2), (0, 1, "B", b"b1\nb2", 2)]
    assert record_fields(grouper.rest()) == [(1, 0, "B", b"b3", 1)]


def test_each_fixed_topic_gets_every_line():
    grouper = LineGrouper(1_000)
    grouper.records(placed((0, 0, ["A", "B"], b"1"), (0, 0, ["A", "B"], b"2")))

    assert record_fields(grouper.rest()) == [(0, 0, "A", b"1\n2", 2), (0, 1, "B", b"1\n2", 2)]


def test_what_kafka_would_refuse_as_one_record_goes_out_as_several():
    grouper = LineGrouper(8)
    grouper.records(placed(*[(0, 0, ["A"], b"%d%d%d" % (n, n, n)) for n in range(5)], key=b"k"))

    assert record_fields(grouper.rest()) == [
        (0, 0, "A", b"000\n111", 2),
        (0, 0, "A", b"222\n333", 2),
        (0, 0, "A", b"444", 1),
    ]


def test_equal_events_make_equal_records():
    events = placed((0, 0, ["A"], b"1"), (0, 1, ["B"], b"2"), (1, 0, ["B"], b"3"))

    assert LineGrouper(99).records(events).equals(LineGrouper(99).records(events))


def test_each_record_keeps_the_headers_of_its_event():
    events = placed((0, 0, ["A", "B"], b"1"), (0, 1, ["A", "B"], b"2"))
    events = events.append_column("header:ce_id", pa.array([b"x", None], pa.binary()))

    records = SingleRecords(("ce_id",)).records(events)

    assert records.column("header:ce_id").to_pylist() == [b"x", b"x", None, None]


def test_tombstones_keep_the_headers_of_their_rows():
    gone = pa.table(
        {
            "topics": pa.array([["A", "B"], ["C"]], pa.list_(pa.string())),
            "key": pa.array([b"k1", b"k2"], pa.binary()),
            "identity_hash": pa.array([b"1" * 16, b"2" * 16], pa.binary(16)),
            "header:ce_id": pa.array([b"x", b"y"], pa.binary()),
        }
    )

    records = tombstones(gone, NOON, 7, ("ce_id",)).to_pylist()

    assert [(row["topic"], row["value"], row["batch"], row["header:ce_id"]) for row in records] == [
        ("A", None, 7, b"x"),
        ("B", None, 8, b"x"),
        ("C", None, 9, b"y"),
    ]


def test_single_records_go_out_as_they_came():
    records = SingleRecords().records(placed((0, 0, ["A"], b"1"), (0, 1, ["B"], b"2"), (0, 0, ["A"], b"3")))

    assert record_fields(records) == [(0, 0, "A", b"1", 1), (0, 1, "B", b"2", 1), (0, 0, "A", b"3", 1)]
    assert records.column("identities").to_pylist() == [b"%016d" % 0, b"%016d" % 1, b"%016d" % 2]


def test_a_record_of_lines_has_the_identities_of_all_of_them():
    grouper = LineGrouper(1_000)
    grouper.records(placed((0, 0, ["A"], b"1"), (0, 1, ["B"], b"2"), (0, 0, ["A"], b"3")))

    assert grouper.rest().column("identities").to_pylist() == [b"%016d" % 0 + b"%016d" % 2, b"%016d" % 1]
