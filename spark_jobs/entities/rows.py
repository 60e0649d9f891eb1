"""The rows that evaluation writes: narrow ones for planning and the checkpoint, and rendered ones for the shards."""

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
"""An event with everything that its records and its state row need; headers that vary follow as `header:<name>`."""


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
    """Returns the folder of the rendered events of one shard."""
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
    """A narrow row; `judged` has the values that the publication's quality section judges, in the order of its columns.

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


def evaluated_folder(context: StageContext) -> StoredFolder:
    """Returns the folder of the narrow rows."""
    return context.work.folder("evaluated")


def evaluated_schema(context: StageContext) -> Any:
    """Returns the columns of a narrow row.

    Hashes, times and verdicts are for planning. Identity, topic and the attributes that the publication's quality
    section names are for the checkpoint. Bodies are not included.
    """
    fields = list(_EVENT_FIELDS)
    for safe in column_names(context.publication).values():
        fields += [pa.field(f"type_{safe}", pa.string()), pa.field(f"value_{safe}", pa.float64())]
    return pa.schema(fields)


@dataclass(frozen=True, slots=True)
class RuleRefusal:
    """The rule because of which a landing row (its number within the record batch) goes to quarantine."""

    row: int
    rule: str
    severity: str
    message: str


@dataclass(slots=True)
class EvaluatedRows:
    """The rows of a record batch: a narrow one for every event, a rendered one for each that may be sent.

    Attributes:
        refusals: the rows that go to quarantine.
        attribute_rows: rows of attributes, if the checkpoint judges attributes.
    """

    narrow_rows: list[NarrowRow] = field(default_factory=list)
    rendered_rows: list[RenderedRow] = field(default_factory=list)
    refusals: list[RuleRefusal] = field(default_factory=list)
    attribute_rows: list[AttributeRow] = field(default_factory=list)

    def attributes(self) -> Any:
        """Returns the rows of attributes as a table."""
        return _table(self.attribute_rows, ATTRIBUTE_ROWS)

    def narrow(self, schema: Any) -> Any:
        """Returns the narrow rows as a table."""
        return _table(self.narrow_rows, schema)

    def rendered(self, context: StageContext) -> Any:
        """Returns the rendered rows, each with its shard: by key, or by topic if lines are joined or keys lack."""
        place = RENDERED.get_field_index("shard")
        table = _table(self.rendered_rows, with_headers(RENDERED, context.headers).remove(place))
        shards = shards_for(self._shard_keys(context.joins_lines), context.publication.publish.shards)
        return table.add_column(place, RENDERED.field(place), pa.array(shards, pa.int32()))

    def _shard_keys(self, joins_lines: bool) -> list[bytes]:
        return [row.topics[0].encode() if row.key is None or joins_lines else row.key for row in self.rendered_rows]


def _table(rows: Sequence[tuple[Any, ...]], schema: Any) -> Any:
    """Builds a table of rows; a last field that is a tuple holds the columns that depend on the publication."""
    if not rows:
        return schema.empty_table()
    columns = [*zip(*rows, strict=True)]
    if isinstance(rows[0][-1], tuple):
        columns[-1:] = zip(*columns[-1], strict=True)
    return pa.table([pa.array(column, item.type) for column, item in zip(columns, schema, strict=True)], schema=schema)


def find_outdated(snapshot: Any, reader: StateReader, sequence: int) -> Any:
    """Returns the rows of the snapshot of whose identity the target has a newer version.

    The time of change decides. If it is equal or not known, a version is newer if a later run sent it than the one that
    refused the event. An entity may be notified several times before one run. What that run sent of it counts as newer
    then, because nothing shows which notification came last.

    Args:
        snapshot: with `identity_hash`, `entity_hash`, `modified_at` and `notified`.
        reader: the state.
        sequence: of the last outbox that was sent when the events were refused, including that of their own run.
    """
    rows = _state_rows(snapshot, reader, ["identity_hash", "modified_at", "sequence"])
    newer = pc.greater(rows.column("modified_at"), snapshot.column("modified_at"))
    older = pc.less(rows.column("modified_at"), snapshot.column("modified_at"))
    sent_before = pc.if_else(snapshot.column("notified"), pa.scalar(sequence - 1), pa.scalar(sequence))
    sent_later = pc.greater(rows.column("sequence"), sent_before)
    is_outdated = pc.or_(pc.fill_null(newer, False), pc.and_(sent_later, pc.invert(pc.fill_null(older, False))))
    return np.flatnonzero(np.asarray(pc.fill_null(is_outdated, False)))


def superseded_by_state(snapshot: Any, reader: StateReader) -> Any:
    """Returns the rows of the snapshot that must not replace what the target has.

    The target has a newer version, or it has none (any more), or it is not known which of both is newer. Arguments are
    those of `find_outdated`.
    """
    rows = _state_rows(snapshot, reader, ["identity_hash", "modified_at"])
    is_newest = pc.less_equal(rows.column("modified_at"), snapshot.column("modified_at"))
    return np.flatnonzero(~np.asarray(pc.fill_null(is_newest, False)))


def _state_rows(snapshot: Any, reader: StateReader, columns: list[str]) -> Any:
    """Returns the state row of each row of the snapshot; nulls if there is none."""
    held = reader.of_entities(snapshot.column("entity_hash"), columns)
    places = pc.index_in(snapshot.column("identity_hash"), value_set=held.column("identity_hash").combine_chunks())
    return held.take(places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places)


NARROW = [
    *("event", "verdict", "identity_hash", "entity_hash", "content_hash"),
    *("modified_at", "entity_modified_at", "expires_at", "received_at", "topic", "meaning"),
    *("notified", "identified"),
]


def narrow_rows(context: StageContext, landed: int) -> Any:
    """Reads narrow columns in order of events, which is the order of row numbers in planning.

    Args:
        context: of the stage.
        landed: the number of landed objects; each has at least one event, whose part is 0.

    Raises:
        RetriableError: the storage does not list the rows of all objects.
    """
    dataset = context.work.folder("evaluated").dataset()
    table = dataset.to_table(columns=NARROW)
    first_parts = (table.column("event").to_numpy() & (MAXIMUM_PARTS - 1)) == 0
    check_task_results(int(first_parts.sum()), landed, "landed objects")
    return table.sort_by("event").combine_chunks()


def without_outdated(context: StageContext, snapshot: Any, reader: StateReader) -> tuple[Any, int]:
    """Drops events of an earlier time of which the target has a newer version; returns how many of them were accepted.

    Events that are tried again can be such, and events of a history on a topic that keeps only the latest state.
    """
    if context.order.retry is not None:
        rows = find_outdated(snapshot, reader, _last_sent(context, context.order.retry))
    elif context.skips_outdated:
        rows = superseded_by_state(snapshot, reader)
    else:
        return snapshot, 0
    skipped = int((np.asarray(snapshot.column("verdict"))[rows] <= ChangeKind.UNCHANGED).sum())
    return snapshot.take(pa.array(np.delete(np.arange(snapshot.num_rows), rows))), skipped


def _last_sent(context: StageContext, retry: Retry) -> int:
    """Returns the sequence of the last outbox that was sent when the retried events were refused."""
    outboxes = context.store.outboxes
    sequence = outboxes.manifest(retry.outbox).sequence
    # If an outbox was never sent, the next one took its number.
    return sequence if outboxes.status(retry.outbox).status == "concluded" else sequence - 1
