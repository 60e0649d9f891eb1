"""The narrow rows that planning counts in: hashes, times, verdicts and topics, never bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.kafka.partitioner import shards_for
from contexture.records.changes import ChangeKind
from contexture.storage.folder import StoredFolder
from contexture.storage.orders import Retry
from contexture.storage.schemas import with_headers
from contexture.storage.state import StateReader
from spark_jobs.entities.attributes import ATTRIBUTE_ROWS, AttributeRow, Values
from spark_jobs.quality.columns import column_names
from spark_jobs.shared.context import MAXIMUM_PARTS, RunFiles, StageContext, check_task_results

RENDERED = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("topics", pa.list_(pa.string()), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("identity", pa.binary(), nullable=False),
        pa.field("identity_hash", pa.binary(16), nullable=False),
        pa.field("entity_hash", pa.binary(16), nullable=False),
        pa.field("content_hash", pa.binary(32), nullable=False),
        pa.field("modified_at", pa.timestamp("us", tz="UTC")),
        pa.field("expires_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""One event with everything its records and its row of state need; headers that vary follow as `header:<name>`."""


class RenderedRow(NamedTuple):
    """A row of `RENDERED` without its shard; times of change are microseconds since 1970, `timestamp` milliseconds."""

    event: int
    topics: Sequence[str]
    key: bytes | None
    value: bytes | None
    timestamp: int
    identity: bytes
    identity_hash: bytes
    entity_hash: bytes
    content_hash: bytes
    modified_at: int | None
    expires_at: datetime | None
    headers: tuple[bytes | None, ...]


RENDERED_FOLDER = "rendered"
TOPICS_FOLDER = "topics"
DELETIONS_FILE = "deletions.parquet"


def rendered_folder(work: StoredFolder, shard: int) -> StoredFolder:
    """Where the rendered events of one shard lie."""
    return work.folder(f"{RENDERED_FOLDER}/shard={shard}")


def write_rendered(files: RunFiles, work: StoredFolder, events: Any) -> None:
    """Appends a table of the RENDERED schema (and headers), in order, to the files of its shards."""
    shards = events.column("shard")
    for shard in pc.unique(shards).to_pylist():
        files.write(rendered_folder(work, shard), events.filter(pc.equal(shards, shard)))


