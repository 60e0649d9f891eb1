"""The manifest of a prepared outbox: its records, and the counts of its preparation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.records.changes import ChangeKind
from contexture.records.messages.envelopes import envelope
from contexture.sources.ngsi.rules.catalogue import REJECTING, severities
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import LandingManifest, Manifest, ShardManifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import SHARD_FILE
from contexture.storage.replay import backfill_headers, check_topics
from spark_jobs.entities.collisions import RULE as COLLISION
from spark_jobs.entities.plan import RULE as DUPLICATE
from spark_jobs.entities.plan import EntityPlan
from spark_jobs.entities.rows import TOPICS_FOLDER
from spark_jobs.entities.superseded import current_rows
from spark_jobs.shared.context import StageContext
from spark_jobs.shared.outbox import run_facts


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The counts of events by verdict, and of refusals and warnings by rule.

    `quarantined_entities` counts each event once. Events that a newer version supersedes are not counted.
    """

    accepted: int
    unchanged: int
    quarantined: dict[str, int]
    quarantined_entities: int
    warnings: dict[str, int]


def count_events(context: StageContext, planned: EntityPlan) -> RunCounts:
    """Counts the narrow rows by verdict, with the changes that planning made to verdicts."""
    table = current_rows(context.work, ["event", "verdict", "rules", "warnings"])
    verdicts, numbers = np.asarray(table.column("verdict")).copy(), table.column("event").to_numpy()
    verdicts[np.isin(numbers, planned.sent_in_sequence)] = ChangeKind.SEND
    verdicts[np.isin(numbers, planned.unchanged_in_sequence) & (verdicts <= ChangeKind.UNCHANGED)] = (
        ChangeKind.UNCHANGED
    )
    by_planning = {DUPLICATE: planned.conflicting, COLLISION: planned.collided}
    for events in by_planning.values():
        verdicts[np.isin(numbers, events)] = ChangeKind.QUARANTINED
    refused = _by_rule(table.column("rules"))
    refused |= {rule: len(events) for rule, events in by_planning.items() if len(events)}
    return RunCounts(
        accepted=int((verdicts <= ChangeKind.UNCHANGED).sum()),
        unchanged=int((verdicts == ChangeKind.UNCHANGED).sum()),
        quarantined=refused,
        quarantined_entities=int((verdicts == ChangeKind.QUARANTINED).sum()),
        warnings=_by_rule(table.column("warnings")),
    )


def newest_modification(work: StoredFolder) -> datetime | None:
    """Returns the newest time of change of the accepted events, UTC; None if none of them has one."""
    rows = current_rows(work, ["modified_at"], ds.field("verdict") <= int(ChangeKind.UNCHANGED))
    newest: datetime | None = pc.max(rows["modified_at"]).as_py()
    return newest


def _by_rule(column: Any) -> dict[str, int]:
    rules: Counter[str] = Counter()
    for item in pc.value_counts(column.drop_null()).to_pylist():
        for rule in item["values"].split(","):
            rules[rule] += item["counts"]
    return dict(sorted(rules.items()))


@dataclass(frozen=True, slots=True)
class PreparationResult:
    """The results of the steps of a preparation.

    Attributes:
        shards: the rows of `assemble.SUMMARY`, by shard.
        of_snapshot: how often each rule about the whole snapshot is broken.
    """

    planned: EntityPlan
    counts: RunCounts
    shards: list[dict[str, int]]
    of_snapshot: dict[str, int]


def build_manifest(context: StageContext, landing: LandingManifest, result: PreparationResult) -> Manifest:
    """Builds the manifest of the outbox whose shards are on storage, and writes its list of topics."""
    planned, counts = result.planned, result.counts
    warned, rejecting = _by_severity(context, result.of_snapshot)
    return Manifest(
        **run_facts(context, landing),
        shards=tuple(_shard(context, row) for row in result.shards),
        topics=_merge_topics(context),
        accepted=counts.accepted,
        unchanged=counts.unchanged,
        quarantined=counts.quarantined,
        quarantined_entities=counts.quarantined_entities,
        warnings=dict(sorted({**counts.warnings, **warned, **_collisions(planned)}.items())),
        repeated=planned.repeated,
        upserts=planned.upserts,
        deletes=planned.deletes,
        absent=planned.absent,
        collisions=planned.collisions,
        skipped_newer=planned.skipped_newer,
        of_snapshot=rejecting,
        headers=_headers(context.order),
    )


def _headers(order: StageOrder) -> tuple[tuple[str, str], ...]:
    """Returns the headers of every record: those of the envelope, and the mark of a backfill, as in a replay."""
    message_envelope = envelope(order.publication)
    return backfill_headers(order, message_envelope.constant if message_envelope is not None else ())


def _collisions(planned: EntityPlan) -> dict[str, int]:
    """Returns the number of collisions that are sent nevertheless."""
    sent = planned.collisions - len(planned.collided)
    return {COLLISION: sent} if sent else {}


def _by_severity(context: StageContext, of_snapshot: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the broken rules that are only counted, and those that reject the run."""
    severity_of = severities(context.publication.quality.rules)
    broken = {rule: number for rule, number in of_snapshot.items() if number}
    warned = {rule: number for rule, number in broken.items() if severity_of.get(rule) == "warning"}
    return warned, {rule: broken[rule] for rule in REJECTING if rule in broken and severity_of.get(rule) == "error"}


def _shard(context: StageContext, row: dict[str, int]) -> ShardManifest:
    folder = context.records.shard(row["shard"])
    return ShardManifest(
        **row,
        file=SHARD_FILE if row["records"] else None,
        sha256=folder.sha256(SHARD_FILE) if row["records"] else None,
    )


def _merge_topics(context: StageContext) -> int:
    """Writes the topics of all shards with their numbers of records, sorted; returns how many topics there are."""
    folder = context.work.folder(TOPICS_FOLDER)
    parts = [folder.table(name) for name in folder.files(".parquet")]
    merged = pa.concat_tables(parts).group_by("topic", use_threads=False).aggregate([("records", "sum")])
    merged = merged.rename_columns(["topic", "records"]).sort_by("topic")
    prefix = context.order.replay.topic_prefix
    if prefix:
        check_topics(context.store, prefix, merged.column("topic").to_pylist())
    context.records.write_topics(merged)
    return int(merged.num_rows)
