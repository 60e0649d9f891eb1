"""From rows of an outbox to calls of the client."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException

from contexture.kafka.produce import produce_rows
from contexture.sending.pieces import split_by_transaction
from contexture.sending.testing import OutboxRow, record_batch
from fakes.kafka_cluster import FakeCluster, Sent, failure


def sent_for(rows, headers=(), capacity=10**9):
    cluster = FakeCluster()
    cluster.capacity = capacity
    producer = cluster.open_producer(None, "tx.p.0", None)
    producer.begin_transaction()

    def when_full(row):
        while True:
            producer.poll(0.05)
            try:
                return producer.produce(*row)
            except BufferError:
                continue

    produce_rows(producer, record_batch(rows, 0), headers, when_full)
    return producer.open


def test_plain_rows():
    assert sent_for([OutboxRow("a", b"k", b"v"), OutboxRow("b", None, None), OutboxRow("a", b"k", None)]) == [
        Sent("a", b"v", b"k"),
        Sent("b", None, None),
        Sent("a", None, b"k"),
    ]


def test_the_topic_of_the_row_that_the_client_does_not_take_is_reported():
    cluster, output = FakeCluster(), []
    cluster.script["produce"] = [None, failure("TOPIC_AUTHORIZATION_FAILED")]
    producer = cluster.open_producer(None, "tx.p.0", None)
    producer.begin_transaction()
    rows = record_batch([OutboxRow(topic, b"k", b"v") for topic in ("a", "b", "c")], 0)

    with pytest.raises(KafkaException):
        produce_rows(producer, rows, (), lambda _row: None, output.append)

    assert output == ["b"]


def test_constant_headers_come_with_every_record():
    sent = sent_for([OutboxRow("a", b"k", b"v"), OutboxRow("a", b"l", b"w")], headers=(("service", b"x"),))
    assert [record.headers for record in sent] == [[("service", b"x")], [("service", b"x")]]


@pytest.mark.parametrize("constant", [(), (("service", b"x"),)])
def test_a_header_that_no_record_of_a_batch_has_is_none_at_all(constant):
    rows = record_batch([OutboxRow("a", b"k", b"v", headers=(("id", b"1"),)), OutboxRow("a", b"l", b"w")], 0)
    producer = FakeCluster().open_producer(None, "tx.p.0", None)
    producer.begin_transaction()

    produce_rows(producer, rows.slice(1), constant, lambda _row: None)

    assert [list(record.headers or ()) for record in producer.open] == [list(constant)]


@pytest.mark.parametrize("constant", [[], [("service", b"x")]])
def test_headers_that_all_records_of_a_batch_have_stand_in_their_order(constant):
    rows = [OutboxRow("a", b"k", b"v", headers=(("id", each), ("kind", b"b"))) for each in (b"1", b"2")]

    sent = sent_for(rows, headers=constant)

    own = [[("id", b"1"), ("kind", b"b")], [("id", b"2"), ("kind", b"b")]]
    assert [record.headers for record in sent] == [[*constant, *each] for each in own]


def test_a_records_own_headers_follow_the_constant_ones_and_absent_ones_stay_away():
    rows = [OutboxRow("a", b"k", b"v", headers=(("id", b"1"),)), OutboxRow("a", b"l", b"w")]
    sent = sent_for(rows, headers=(("service", b"x"),))
    assert [record.headers for record in sent] == [[("service", b"x"), ("id", b"1")], [("service", b"x")]]


def test_partition_and_time_where_given():
    rows = [OutboxRow("a", b"k", b"v", partition=3), OutboxRow("a", b"l", b"w", timestamp_ms=1_700_000_000_123)]
    sent = sent_for(rows)
    assert [(record.partition, record.timestamp) for record in sent] == [(3, 0), (-1, 1_700_000_000_123)]


_SENDS_WITHOUT_BROKERS = """
import sys
import pyarrow as pa
from contexture.kafka.produce import produce_rows
from contexture.sending.pieces import split_by_transaction

class NoBrokers:
    sent = []
    def produce(self, *arguments): self.sent.append(arguments)
    def poll(self, seconds): return 0

with pa.ipc.open_stream(sys.argv[1]) as stream:
    for piece in split_by_transaction(stream):
        piece.topics(), piece.byte_size()
        produce_rows(NoBrokers(), piece.rows, [("service", b"x")], None)
print(len(NoBrokers.sent), "pandas" in sys.modules)
"""


def test_sending_imports_no_pandas(tmp_path):
    # Arrow imports it by itself wherever it is given a Python value: a third of a second of each sender's start.
    rows = [
        OutboxRow("a", b"k", b"v", partition=3, timestamp_ms=1_700_000_000_123, headers=(("id", b"1"),)),
        OutboxRow("b", b"l", b"w"),
    ]
    batch = record_batch(rows, 0)
    with pa.ipc.new_stream(str(tmp_path / "rows"), batch.schema) as stream:
        stream.write_batch(batch)
    command = [sys.executable, "-c", _SENDS_WITHOUT_BROKERS, str(tmp_path / "rows")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.split() == ["2", "False"]


@pytest.mark.parametrize("capacity", [1, 2, 7, 999, 1000, 1001])
def test_a_full_queue_loses_and_doubles_nothing(capacity):
    rows = [OutboxRow("a", b"%d" % number, b"v") for number in range(2_500)]
    assert [record.key for record in sent_for(rows, capacity=capacity)] == [b"%d" % number for number in range(2_500)]


def test_a_full_queue_keeps_what_a_record_says_of_itself():
    rows = [OutboxRow("a", b"%d" % number, b"v", partition=number % 3) for number in range(20)]
    sent = sent_for(rows, headers=(("service", b"x"),), capacity=2)
    assert [record.partition for record in sent] == [number % 3 for number in range(20)]
    assert all(record.headers == [("service", b"x")] for record in sent)


@pytest.mark.parametrize("absent", [None, 5])
def test_a_full_queue_gives_no_record_the_headers_of_another(absent):
    rows = [
        OutboxRow("a", b"k", b"v", headers=() if number == absent else (("id", b"%d" % number),))
        for number in range(20)
    ]
    sent = sent_for(rows, headers=(("service", b"x"),), capacity=2)
    own = [[] if number == absent else [("id", b"%d" % number)] for number in range(20)]
    assert [record.headers for record in sent] == [[("service", b"x"), *each] for each in own]


def test_batches_are_cut_at_transactions_only():
    batches = [
        record_batch([OutboxRow("a", b"k", b"v", transaction=t) for t in numbers], first)
        for numbers, first in (([0, 0, 1], 0), ([], 3), ([1, 1, 5], 3))
    ]
    found = [(piece.transaction, piece.first_position, piece.rows.num_rows) for piece in split_by_transaction(batches)]
    assert found == [(0, 0, 2), (1, 2, 1), (1, 3, 2), (5, 5, 1)]


def test_a_piece_knows_its_topics_bytes_and_source_transaction():
    rows = record_batch([OutboxRow("a", b"12", b"345"), OutboxRow("b", None, b"6"), OutboxRow("a", b"7", None)], 0)
    (piece,) = split_by_transaction([rows.append_column("source_transaction", pa.array([8, 9, None]))])
    assert piece.topics() == {"a", "b"}
    assert piece.byte_size() == 7
    assert piece.source_transaction is None
    (piece,) = split_by_transaction([rows.append_column("source_transaction", pa.array([8, 9, 9]))])
    assert piece.source_transaction == 9
