"""Assembling shards: rendered events in, records in sending order out.

One task per shard reads the rendered files of the shard one after the other and leaves out events that planning
dropped. It assigns position, transaction, batch and sub-batch to each record, and writes the Parquet file of the shard
and its part of the next state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.publications import NgsiPublication
from contexture.records.messages.envelopes import envelope
from contexture.records.messages.ngsi_bodies import join
from contexture.storage.folder import StoredFolder
from contexture.storage.publication_store import SHARD_FILE
from contexture.storage.schemas import HEADER_PREFIX, IDENTITIES, OUTBOX, STATE, with_headers
from contexture.storage.state_files import completed
from contexture.storage.topic_order import group_by_topics, needs_groups
from spark_jobs.entities.plan import EventPlan
from spark_jobs.entities.render import with_tombstone_headers
from spark_jobs.entities.rows import DELETIONS_FILE, TOPICS_FOLDER, rendered_folder
from spark_jobs.entities.sequence import PLACED, SequencedDeletions
from spark_jobs.shared.context import StageContext

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
    """The fields of one event that its record needs."""

    key: bytes | None
    value: bytes | None
    timestamp: datetime | None
    identity_hash: bytes


class SingleRecords:
    """Builds one record for each event and each of its topics.

    Args:
        headers: names of the headers that vary; placed events have a column for each.
    """

    def __init__(self, headers: Sequence[str] = ()) -> None:
        self._headers = headers

    def records(self, placed: Any) -> Any:
        """Builds the records of placed events, in order."""
        topics, parents, sub_batches = _expand_topics(placed)
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
        """Returns None, because every record was returned by `records`."""
        return None


class LineGrouper:
    """Joins the events of a sub-batch into the lines of one record, or of several if one would be too large for Kafka.

    Args:
        maximum_bytes: the maximum size of key and value of one record together.
    """

    def __init__(self, maximum_bytes: int) -> None:
        self._maximum_bytes = maximum_bytes
        self._batch = -1
        self._lines: dict[tuple[int, str], list[_Line]] = {}
        self._done: list[dict[str, object]] = []

    def records(self, placed: Any) -> Any:
        """Builds the records of all batches that are complete so far."""
        topics, parents, sub_batches = _expand_topics(placed)
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
        """Builds the records of the last batch."""
        self._close()
        return self._take()

    def _close(self) -> None:
        for (sub_batch, topic), lines in sorted(self._lines.items()):
            for part in self._parts(lines):
                last = part[-1]
                # A tombstone has a batch of its own.
                value = None if last.value is None else join(line.value for line in part if line.value is not None)
                record: dict[str, Any] = {"topic": topic, "key": last.key, "value": value, "timestamp": last.timestamp}
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
    """Builds the tombstones of state rows, one for each of their topics, each in a batch of its own.

    Args:
        gone: the rows, with a column for each of `headers`.
        moment: the timestamp of the records.
        first_batch: number of the first batch.
        headers: names of the headers that vary.
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


