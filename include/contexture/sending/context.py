"""What a sender needs besides the outbox: its own encoder, progress, and the objects it sends with.

    Publisher(settings, names, shards=2, encode=encoded_values(to_avro), delivered=count)

An encoder takes rows of the outbox as they are sent, thousands at a time, and gives as many in the same order. It may
change `value`, `key`, `partition`, `timestamp` and `header:<name>` columns, but not where rows go or which transaction
they are in. The same rows must always have the same result, because a repetition must equal what was sent before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, Protocol  # Any: element types of columns differ

import pyarrow as pa

from contexture.errors import ConfigurationError
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.interfaces import Delivered, OpenProducer
from contexture.kafka.producer import ProducerSession, open_session
from contexture.kafka.settings import ClientSettings
from contexture.sending.dead_letters import DeadLetters, RequestLimit, one_by_one
from contexture.sending.interfaces import HiddenPort, LedgerPort
from contexture.sending.ledger import SenderNames
from contexture.sending.pieces import TransactionChunk
from contexture.storage.schemas import EVENT_TIME_HEADER, HEADER_PREFIX

Encode = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Rows of an outbox in, rows as they are to be sent out."""

_KEPT: Final = ("position", "topic", "transaction")
_WAIT_SECONDS: Final = 60.0


def encoded_values(encode: Callable[[bytes], bytes]) -> Encode:
    """Returns an encoder of values; tombstones stay tombstones."""

    def rows_encoded(rows: pa.RecordBatch) -> pa.RecordBatch:
        values = [None if value is None else encode(value) for value in rows.column("value").to_pylist()]
        return _with_column(rows, "value", pa.array(values, pa.binary()))

    return rows_encoded


ChoosePartition = Callable[[str, bytes | None, int], int]
"""Returns the partition of a record by its topic, its key and the number of partitions of the topic."""


def partitioned(settings: ClientSettings, choose: Callable[[bytes | None, int], int]) -> Encode:
    """Returns an encoder that chooses partitions by a record's key and the number of partitions of its topic.

    Records that name their partition keep it. The number is requested once for each topic. Records of one key are in
    order only if it always goes to the same partition.
    """
    return partitioned_by_topic(partitions_by_brokers(settings), lambda topic, key, partitions: choose(key, partitions))


PartitionsOf = Callable[[str], int]
"""Returns the number of partitions of a topic."""


def partitions_by_brokers(settings: ClientSettings) -> PartitionsOf:
    """Returns the function that asks the brokers, once for each topic."""

    @cache
    def partitions_of(topic: str) -> int:
        found = TopicAdmin(settings, BrokerWait(_WAIT_SECONDS)).listed(topic)
        return found[topic].partitions if topic in found else 1

    return partitions_of


def partitioned_by_topic(partitions_of: PartitionsOf, choose: ChoosePartition) -> Encode:
    """Returns the same encoder for a function that is called with the topic too.

    The encoder raises:
        ConfigurationError: the topic has no partition of the number that was chosen.
    """

    def chosen_for(topic: str, key: bytes | None) -> int:
        count = partitions_of(topic)
        partition = choose(topic, key, count)
        if not 0 <= partition < count:
            raise ConfigurationError(
                f"the partitioner chose partition {partition} of topic {topic}, which has {count}",
                next_step="choose a number from 0 to the number of partitions, which is not included; more partitions: "
                "docs/how-to/change-topics.md",
                topic=topic,
                partition=partition,
            )
        return partition

    def rows_partitioned(rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = (rows.column(name).to_pylist() for name in ("partition", "key", "topic"))
        chosen = [
            chosen_for(str(topic), key) if given is None else given for given, key, topic in zip(*columns, strict=True)
        ]
        return _with_column(rows, "partition", pa.array(chosen, pa.int32()))

    return rows_partitioned


def one_after_the_other(*encoders: Encode) -> Encode:
    """Returns several encoders as one, in their order."""

    def all_of_them(rows: pa.RecordBatch) -> pa.RecordBatch:
        for encode in encoders:
            rows = encode(rows)
        return rows

    return all_of_them


def encoded(piece: TransactionChunk, encode: Encode) -> TransactionChunk:
    """Rows of one transaction as an encoder gives them.

    Raises:
        ConfigurationError: it left rows out, added some, or moved them.
    """
    rows = encode(piece.rows)
    same = rows.num_rows == piece.rows.num_rows and all(
        rows.column(name).equals(piece.rows.column(name)) for name in _KEPT
    )
    if not same:
        raise ConfigurationError(
            f"the encoder returned {rows.num_rows} rows for {piece.rows.num_rows}, or other topics, positions or "
            "transactions",
            next_step="return each row in its place; what should not be sent must not be in the outbox",
        )
    return TransactionChunk(piece.transaction, rows)


def _with_column(rows: pa.RecordBatch, name: str, values: pa.Array[Any]) -> pa.RecordBatch:
    return rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)


Step = Literal["connecting", "sending", "waiting", "again", "done"]


@dataclass(frozen=True, slots=True)
class SendProgress:
    """How far the sending of one shard is.

    Attributes:
        step: the current step; `waiting` is for the brokers, `again` is a transaction that is repeated.
        shard: which shard.
        position: the next position to be committed.
        records: how many the shard holds.
        detail: one sentence for people.
    """

    step: Step
    shard: int
    position: int
    records: int
    detail: str


class Progress(Protocol):
    """Called now and then while sending; must return soon and not raise."""

    def __call__(self, progress: SendProgress, /) -> None: ...


def ignore_progress(progress: SendProgress, /) -> None:
    """Reports nothing."""


@dataclass(frozen=True, slots=True)
class SendContext:
    """The objects that one sending uses; `Publisher` describes each of them."""

    settings: ClientSettings
    names: SenderNames
    shards: int
    broker_wait: BrokerWait
    ledger: LedgerPort
    hidden: HiddenPort
    requests: RequestLimit
    progress: Progress
    encode: Encode | None
    delivered: Delivered | None
    dead_letters: DeadLetters | None
    open_producer: OpenProducer
    clock: Callable[[], float]
    sleep: Callable[[float], None]

    def encoded(self, piece: TransactionChunk) -> TransactionChunk:
        return piece if self.encode is None else encoded(piece, self.encode)

    def open_session(self, shard: int, *, careful: bool) -> ProducerSession:
        """Returns a new client of a shard; a careful one sends each record in a batch of its own."""
        return open_session(
            one_by_one(self.settings) if careful else self.settings,
            self.names.transactional_id(shard),
            self.broker_wait,
            ledger_topic=self.ledger.topic,
            delivered=self.delivered,
            open_producer=self.open_producer,
            clock=self.clock,
        )


_COLUMN = f"{HEADER_PREFIX}{EVENT_TIME_HEADER}"


def timed_by_sending(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows whose records get the time of their sending, and the outbox's time as a header.

    Kafka removes records by their own time. A record of an entity that was changed before the topic's retention began
    would be removed seconds after it was sent. The header `contexture_event_time` holds milliseconds since 1970 as
    decimal text; records without a time have none. The rows are always the same: the client sets the time of sending.
    """
    place = rows.schema.get_field_index("timestamp")
    if place < 0 or rows.column(place).null_count == rows.num_rows:
        return rows
    times = rows.column(place)
    milliseconds = times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())
    header = milliseconds.cast(pa.string()).cast(pa.binary())
    without = rows.set_column(place, rows.schema.field(place).with_nullable(True), pa.nulls(rows.num_rows, times.type))
    return without.append_column(pa.field(_COLUMN, pa.binary()), header)
