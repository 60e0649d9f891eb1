"""The rows that evaluating one run of landing rows gives, column by column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from contexture.kafka.partitioner import shards_for
from spark_jobs.preparation.rendered import RENDERED
from spark_jobs.preparation.settings import Preparation
from spark_jobs.quality.columns import column_names

_EVENT_FIELDS = [
    pa.field("event", pa.int64(), nullable=False),
    pa.field("ordinal", pa.int64(), nullable=False),
    pa.field("part", pa.int32(), nullable=False),
    pa.field("verdict", pa.int32(), nullable=False),
    pa.field("identity_hash", pa.binary(), nullable=False),
    pa.field("entity_hash", pa.binary(), nullable=False),
    pa.field("content_hash", pa.binary()),
    pa.field("modified_at", pa.timestamp("us", tz="UTC")),
    pa.field("received_at", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("rules", pa.string()),
    pa.field("warnings", pa.string()),
    pa.field("identity", pa.string()),
    pa.field("service", pa.string()),
    pa.field("service_path", pa.string()),
    pa.field("id", pa.string()),
    pa.field("type", pa.string()),
    pa.field("topic", pa.string()),
]


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
    """Columns under construction: narrow ones for every event, rendered ones for those to be sent."""

    schema: Any
    joins_lines: bool
    narrow_columns: dict[str, list[object]] = field(init=False)
    rendered_columns: dict[str, list[object]] = field(init=False)
    refusals: list[Refusal] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.narrow_columns = {name: [] for name in self.schema.names}
        self.rendered_columns = {name: [] for name in RENDERED.names if name != "shard"}

    def narrow(self) -> Any:
        """The narrow rows as one record batch."""
        columns = [pa.array(self.narrow_columns[item.name], item.type) for item in self.schema]
        return pa.record_batch(columns, schema=self.schema)

    def rendered(self, shards: int) -> Any:
        """The rendered rows, each with its shard: by key, or by topic where lines are joined or keys lack."""
        columns = {
            name: pa.array(self.rendered_columns[name], RENDERED.field(name).type)
            for name in RENDERED.names
            if name != "shard"
        }
        columns["shard"] = pa.array(shards_for(self._shard_keys(), shards), pa.int32())
        return pa.table([columns[name] for name in RENDERED.names], schema=RENDERED)

    def _shard_keys(self) -> list[bytes]:
        topics, keys = self.rendered_columns["topics"], self.rendered_columns["key"]
        if self.joins_lines:
            return [names[0].encode() for names in topics]  # type: ignore[index]
        return [names[0].encode() if key is None else key for names, key in zip(topics, keys, strict=True)]  # type: ignore[index,misc]
