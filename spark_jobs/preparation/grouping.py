"""From rendered events to records: one each, or the lines of a sub-batch in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.messages.ngsi_bodies import join
from contexture.storage.schemas import HEADER_PREFIX, IDENTITIES, with_headers

_RECORD = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("batch", pa.int64()),
        pa.field("sub_batch", pa.int64()),
        pa.field("events", pa.int32()),
        IDENTITIES,
    ]
)


class _Line(NamedTuple):
    """What a record needs of one of its events."""

    key: bytes | None
    value: bytes | None
    timestamp: datetime | None
    identity_hash: bytes


class SingleRecords:
    """Each event is a record of its own, once for each of its topics.

    Args:
        headers: those that vary; placed events hold a column for each.
    """

    def __init__(self, headers: Sequence[str] = ()) -> None:
        self._headers = headers

    def records(self, placed: Any) -> Any:
        """The records of placed events, in order."""
        topics, parents, sub_batches = _destined(placed)
        rows = placed.take(parents)
        return _table(
            topic=topics,
            key=rows.column("key"),
            value=rows.column("value"),
            timestamp=rows.column("timestamp"),
            batch=rows.column("batch"),
            sub_batch=sub_batches,
            events=pa.array(np.ones(len(topics), dtype=np.int32)),
            identities=rows.column("identity_hash"),
            **_header_columns(rows, self._headers),
        )

    def rest(self) -> Any:
        """Nothing is held back."""
        return None


class LineGrouper:
    """The events of a sub-batch are the lines of one record, or of several where Kafka would refuse one so large.

    Args:
        maximum_bytes: what the key and value of one record may have together.
    """

    def __init__(self, maximum_bytes: int) -> None:
        self._maximum_bytes = maximum_bytes
        self._batch = -1
        self._lines: dict[tuple[int, str], list[_Line]] = {}
        self._done: list[dict[str, object]] = []

    def records(self, placed: Any) -> Any:
        """The records of all batches that are complete so far."""
        topics, parents, sub_batches = _destined(placed)
        rows = placed.take(parents)
        columns = [rows.column("batch"), sub_batches, topics]
        lines = map(_Line, *(rows.column(name).to_pylist() for name in _Line._fields))
        for batch, sub_batch, topic, line in zip(*(column.to_pylist() for column in columns), lines, strict=True):
            if batch != self._batch:
                self._close()
                self._batch = batch
            self._lines.setdefault((sub_batch, topic), []).append(line)
        return self._take()

    def rest(self) -> Any:
        """The records of the last batch."""
        self._close()
        return self._take()

    def _close(self) -> None:
        for (sub_batch, topic), lines in sorted(self._lines.items()):
            for part in self._parts(lines):
                last = part[-1]
                # A tombstone stands in a batch of its own.
                value = None if last.value is None else join(line.value for line in part if line.value is not None)
                record = {"topic": topic, "key": last.key, "value": value, "timestamp": last.timestamp}
                record |= {"batch": self._batch, "sub_batch": sub_batch, "events": len(part)}
                self._done.append({**record, "identities": b"".join(line.identity_hash for line in part)})
        self._lines = {}

    def _parts(self, lines: list[_Line]) -> Iterator[list[_Line]]:
        part: list[_Line] = []
        size = 0
        for line in lines:
            # One byte joins a line to the one before.
            line_size = len(line.value or b"") + 1
            size += line_size
            if part and size - 1 + len(line.key or b"") > self._maximum_bytes:
                yield part
                part, size = [], line_size
            part.append(line)
        yield part

    def _take(self) -> Any:
        done, self._done = self._done, []
        return pa.Table.from_pylist(done, schema=_RECORD)


def tombstones(gone: Any, moment: datetime, first_batch: int, headers: Sequence[str] = ()) -> Any:
    """The tombstones of state rows, one for each of their topics, each in a batch of its own.

    Args:
        gone: the rows, with a column for each of `headers`.
        moment: what the records' time is.
        first_batch: number of the first one's batch.
        headers: those that vary.
    """
    topics = gone.column("topics").combine_chunks()
    rows = gone.take(pc.list_parent_indices(topics))
    count = rows.num_rows
    stamp = pa.array([moment] * count, pa.timestamp("us", tz="UTC"))
    return _table(
        topic=pc.list_flatten(topics),
        key=rows.column("key"),
        value=pa.nulls(count, pa.binary()),
        timestamp=pc.cast(stamp, pa.timestamp("ms", tz="UTC"), safe=False),
        batch=pa.array(np.arange(first_batch, first_batch + count)),
        sub_batch=pa.array(np.zeros(count, dtype=np.int64)),
        events=pa.array(np.ones(count, dtype=np.int32)),
        identities=rows.column("identity_hash"),
        **_header_columns(rows, headers),
    )


def _header_columns(rows: Any, headers: Sequence[str]) -> dict[str, Any]:
    return {name: rows.column(name) for name in (f"{HEADER_PREFIX}{header}" for header in headers)}


def _destined(placed: Any) -> tuple[Any, Any, Any]:
    """For each topic of each event: the topic, the event's row, and the sub-batch.

    Events with several topics all have the same ones, so the n-th topic of a sub-batch is a sub-batch of its own.
    """
    topics = placed.column("topics").combine_chunks()
    parents = pc.list_parent_indices(topics)
    rows = parents.to_numpy()
    starts, lengths = topics.offsets.to_numpy()[:-1] - topics.offsets[0].as_py(), topics.value_lengths().to_numpy()
    sub_batches = placed.column("sub_batch").to_numpy()[rows] * lengths[rows] + np.arange(len(rows)) - starts[rows]
    return pc.list_flatten(topics), parents, pa.array(sub_batches, pa.int64())


def _table(**columns: Any) -> Any:
    headers = [name.removeprefix(HEADER_PREFIX) for name in columns if name.startswith(HEADER_PREFIX)]
    schema = with_headers(_RECORD, headers)
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)
