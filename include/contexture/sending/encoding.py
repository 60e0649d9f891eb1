"""Where a program can put its own encoder, partitioner and delivery callback into a `Publisher`.

    Publisher(settings, names, shards=2, encode=encoded_values(to_avro), delivered=count)

An encoder takes rows of the outbox as they are sent, thousands at a time, and gives as many in the same order. It may
change `value`, `key`, `partition`, `timestamp` and `header:<name>` columns, but not where rows go or which transaction
they are in. The same rows must always give the same: what is sent again after a failure must be what was sent before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from contexture.errors import ConfigurationError
from contexture.kafka.patience import Patience
from contexture.kafka.settings import ClientSettings
from contexture.kafka.topic_admin import TopicAdmin
from contexture.sending.rows_pieces import Piece

Encode = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Rows of an outbox in, rows as they are to be sent out."""

_KEPT: Final = ("position", "topic", "transaction")
_WAIT_SECONDS: Final = 60.0


def encoded_values(encode: Callable[[bytes], bytes]) -> Encode:
    """An encoder of values; tombstones stay tombstones."""

    def rows_encoded(rows: pa.RecordBatch) -> pa.RecordBatch:
        values = [None if value is None else encode(value) for value in rows.column("value").to_pylist()]
        return _with_column(rows, "value", pa.array(values, pa.binary()))

    return rows_encoded


def partitioned(settings: ClientSettings, choose: Callable[[bytes | None, int], int]) -> Encode:
    """A partitioner of one's own: `choose` gets a record's key and how many partitions its topic has.

    Records that name their partition keep it. How many there are is asked for once for each topic. Records of one key
    are in order only if it always goes to the same partition.
    """
    counts: dict[str, int] = {}

    def partitions_of(topic: str) -> int:
        if topic not in counts:
            found = TopicAdmin(settings, Patience(_WAIT_SECONDS)).listed(topic)
            counts[topic] = found[topic].partitions if topic in found else 1
        return counts[topic]

    def rows_partitioned(rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = (rows.column(name).to_pylist() for name in ("partition", "key", "topic"))
        chosen = [
            choose(key, partitions_of(str(topic))) if given is None else given
            for given, key, topic in zip(*columns, strict=True)
        ]
        return _with_column(rows, "partition", pa.array(chosen, pa.int32()))

    return rows_partitioned


def one_after_the_other(*encoders: Encode) -> Encode:
    """Several encoders as one, in their order."""

    def all_of_them(rows: pa.RecordBatch) -> pa.RecordBatch:
        for encode in encoders:
            rows = encode(rows)
        return rows

    return all_of_them


def encoded(piece: Piece, encode: Encode) -> Piece:
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
            f"the encoder gave {rows.num_rows} rows for {piece.rows.num_rows}, or other topics, positions or "
            "transactions",
            next_step="let it give each row in its place; what should not be sent must not be in the outbox",
        )
    return Piece(piece.transaction, rows)


def _with_column(rows: pa.RecordBatch, name: str, values: pa.Array[Any]) -> pa.RecordBatch:
    return rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)
