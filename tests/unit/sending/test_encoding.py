"""A program's own encoder, partitioner and delivery callback."""

from __future__ import annotations

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from contexture.errors import ConfigurationError
from contexture.kafka import ClientSettings
from contexture.kafka.callbacks import ClientCallbacks
from contexture.sending import Publisher, SenderNames, encoded_values, one_after_the_other
from contexture.sending.testing import MemoryShard, OutboxRow
from fakes.kafka_cluster import FakeCluster, FakeHidden, FakeLedger

NAMES = SenderNames("vehicles")
SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
ROWS = [OutboxRow("cars", b"k0", b"a"), OutboxRow("cars", b"k1", None), OutboxRow("bikes", b"k2", b"b")]


def publisher(cluster, **options):
    ledger = FakeLedger(cluster, NAMES)
    return Publisher(
        SETTINGS,
        NAMES,
        shards=1,
        ledger=ledger,
        hidden=FakeHidden(cluster),
        open_producer=cluster.open_producer,
        **options,
    )


def test_values_are_sent_as_an_encoder_gives_them_and_tombstones_stay():
    cluster = FakeCluster()
    encode = one_after_the_other(encoded_values(bytes.upper), encoded_values(lambda value: b"<%s>" % value))

    result = publisher(cluster, encode=encode).publish(MemoryShard(ROWS))

    assert (cluster.values("cars"), cluster.values("bikes")) == ([b"<A>", None], [b"<B>"])
    # Keys of two bytes each, and values as they were sent.
    assert result.bytes == 6 + 6


def left_out(rows):
    return rows.slice(1)


def moved(rows):
    place = rows.schema.get_field_index("topic")
    return rows.set_column(place, "topic", pa.array(["other"] * rows.num_rows).dictionary_encode())


@pytest.mark.parametrize("encode", [left_out, moved])
def test_an_encoder_that_loses_or_moves_rows_is_reported_before_anything_is_visible(encode):
    cluster = FakeCluster()
    with pytest.raises(ConfigurationError, match="the encoder returned") as reported:
        publisher(cluster, encode=encode).publish(MemoryShard(ROWS))
    assert "each row in its place" in reported.value.next_step
    assert cluster.committed == []


def test_a_delivery_callback_is_reported_of_each_report_and_can_break_nothing(caplog):
    reported = []
    watch = ClientCallbacks()
    watch.delivered = lambda error, message: reported.append((error, message))
    watch.on_delivery(None, "first")

    def failing(error, message):
        raise ValueError("what a record holds")

    watch.delivered = failing
    failed = KafkaError(KafkaError._MSG_TIMED_OUT)

    class Message:
        def topic(self):
            return "cars"

    watch.on_delivery(failed, Message())
    assert reported == [(None, "first")]
    assert watch.undelivered == (failed, "cars")
    assert "the delivery callback raised ValueError" in caplog.text
    assert "what a record holds" not in caplog.text
