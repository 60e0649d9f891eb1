"""The manifest of a registry's prepared outbox: its records, and the counts of the preparation."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.changes import ChangeKind
from contexture.records.messages.envelopes import structure_envelope
from contexture.storage.manifests import LandingManifest, Manifest, RegistryPart, ShardManifest
from contexture.storage.publication_store import SHARD_FILE
from contexture.storage.replay import backfill_headers, check_topics
from contexture.storage.schemas import TRANSCODED
from spark_jobs.shared.context import StageContext
from spark_jobs.shared.outbox import run_facts
from spark_jobs.structures.plan import StructureRunPlan, broken_rules

_SHOWN = 20
_log = logging.getLogger(__name__)


TRANSCODED_FILE = "transcoded.parquet"
"""The converted structures and their losses; only in outboxes that have some."""


def write_conversions(preparation: StageContext, rows: Any) -> int:
    """Writes the list of converted structures to the outbox, and the first of them to the log; returns their number.

    Args:
        preparation: of the outbox.
        rows: after planning, with the columns of EVALUATED.
    """
    is_accepted = pc.less_equal(rows.column("verdict"), int(ChangeKind.UNCHANGED))
    found = rows.filter(pc.and_(is_accepted, pc.is_valid(rows.column("transcoded_from"))))
    if not found.num_rows:
        return 0
    table = found.select(TRANSCODED.names).cast(TRANSCODED)
    preparation.records.write_table(TRANSCODED_FILE, table)
    _log_first(table)
    return int(table.num_rows)


def _log_first(table: Any) -> None:
    lossy = table.filter(pc.is_valid(table.column("lost")))
    _log.warning("%d structures were converted, %d of them with a loss", table.num_rows, lossy.num_rows)
    for row in lossy.slice(0, _SHOWN).to_pylist():
        _log.warning("%s was converted from %s, without %s", row["urn"], row["transcoded_from"], row["lost"])
    if lossy.num_rows > _SHOWN:
        _log.warning("and %d more: transcoded.parquet of the outbox lists all", lossy.num_rows - _SHOWN)


_TOPICS = pa.schema([pa.field("topic", pa.string()), pa.field("records", pa.int64())])


def build_manifest(
    preparation: StageContext, landing: LandingManifest, planned: StructureRunPlan, size: int
) -> Manifest:
    """Builds the manifest of an outbox whose shard is stored, and writes its list of topics.

    Args:
        preparation: of the outbox.
        landing: of the run.
        planned: the plan of the run.
        size: bytes of keys and values.
    """
    order, envelope = preparation.order, structure_envelope(preparation.order.publication)
    warned, rejecting = broken_rules(preparation, landing, planned)
    return Manifest(
        **run_facts(preparation, landing),
        **_counts(planned),
        shards=(_shard(preparation, planned, size),),
        topics=_write_topics(preparation, planned),
        warnings=dict(sorted((Counter(_by_rule(planned.rows.column("warnings"))) + Counter(warned)).items())),
        of_snapshot=rejecting,
        flush=order.mode == "full",
        baseline=order.baseline,
        headers=backfill_headers(order, envelope.constant if envelope is not None else ()),
        missing=landing.missing,
        transcoded=write_conversions(preparation, planned.rows),
    )


def _counts(planned: StructureRunPlan) -> dict[str, Any]:
    plan, verdicts = planned.plan, Counter(planned.rows.column("verdict").to_pylist())
    return {
        "accepted": verdicts[ChangeKind.SEND] + verdicts[ChangeKind.UNCHANGED],
        "unchanged": verdicts[ChangeKind.UNCHANGED],
        "quarantined": _by_rule(planned.rows.column("rules")),
        "quarantined_entities": verdicts[ChangeKind.QUARANTINED],
        "repeated": plan.repeated,
        "upserts": plan.upserts,
        "deletes": plan.deletes,
        "absent": 0,
        "skipped_newer": planned.skipped_newer,
    }


def _shard(preparation: StageContext, planned: StructureRunPlan, size: int) -> ShardManifest:
    records = planned.records.num_rows
    return ShardManifest(
        shard=0,
        records=records,
        bytes=size,
        transactions=len(planned.plan.transactions),
        file=SHARD_FILE if records else None,
        sha256=preparation.records.shard(0).sha256(SHARD_FILE) if records else None,
        # A backfill publishes nothing that other instances could leave out.
        registry=() if preparation.is_backfill else _parts(planned),
    )


def _parts(planned: StructureRunPlan) -> tuple[RegistryPart, ...]:
    parts = []
    position = 0
    for number, each in enumerate(planned.plan.transactions):
        if each.id is not None:
            part = RegistryPart(
                transaction=number, first_position=position, id=each.id, deletions=each.deletions, at=each.at
            )
            parts.append(part)
        position += len(each.records)
    return tuple(parts)


def _write_topics(preparation: StageContext, planned: StructureRunPlan) -> int:
    """Writes the sorted topics with their numbers of records; returns how many topics there are."""
    counted = Counter(planned.records.column("topic").to_pylist())
    table = pa.table({"topic": sorted(counted), "records": [counted[name] for name in sorted(counted)]}, schema=_TOPICS)
    prefix = preparation.order.replay.topic_prefix
    if prefix:
        check_topics(preparation.store, prefix, sorted(counted))
    preparation.records.write_topics(table)
    return len(counted)


def _by_rule(column: Any) -> dict[str, int]:
    rules: Counter[str] = Counter()
    for item in pc.value_counts(column.drop_null()).to_pylist():
        for rule in item["values"].split(","):
            rules[rule] += item["counts"]
    return dict(sorted(rules.items()))
