"""Records for very many topics in an order that senders can bear."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contexture.storage import topic_order
from contexture.storage.folder import StoredFolder
from contexture.storage.home import Home
from contexture.storage.schemas import OUTBOX, with_headers
from contexture.storage.topic_order import group_by_topics, needs_groups

FILE = "vehicles/outbox/o/shard-0/part-00000.parquet"
SCHEMA = with_headers(OUTBOX, ["id"])


def write(storage, topics, row_group=7):
    rows = range(len(topics))
    columns = {
        "position": rows,
        "topic": topics,
        "key": [f"k{row}".encode() for row in rows],
        "value": [None if row % 5 == 4 else f"v{row}".encode() for row in rows],
        "partition": [None] * len(topics),
        "timestamp": [datetime(2026, 3, 1, tzinfo=UTC)] * len(topics),
        "transaction": [row // 10 for row in rows],
        "batch": rows,
        "sub_batch": [0] * len(topics),
        "events": [1] * len(topics),
        "header:id": [f"h{row}".encode() for row in rows],
    }
    table = pa.Table.from_pydict({name: list(values) for name, values in columns.items()}, schema=SCHEMA)
    with storage.write_atomically(FILE) as path:
        pq.write_table(table, path, row_group_size=row_group)


def read(storage):
    return pq.read_table(storage.path(FILE)).to_pylist()


@pytest.mark.slow
@given(st.lists(st.sampled_from([f"t{number}" for number in range(9)]), min_size=1, max_size=60), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_every_transaction_has_few_topics_and_every_topic_its_records_in_order(tmp_path_factory, topics, size):
    storage = Home(str(tmp_path_factory.mktemp("home")))
    write(storage, topics)

    transactions = group_by_topics(
        StoredFolder(storage, ""), FILE, topics, transaction_records=size, topics_of_a_group=2
    )

    rows = read(storage)
    assert [row["position"] for row in rows] == list(range(len(topics)))
    numbers = [row["transaction"] for row in rows]
    assert numbers == sorted(numbers)
    assert sorted(set(numbers)) == list(range(transactions))
    within, of_topic = defaultdict(list), defaultdict(list)
    for row in rows:
        within[row["transaction"]].append(row["topic"])
        of_topic[row["topic"]].append(row["batch"])
    assert all(len(set(held)) <= 2 and len(held) <= size for held in within.values())
    assert of_topic == {
        topic: [number for number, each in enumerate(topics) if each == topic] for topic in sorted(set(topics))
    }


def test_a_record_keeps_all_it_has_but_its_place(tmp_path):
    storage = Home(str(tmp_path))
    topics = ["c", "a", "b", "a", "c"]
    write(storage, topics)
    before = {row["batch"]: row for row in read(storage)}

    assert group_by_topics(StoredFolder(storage, ""), FILE, topics, transaction_records=100, topics_of_a_group=2) == 2

    rows = read(storage)
    assert [(row["topic"], row["batch"], row["transaction"]) for row in rows] == [
        ("a", 1, 0),
        ("a", 3, 0),
        ("b", 2, 0),
        ("c", 0, 1),
        ("c", 4, 1),
    ]
    for row in rows:
        old = before[row["batch"]]
        assert {**row, "position": old["position"], "transaction": old["transaction"]} == old
    assert pq.read_schema(storage.path(FILE)) == SCHEMA


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "large"), [(1, 1 << 30), (1 << 30, 1), (3, 1 << 30)])
def test_what_is_held_at_once_changes_no_group(tmp_path, monkeypatch, rows, large):
    monkeypatch.setattr(topic_order, "_ROWS", rows)
    monkeypatch.setattr(topic_order, "_BYTES", large)
    storage = Home(str(tmp_path))
    topics = [f"t{number % 6}" for number in range(30)]
    write(storage, topics)

    assert group_by_topics(StoredFolder(storage, ""), FILE, topics, transaction_records=4, topics_of_a_group=2) == 9

    found = [(row["topic"], row["batch"]) for row in read(storage)]
    assert [{topic for topic, _ in found[first : first + 10]} for first in (0, 10, 20)] == [
        {"t0", "t1"},
        {"t2", "t3"},
        {"t4", "t5"},
    ]
    assert [batch for topic, batch in found if topic == "t3"] == [3, 9, 15, 21, 27]


def test_the_same_shard_gives_the_same_file(tmp_path):
    digests = set()
    for home in ("here", "there"):
        storage = Home(str(tmp_path / home))
        topics = [f"t{number * 7 % 11}" for number in range(50)]
        write(storage, topics)
        group_by_topics(StoredFolder(storage, ""), FILE, topics, transaction_records=6, topics_of_a_group=3)
        digests.add(storage.sha256(FILE))
    assert len(digests) == 1


def test_few_topics_are_left_as_they_are():
    assert not needs_groups(f"t{number}" for number in range(1_000))
    assert needs_groups(f"t{number}" for number in range(1_001))
