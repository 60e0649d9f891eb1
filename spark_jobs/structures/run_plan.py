"""Planning a run of structures on the driver: from narrow rows and state to what is sent, refused and held.

The records are written without their values; the task that assembles the shard puts in the bodies.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.dataset as ds

from contexture.errors import ConfigurationError
from contexture.records.changes import ShrinkGuard, Verdict
from contexture.records.changes.structure_changes import NO_CONTENT, HeldStructure, StructureEvent, Telling
from contexture.records.changes.structure_plan import StructurePlan, StructureRun, plan_structures
from contexture.records.topics.structure_routes import router
from contexture.sources.sdmx.rules import severities
from contexture.storage.home import Storage
from contexture.storage.manifests import LandingManifest
from contexture.storage.shrink_report import keep_vanishing
from contexture.storage.state import State, StatePointer
from spark_jobs.preparation.settings import Preparation
from spark_jobs.preparation.whole_work import check_seen
from spark_jobs.structures.columns import LOOKED_AT
from spark_jobs.structures.evaluation import looked_at_folder
from spark_jobs.structures.held import held_structures, write_changes
from spark_jobs.structures.past_plan import held_before, readdressed, still_newest, without
from spark_jobs.structures.planned_rows import judged_rows, quarantined_rows, record_rows

_CYCLES_SHOWN = 5
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What planning a run has found.

    Attributes:
        plan: of the structures.
        held: what the target held before.
        rows: one per landing row, as it is judged in the end; the columns of EVALUATED.
        records: in sending order; the columns of PLANNED.
        quarantined: what goes to quarantine; the columns of QUARANTINED.
        skipped_newer: records of a backfill that are left out because the target holds something newer.
    """

    plan: StructurePlan
    held: Mapping[str, HeldStructure]
    rows: Any
    records: Any
    quarantined: Any
    skipped_newer: int = 0


def plan_run(storage: Storage, preparation: Preparation, landing: LandingManifest) -> RunPlan:
    """Plans what a landing means for the topics, and writes what it changes in state.

    Raises:
        ConfigurationError: more structures are gone than may, or Kafka takes two topics for one.
        RetriableError: the storage does not show all that was found out about them.
    """
    seen = _looked_at(storage, preparation)
    check_seen(seen.num_rows, landing.rows, "landed structures")
    looked_at = without(seen, landing.left_out)
    state = State(storage, preparation.publication.name)
    pointer = StatePointer.model_validate_json(preparation.pointer_json)
    held = held_structures(state.table(pointer))
    if preparation.is_backfill:
        return _past_plan(storage, preparation, landing, looked_at, held)
    events, run = _events(looked_at), _run(preparation, landing)
    try:
        plan = plan_structures(events, held, router(preparation.publication.topics), run)
    except ConfigurationError as error:
        if "vanishing" in error.context:
            _keep_vanishing(storage, preparation, sorted(held.keys() - {event.urn for event in events}), held, run)
        raise
    for cycle in plan.cycles[:_CYCLES_SHOWN]:
        _log.warning("%d structures refer to each other, the first is %s", len(cycle), cycle[0])
    write_changes(storage, preparation, held, plan.changes)
    return RunPlan(
        plan=plan,
        held=held,
        rows=judged_rows(looked_at, plan),
        records=record_rows(looked_at, plan, preparation.reference_time),
        quarantined=quarantined_rows(looked_at, plan),
    )


def _keep_vanishing(
    storage: Storage, preparation: Preparation, gone: list[str], held: Mapping[str, Any], run: StructureRun
) -> None:
    """Names what would go, for the person who is asked whether it may."""
    name, limit = preparation.publication.name, run.guard.limit(len(held))
    order = preparation.order
    keep_vanishing(storage, name, order.run, count=len(gone), held=len(held), limit=limit, identities=gone)


def _past_plan(
    storage: Storage,
    preparation: Preparation,
    landing: LandingManifest,
    looked_at: Any,
    now: Mapping[str, HeldStructure],
) -> RunPlan:
    """What a registry did in the past, told from what there was before it; state has no part in it."""
    routes, events, skipped = router(preparation.publication.topics), _events(looked_at), 0
    before = held_before(storage, preparation, routes)
    plan = plan_structures(events, before, routes, _run(preparation, landing))
    if preparation.skips_outdated:
        plan, skipped = still_newest(plan, events, now)
    records = record_rows(looked_at, plan, preparation.reference_time)
    return RunPlan(
        plan=plan,
        # Of what there was before, nobody knows the content.
        held={urn: replace(there, content_hash=NO_CONTENT) for urn, there in before.items()},
        rows=judged_rows(looked_at, plan),
        records=readdressed(records, preparation.order.replay.topic_prefix),
        quarantined=quarantined_rows(looked_at, plan),
        skipped_newer=skipped,
    )


def _run(preparation: Preparation, landing: LandingManifest) -> StructureRun:
    source, order = preparation.publication.source, preparation.order
    wanted = severities(preparation.publication.quality.rules)
    limit = source.shrink_limit
    return StructureRun(
        telling=Telling(
            sequence=order.sequence,
            everything=preparation.everything,
            sends=not order.baseline,
            deletes=source.detect_deletions,
        ),
        newest=landing.registry_transaction,
        refuses_contradictions=(landing.mode == "full" or landing.complete) and wanted.get("duplicate") == "error",
        tells_absence=landing.complete,
        guard=ShrinkGuard(limit.share, limit.count),
        stops_shrinking=wanted.get("count-drop") == "error",
        stops_emptying=wanted.get("count-zero") == "error",
        confirmed=order.confirm_shrink,
    )


def _looked_at(storage: Storage, preparation: Preparation) -> Any:
    path = storage.path(looked_at_folder(preparation.work))
    dataset = ds.dataset(path, filesystem=storage.filesystem, format="parquet", schema=LOOKED_AT)
    return dataset.to_table().sort_by("event").combine_chunks()


_OF_EVENT = [
    *("event", "operation", "verdict", "urn", "source_transaction", "modified_at", "content_hash"),
    *("references", "is_final"),
]


def _events(looked_at: Any) -> list[StructureEvent]:
    return [_event(row) for row in looked_at.select(_OF_EVENT).to_pylist()]


def _event(row: Mapping[str, Any]) -> StructureEvent:
    return StructureEvent(
        event=row["event"],
        operation="refused" if row["verdict"] == Verdict.QUARANTINED else row["operation"],
        urn=row["urn"],
        transaction=row["source_transaction"],
        at=row["modified_at"],
        content_hash=row["content_hash"] or b"",
        references=tuple(row["references"]),
        is_final=row["is_final"],
    )