_EVENT_FIELDS = [
    pa.field("event", pa.int64(), nullable=False),
    pa.field("part", pa.int32(), nullable=False),
    pa.field("verdict", pa.int32(), nullable=False),
    pa.field("identity_hash", pa.binary(16), nullable=False),
    pa.field("entity_hash", pa.binary(16), nullable=False),
    pa.field("content_hash", pa.binary(32)),
    pa.field("modified_at", pa.timestamp("us", tz="UTC")),
    pa.field("entity_modified_at", pa.timestamp("us", tz="UTC")),
    pa.field("expires_at", pa.timestamp("us", tz="UTC")),
    pa.field("received_at", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("notified", pa.bool_(), nullable=False),
    pa.field("identified", pa.bool_(), nullable=False),
    pa.field("rules", pa.string()),
    pa.field("warnings", pa.string()),
    pa.field("identity", pa.string(), nullable=False),
    pa.field("service_path", pa.string(), nullable=False),
    pa.field("id", pa.string(), nullable=False),
    pa.field("type", pa.string(), nullable=False),
    pa.field("topic", pa.string()),
    pa.field("meaning", pa.int64()),
    pa.field("targets", pa.list_(pa.string())),
]


class NarrowRow(NamedTuple):
    """A narrow row; `judged` holds what the publication's quality asks of attributes, in the order of its columns.

    Times of change and receipt are microseconds since 1970.
    """

    event: int
    part: int
    verdict: int
    identity_hash: bytes
    entity_hash: bytes
    content_hash: bytes | None
    modified_at: int | None
    entity_modified_at: int | None
    expires_at: datetime | None
    received_at: int
    notified: bool
    identified: bool
    rules: str | None
    warnings: str | None
    identity: str
    service_path: str
    id: str
    type: str
    topic: str | None
    meaning: int | None
    targets: Sequence[str] | None
    judged: Values


def evaluated_folder(preparation: StageContext) -> StoredFolder:
    """Where the narrow rows lie."""
    return preparation.work.folder("evaluated")


def evaluated_schema(preparation: StageContext) -> Any:
    """Columns of a narrow row: hashes, times and verdicts for planning; identity, topic and the attributes that the
    publication's quality names for the checkpoint. Bodies are not among them."""
    fields = list(_EVENT_FIELDS)
    for safe in column_names(preparation.publication).values():
        fields += [pa.field(f"type_{safe}", pa.string()), pa.field(f"value_{safe}", pa.float64())]
    return pa.schema(fields)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one landing row (its number within the run) goes to quarantine."""

    row: int
    rule: str
    severity: str
    message: str


@dataclass(slots=True)
class EvaluatedRows:
    """Rows under construction: a narrow one for every event, a rendered one for each that may be sent.

    Attributes:
        refusals: what goes to quarantine.
        attribute_rows: where attributes are judged.
    """

    narrow_rows: list[NarrowRow] = field(default_factory=list)
    rendered_rows: list[RenderedRow] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    attribute_rows: list[AttributeRow] = field(default_factory=list)

    def attributes(self) -> Any:
        """The rows of attributes as a table."""
        return _table(self.attribute_rows, ATTRIBUTE_ROWS)

    def narrow(self, schema: Any) -> Any:
        """The narrow rows as a table."""
        return _table(self.narrow_rows, schema)

    def rendered(self, preparation: StageContext) -> Any:
        """The rendered rows, each with its shard: by key, or by topic where lines are joined or keys lack."""
        place = RENDERED.get_field_index("shard")
        table = _table(self.rendered_rows, with_headers(RENDERED, preparation.headers).remove(place))
        shards = shards_for(self._shard_keys(preparation.joins_lines), preparation.publication.publish.shards)
        return table.add_column(place, RENDERED.field(place), pa.array(shards, pa.int32()))

    def _shard_keys(self, joins_lines: bool) -> list[bytes]:
        return [row.topics[0].encode() if row.key is None or joins_lines else row.key for row in self.rendered_rows]


def _table(rows: Sequence[tuple[Any, ...]], schema: Any) -> Any:
    """Rows as a table; a last field that is a tuple holds the columns that differ from publication to publication."""
    if not rows:
        return schema.empty_table()
    columns = [*zip(*rows, strict=True)]
    if isinstance(rows[0][-1], tuple):
        columns[-1:] = zip(*columns[-1], strict=True)
    return pa.table([pa.array(column, item.type) for column, item in zip(columns, schema, strict=True)], schema=schema)


def outdated(snapshot: Any, reader: StateReader, sequence: int) -> Any:
    """Rows of the snapshot whose identity the target holds newer: by the time of change, or, where that is the same or
    not known, because it was sent by a later run than the one that refused the event. An entity may be notified several
    times before one run: what that run sent of it counts as newer then, for nothing shows which came last.

    Args:
        snapshot: with `identity_hash`, `entity_hash`, `modified_at` and `notified`.
        reader: the state.
        sequence: of the last outbox that was sent when the events were refused, that of their own run included.
    """
    rows = _held(snapshot, reader, ["identity_hash", "modified_at", "sequence"])
    newer = pc.greater(rows.column("modified_at"), snapshot.column("modified_at"))
    older = pc.less(rows.column("modified_at"), snapshot.column("modified_at"))
    sent_before = pc.if_else(snapshot.column("notified"), pa.scalar(sequence - 1), pa.scalar(sequence))
    sent_later = pc.greater(rows.column("sequence"), sent_before)
    is_outdated = pc.or_(pc.fill_null(newer, False), pc.and_(sent_later, pc.invert(pc.fill_null(older, False))))
    return np.flatnonzero(np.asarray(pc.fill_null(is_outdated, False)))


def superseded_by_state(snapshot: Any, reader: StateReader) -> Any:
    """Rows of the snapshot that would undo what the target holds: it has something newer, or nothing (any more), or
    no one knows which of both is newer. Arguments as of `outdated`.
    """
    rows = _held(snapshot, reader, ["identity_hash", "modified_at"])
    is_newest = pc.less_equal(rows.column("modified_at"), snapshot.column("modified_at"))
    return np.flatnonzero(~np.asarray(pc.fill_null(is_newest, False)))


def _held(snapshot: Any, reader: StateReader, columns: list[str]) -> Any:
    """The state row of each row of the snapshot; nulls where there is none."""
    held = reader.of_entities(snapshot.column("entity_hash"), columns)
    places = pc.index_in(snapshot.column("identity_hash"), value_set=held.column("identity_hash").combine_chunks())
    return held.take(places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places)


NARROW = [
    *("event", "verdict", "identity_hash", "entity_hash", "content_hash"),
    *("modified_at", "entity_modified_at", "expires_at", "received_at", "topic", "meaning"),
    *("notified", "identified"),
]


def narrow_rows(preparation: StageContext, landed: int) -> Any:
    """Narrow columns in order of events, the order in which everything downstream counts.

    Args:
        preparation: what is prepared.
        landed: how many objects were landed; each has an event at least, the first of which is its part 0.

    Raises:
        RetriableError: the storage does not show those of all.
    """
    dataset = preparation.work.folder("evaluated").dataset()
    table = dataset.to_table(columns=NARROW)
    first_parts = (table.column("event").to_numpy() & (MAXIMUM_PARTS - 1)) == 0
    check_task_results(int(first_parts.sum()), landed, "landed objects")
    return table.sort_by("event").combine_chunks()


def without_outdated(preparation: StageContext, snapshot: Any, reader: StateReader) -> tuple[Any, int]:
    """The snapshot without events of an earlier time that the target holds newer, and how many of these were accepted.

    Such are those that are tried again, and on a replica those of a history.
    """
    if preparation.order.retry is not None:
        rows = outdated(snapshot, reader, _last_sent(preparation, preparation.order.retry))
    elif preparation.skips_outdated:
        rows = superseded_by_state(snapshot, reader)
    else:
        return snapshot, 0
    skipped = int((np.asarray(snapshot.column("verdict"))[rows] <= ChangeKind.UNCHANGED).sum())
    return snapshot.take(pa.array(np.delete(np.arange(snapshot.num_rows), rows))), skipped


def _last_sent(preparation: StageContext, retry: Retry) -> int:
    """The sequence of the last outbox that was sent when the retried events were refused."""
    outboxes = preparation.store.outboxes
    sequence = outboxes.manifest(retry.outbox).sequence
    # Of an outbox that was never sent the next one took the number.
    return sequence if outboxes.status(retry.outbox).status == "concluded" else sequence - 1
