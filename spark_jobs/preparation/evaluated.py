"""The rows that evaluating one run of landing rows gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from contexture.kafka.partitioner import shards_for
from contexture.storage.schemas import with_headers
from spark_jobs.preparation.attribute_rows import ATTRIBUTE_ROWS
from spark_jobs.preparation.rendered import RENDERED
from spark_jobs.preparation.settings import Preparation
from spark_jobs.quality.columns import column_names

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


def evaluated_folder(preparation: Preparation) -> str:
    """Where the narrow rows lie."""
    return f"{preparation.work}/evaluated"


def evaluated_schema(preparation: Preparation) -> Any:
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
        narrow_rows: tuples in the order of `evaluated_schema`.
        rendered_rows: tuples in the order of `RENDERED`, without the shard, then the values of varying headers.
        refusals: what goes to quarantine.
        attribute_rows: tuples in the order of `attribute_rows.ATTRIBUTE_ROWS`, where attributes are judged.
    """

    narrow_rows: list[tuple[object, ...]] = field(default_factory=list)
    rendered_rows: list[tuple[Any, ...]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    attribute_rows: list[tuple[object, ...]] = field(default_factory=list)

    def attributes(self) -> Any:
        """The rows of attributes as a table."""
        return _table(self.attribute_rows, ATTRIBUTE_ROWS)

    def narrow(self, schema: Any) -> Any:
        """The narrow rows as a table."""
        return _table(self.narrow_rows, schema)

    def rendered(self, preparation: Preparation) -> Any:
        """The rendered rows, each with its shard: by key, or by topic where lines are joined or keys lack."""
        place = RENDERED.get_field_index("shard")
        table = _table(self.rendered_rows, with_headers(RENDERED, preparation.headers).remove(place))
        shards = shards_for(self._shard_keys(preparation.joins_lines), preparation.publication.publish.shards)
        return table.add_column(place, RENDERED.field(place), pa.array(shards, pa.int32()))

    def _shard_keys(self, joins_lines: bool) -> list[bytes]:
        destined = ((topics[0], key) for _, topics, key, *_ in self.rendered_rows)
        return [topic.encode() if key is None or joins_lines else key for topic, key in destined]


def _table(rows: list[tuple[Any, ...]], schema: Any) -> Any:
    if not rows:
        return schema.empty_table()
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(column, item.type) for column, item in zip(columns, schema, strict=True)], schema=schema)