def _expand_topics(placed: Any) -> tuple[Any, Any, Any]:
    """Returns the topic, the row of the event and the sub-batch for each topic of each event.

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


ROWS = 20_000
ROW_GROUP = 100_000

SUMMARY = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("records", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("transactions", pa.int64()),
        pa.field("upserts", pa.int64()),
    ]
)


class ShardSummary(NamedTuple):
    """A row of `SUMMARY`. `bytes` counts keys and values, `upserts` counts the events with a value."""

    shard: int
    records: int
    bytes: int
    transactions: int
    upserts: int


def assembly(context: StageContext) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Returns the function for `mapInArrow` over shard numbers; it yields one row of SUMMARY for each shard."""

    def assemble(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                summary = ShardAssembler(context, shard).run()
                yield pa.record_batch([pa.array([value]) for value in summary], names=SUMMARY.names).cast(SUMMARY)

    return assemble


def _grouper(context: StageContext) -> LineGrouper | SingleRecords:
    if context.joins_lines:
        return LineGrouper(context.maximum_record_bytes)
    return SingleRecords(context.headers)


def _columns(context: StageContext) -> Any:
    """Returns the columns of records; with a dead-letter topic each record also has the hashes of its identities."""
    dead_letters = context.publication.publish.on_failure == "dead-letter"
    return pa.schema([*OUTBOX, IDENTITIES]) if dead_letters else OUTBOX


def _add_topic_prefix(table: Any, prefix: str) -> Any:
    """Puts the topic prefix of a backfill before each topic."""
    if not prefix:
        return table
    topics = pc.binary_join_element_wise(prefix, table.column("topic").cast(pa.string()), "")
    return table.set_column(table.schema.get_field_index("topic"), "topic", topics)


class ShardAssembler:
    """Builds the records and state rows of one shard, and writes them."""

    def __init__(self, context: StageContext, shard: int) -> None:
        self._context = context
        self._shard = shard
        self._plan = EventPlan.load(context.work)
        self._envelope = envelope(context.publication)
        self._transaction_records = NgsiPublication.of(context.publication).publish.transaction_records
        self._headers = context.headers
        self._schema = with_headers(_columns(context), self._headers)
        self._deletions = SequencedDeletions(context.work, shard, self._envelope)
        self._grouper = _grouper(context)
        self._position = 0
        self._upserts = 0
        self._bytes = 0
        self._topics: Counter[str] = Counter()

    def run(self) -> ShardSummary:
        """Writes the shard and its part of the next state; returns the counts."""
        outbox = self._context.records
        folder = outbox.shard(self._shard)
        with (
            _writer(folder, SHARD_FILE, self._schema) as records,
            _writer(outbox.state_delta, f"shard-{self._shard:05d}.parquet", STATE) as delta,
        ):
            self._write_upserts(records, delta)
            self._write_deletes(records, delta)
        self._write_topics()
        transactions = self._transactions(folder)
        return ShardSummary(self._shard, self._position, self._bytes, transactions, self._upserts)

    def _write_upserts(self, records: Any, delta: Any) -> None:
        for table in self._rendered():
            self._write_events(records, delta, self._deletions.merged(table))
        self._write_events(records, delta, self._deletions.rest(with_headers(PLACED, self._headers)))
        self._append(records, self._grouper.rest())

    def _write_events(self, records: Any, delta: Any, table: Any) -> None:
        if table.num_rows:
            delta.write_table(self._state_rows(table).filter(table.column("final")))
            self._append(records, self._grouper.records(table))

    def _rendered(self) -> Iterator[Any]:
        folder = rendered_folder(self._context.work, self._shard)
        for name in folder.files(".parquet"):
            with folder.open_table(name) as file:
                for batch in file.iter_batches(batch_size=ROWS):
                    placed = self._plan.placed(pa.Table.from_batches([batch]))
                    if placed.num_rows:
                        self._upserts += placed.num_rows
                        yield placed

    def _write_deletes(self, records: Any, delta: Any) -> None:
        table = self._context.work.table(DELETIONS_FILE, filters=[("shard", "==", self._shard)])
        if table.num_rows:
            gone = table.select(STATE.names)
            place = STATE.get_field_index("removed")
            delta.write_table(gone.set_column(place, STATE.field(place), pa.array([True] * gone.num_rows)).cast(STATE))
            first_batch = max(self._plan.batches, self._deletions.batches)
            headed = with_tombstone_headers(table, self._envelope)
            moment = self._context.reference_time
            self._append(records, tombstones(headed, moment, first_batch, self._headers))

    def _append(self, records: Any, table: Any) -> None:
        if table is None or not table.num_rows:
            return
        positions = np.arange(self._position, self._position + table.num_rows)
        transactions = positions // self._transaction_records
        table = _add_topic_prefix(table, self._context.order.replay.topic_prefix)
        table = table.append_column("position", pa.array(positions))
        table = table.append_column("transaction", pa.array(transactions))
        table = table.append_column("partition", pa.nulls(table.num_rows, pa.int32()))
        self._position += table.num_rows
        self._count(table)
        records.write_table(table.select(self._schema.names).cast(self._schema), row_group_size=ROW_GROUP)

    def _count(self, table: Any) -> None:
        for name in ("key", "value"):
            self._bytes += pc.sum(pc.binary_length(table.column(name))).as_py() or 0
        for item in pc.value_counts(table.column("topic").cast(pa.string())).to_pylist():
            self._topics[item["values"]] += item["counts"]

    def _transactions(self, folder: StoredFolder) -> int:
        """Counts the transactions; records for very many topics are grouped by topic first."""
        size = self._transaction_records
        if needs_groups(self._topics):
            return group_by_topics(folder, SHARD_FILE, self._topics, transaction_records=size)
        return -(-self._position // size)

    def _state_rows(self, table: Any) -> Any:
        rows = table.num_rows
        columns = {name: table.column(name) for name in STATE.names if name in table.schema.names}
        columns["withheld"] = pa.array([False] * rows)
        columns["sequence"] = pa.array(np.full(rows, self._context.order.sequence))
        return completed(pa.table(columns), STATE.names).cast(STATE)

    def _write_topics(self) -> None:
        table = pa.table(
            {"topic": sorted(self._topics), "records": [self._topics[name] for name in sorted(self._topics)]}
        )
        table = table.cast(pa.schema([("topic", pa.string()), ("records", pa.int64())]))
        self._context.work.folder(TOPICS_FOLDER).write_table(f"{self._shard:05d}.parquet", table)


def _writer(folder: StoredFolder, name: str, schema: Any) -> Any:
    return folder.table_writer(name, schema, compression_level=1, write_page_checksum=True)
