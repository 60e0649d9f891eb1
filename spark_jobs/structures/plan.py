"""Planning structures on the driver over narrow rows and state: transactions, state, and rules about all of them.

State knows what the target holds now. That says nothing of then, but on a replica it says what would be undone.

The records are written without their values; the task that assembles the shard puts in the bodies.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.events import identity_hash
from contexture.publications import SdmxPublication
from contexture.records.changes import ChangeKind, ShrinkGuard
from contexture.records.changes.structure_changes import (
    NO_CONTENT,
    HeldStructure,
    PlannedRecord,
    PlannedTransaction,
    PublishMode,
    Routes,
    StructureEvent,
)
from contexture.records.changes.structure_plan import StructurePlan, StructureRun, plan_structures
from contexture.records.topics.structure_routes import router
from contexture.sources.sdmx.rules.catalogue import REJECTING, StructureRuleOptions, severities
from contexture.sources.sdmx.rules.consistency import ConsistencyViolation, PublishedStructure, check_consistency
from contexture.storage.manifests import LandingManifest
from contexture.storage.schemas import STATE
from contexture.storage.shrink_report import ShrinkReport
from contexture.storage.state import StatePointer
from spark_jobs.shared.context import StageContext, check_task_results
from spark_jobs.structures.evaluate import looked_at_folder
from spark_jobs.structures.rows import LOOKED_AT, PLANNED, judged_rows, quarantined_rows, record_rows

_HELD = ["key", "content_hash", "topics", "withheld", "modified_at", "sequence", "references", "is_final"]


def held_structures(rows: Any) -> dict[str, HeldStructure]:
    """The structures of state, by URN, in order of their URNs."""
    columns = (rows.column(name).to_pylist() for name in _HELD)
    found = {
        key.decode(): HeldStructure(
            content_hash, tuple(topics), withheld, at, sequence, tuple(references or ()), is_final
        )
        for key, content_hash, topics, withheld, at, sequence, references, is_final in zip(*columns, strict=True)
    }
    return dict(sorted(found.items()))


def write_changes(
    preparation: StageContext,
    held: Mapping[str, HeldStructure],
    changes: Mapping[str, HeldStructure | None],
) -> None:
    """Writes what concluding the outbox changes in state."""
    delta = preparation.records.state_delta
    delta.write_table("shard-00000.parquet", changed_rows(held, changes), compression="zstd")


def changed_rows(held: Mapping[str, HeldStructure], changes: Mapping[str, HeldStructure | None]) -> Any:
    """The rows of state that concluding an outbox adds to those before."""
    return pa.Table.from_pylist(list(_rows(held, changes)), schema=STATE)


def _rows(held: Mapping[str, HeldStructure], changes: Mapping[str, HeldStructure | None]) -> Iterator[dict[str, Any]]:
    for urn, after in changes.items():
        key = urn.encode()
        hashed = identity_hash(key)
        row = after or held[urn]
        yield {
            "identity_hash": hashed,
            "entity_hash": hashed,
            "identity": key,
            "content_hash": row.content_hash,
            "topics": row.topics,
            "key": key,
            "modified_at": row.at,
            "missing_since": None,
            "withheld": row.withheld,
            "sequence": row.sequence,
            "removed": after is None,
            "expires_at": None,
            "references": row.references,
            "is_final": row.is_final,
        }


_SOME_CONTENT = b"\x01" * 32
"""No one knows what a structure was before the first transaction that tells it."""


def held_before(preparation: StageContext, routes: Routes) -> dict[str, HeldStructure]:
    """What the target held of the structures that there were, by today's routes; the landing says which."""
    urns = preparation.landing.structures_before()
    topics = routes.route(urns, held=urns).topics
    return {urn: HeldStructure(_SOME_CONTENT, topics.get(urn, ())) for urn in urns}


def without(looked_at: Any, transactions: Sequence[int]) -> Any:
    """The rows without those of transactions of which not all was landed."""
    if not transactions:
        return looked_at
    is_out = pc.is_in(looked_at.column("source_transaction"), value_set=pa.array(transactions, pa.int64()))
    return looked_at.filter(pc.invert(is_out)).combine_chunks()


def drop_superseded(
    plan: StructurePlan, events: Sequence[StructureEvent], now: Mapping[str, HeldStructure]
) -> tuple[StructurePlan, int]:
    """The plan with what undoes nothing on a replica, and how many records are left out.

    A value is kept where it is the last of its structure in a topic, and the target holds just that content there; a
    tombstone, where it is the last word too, and the target holds nothing.
    """
    contents = {event.event: event.content_hash for event in events}
    last = {(each.urn, each.topic): each for step in plan.transactions for each in step.records}
    kept: list[PlannedTransaction] = []
    for transaction in plan.transactions:
        records = tuple(
            each
            for each in transaction.records
            if last[each.urn, each.topic] is each and _agrees(each, contents, now.get(each.urn))
        )
        if records:
            kept.append(replace(transaction, records=records))
    every = sum(len(transaction.records) for transaction in plan.transactions)
    return replace(plan, transactions=tuple(kept)), every - sum(len(transaction.records) for transaction in kept)


def _agrees(record: PlannedRecord, contents: Mapping[int, bytes], held: HeldStructure | None) -> bool:
    is_there = held is not None and record.topic in held.topics
    if record.event is None:
        return not is_there
    return held is not None and is_there and held.content_hash == contents[record.event]


def reroute(records: Any, prefix: str) -> Any:
    """Planned records for other topics."""
    if not prefix:
        return records
    topics = pc.binary_join_element_wise(prefix, records.column("topic").cast(pa.string()), "")
    return records.set_column(records.schema.get_field_index("topic"), "topic", topics).cast(PLANNED)


_CYCLES_SHOWN = 5
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StructureRunPlan:
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


def plan_run(preparation: StageContext, landing: LandingManifest) -> StructureRunPlan:
    """Plans what a landing means for the topics, and writes what it changes in state.

    Raises:
        ConfigurationError: more structures are gone than may, or Kafka takes two topics for one.
        RetriableError: the storage does not show all that was found out about them.
    """
    seen = _looked_at(preparation)
    check_task_results(seen.num_rows, landing.rows, "landed structures")
    looked_at = without(seen, landing.skipped_transactions)
    state = preparation.store.state
    pointer = StatePointer.model_validate_json(preparation.pointer_json)
    held = held_structures(state.table(pointer))
    if preparation.is_backfill:
        return _past_plan(preparation, landing, looked_at, held)
    events, run = _events(looked_at), _run(preparation, landing)
    try:
        plan = plan_structures(events, held, router(SdmxPublication.of(preparation.publication).topics), run)
    except ConfigurationError as error:
        if "vanishing" in error.context:
            _keep_vanishing(preparation, sorted(held.keys() - {event.urn for event in events}), held, run)
        raise
    for cycle in plan.cycles[:_CYCLES_SHOWN]:
        _log.warning("%d structures refer to each other, the first is %s", len(cycle), cycle[0])
    write_changes(preparation, held, plan.changes)
    return StructureRunPlan(
        plan=plan,
        held=held,
        rows=judged_rows(looked_at, plan),
        records=record_rows(looked_at, plan, preparation.reference_time),
        quarantined=quarantined_rows(looked_at, plan),
    )


def _keep_vanishing(preparation: StageContext, gone: list[str], held: Mapping[str, Any], run: StructureRun) -> None:
    """Names what would go, for the person who is asked whether it may."""
    report = ShrinkReport.of(gone, count=len(gone), held=len(held), limit=run.guard.limit(len(held)))
    preparation.store.run(preparation.order.run).write_shrink_report(report)


def _past_plan(
    preparation: StageContext,
    landing: LandingManifest,
    looked_at: Any,
    now: Mapping[str, HeldStructure],
) -> StructureRunPlan:
    """What a registry did in the past, told from what there was before it; state has no part in it."""
    routes, events, skipped = router(SdmxPublication.of(preparation.publication).topics), _events(looked_at), 0
    before = held_before(preparation, routes)
    plan = plan_structures(events, before, routes, _run(preparation, landing))
    if preparation.skips_outdated:
        plan, skipped = drop_superseded(plan, events, now)
    records = record_rows(looked_at, plan, preparation.reference_time)
    return StructureRunPlan(
        plan=plan,
        # Of what there was before, no one knows the content.
        held={urn: replace(there, content_hash=NO_CONTENT) for urn, there in before.items()},
        rows=judged_rows(looked_at, plan),
        records=reroute(records, preparation.order.replay.topic_prefix),
        quarantined=quarantined_rows(looked_at, plan),
        skipped_newer=skipped,
    )


def _run(preparation: StageContext, landing: LandingManifest) -> StructureRun:
    source, order = preparation.publication.source, preparation.order
    wanted = severities(preparation.publication.quality.rules)
    limit = source.shrink_limit
    return StructureRun(
        mode=PublishMode(
            sequence=order.sequence,
            everything=preparation.everything,
            sends=not order.baseline,
            deletes=source.detect_deletions,
        ),
        newest=landing.registry_transaction,
        refuses_contradictions=(landing.mode == "full" or landing.complete) and wanted.get("duplicate") == "error",
        proves_absence=landing.complete,
        guard=ShrinkGuard(limit.share, limit.count),
        stops_shrinking=wanted.get("count-drop") == "error",
        stops_emptying=wanted.get("count-zero") == "error",
        confirmed=order.confirm_shrink,
    )


def _looked_at(preparation: StageContext) -> Any:
    dataset = looked_at_folder(preparation.work).dataset(schema=LOOKED_AT)
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
        operation="refused" if row["verdict"] == ChangeKind.QUARANTINED else row["operation"],
        urn=row["urn"],
        transaction=row["source_transaction"],
        at=row["modified_at"],
        content_hash=row["content_hash"] or b"",
        references=tuple(row["references"]),
        is_final=row["is_final"],
    )


SAMPLES = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("rule", "urn", "message")])
"""Structures that break rules about all that is held: some of each rule."""

_SAMPLES_OF_A_RULE = 10
_BROKEN_SHOWN = 20
_TOLD = ["urn", "content_hash", "references", "is_final"]


def broken_rules(
    preparation: StageContext, landing: LandingManifest, planned: StructureRunPlan
) -> tuple[dict[str, int], dict[str, int]]:
    """How often each rule is broken that is only counted, and how often each that rejects the run."""
    options = StructureRuleOptions.for_publication(SdmxPublication.of(preparation.publication))
    # What the log shows behind a catch-up stands in a whole landing too.
    in_turn = not landing.complete or planned.rows.column("source_transaction").null_count < planned.rows.num_rows
    broken = _broken(planned, options, in_turn=in_turn)
    _log_first(broken)
    _write_samples(preparation, broken)
    found = Counter(each.violation.rule for each in broken)
    found["count-drop"] = planned.plan.dropped
    if landing.complete:
        found["count-mismatch"] = abs(_there_in_the_end(planned) - landing.source_count)
    wanted = options.severities
    warned = {rule: number for rule, number in found.items() if number and wanted.get(rule) == "warning"}
    rejecting = {rule: found[rule] for rule in REJECTING if found[rule] and wanted.get(rule) == "error"}
    return warned | _unpublished(planned), rejecting


def _broken(planned: StructureRunPlan, options: StructureRuleOptions, *, in_turn: bool) -> list[ConsistencyViolation]:
    accepted = planned.rows.filter(pc.less_equal(planned.rows.column("verdict"), int(ChangeKind.UNCHANGED)))
    told = [PublishedStructure(**row) for row in accepted.select(_TOLD).to_pylist()]
    published = {urn: held.content_hash for urn, held in planned.held.items() if held.content_hash != NO_CONTENT}
    final = {urn: held.is_final for urn, held in planned.held.items() if held.is_final is not None}
    gone = {urn for urn, held in planned.plan.changes.items() if held is None}
    shown = [*_shown(planned).to_pylist(), *(urn for urn in planned.held if urn not in gone)]
    return check_consistency(told, published, options, final=final, gone=gone, shown=shown, in_turn=in_turn)


SAMPLES_FILE = "samples.parquet"
"""The structures that the report names, those of each rule that come first; in the work folder."""


def _write_samples(preparation: StageContext, broken: list[ConsistencyViolation]) -> None:
    shown: Counter[str] = Counter()
    rows = []
    for each in broken:
        shown[each.violation.rule] += 1
        if shown[each.violation.rule] <= _SAMPLES_OF_A_RULE:
            rows.append({"rule": each.violation.rule, "urn": each.urn, "message": each.violation.message})
    preparation.work.write_table(SAMPLES_FILE, pa.Table.from_pylist(rows, schema=SAMPLES))


def _log_first(broken: list[ConsistencyViolation]) -> None:
    for each in broken[:_BROKEN_SHOWN]:
        _log.warning("%s breaks %s: %s", each.urn, each.violation.rule, each.violation.message)
    if len(broken) > _BROKEN_SHOWN:
        _log.warning("%d more break such rules", len(broken) - _BROKEN_SHOWN)


def _there_in_the_end(planned: StructureRunPlan) -> int:
    """How many structures the landing shows, and says nothing of their end after that."""
    last = dict(zip(*(planned.rows.column(name).to_pylist() for name in ("urn", "operation")), strict=True))
    return sum(operation != "delete" for urn, operation in last.items() if urn is not None)


def _shown(planned: StructureRunPlan) -> pa.ChunkedArray:
    is_shown = pc.not_equal(planned.rows.column("operation"), "delete")
    return planned.rows.filter(is_shown).column("urn").drop_null()


def _unpublished(planned: StructureRunPlan) -> dict[str, int]:
    """What the registry holds and no topic gets, without anyone being at fault."""
    inexpressible = pc.sum(pc.equal(planned.rows.column("operation"), "inexpressible")).as_py() or 0
    counted = {
        "inexpressible": inexpressible,
        "unrouted": len(planned.plan.unrouted),
        "unserved-route": len(planned.plan.unserved),
    }
    return {rule: number for rule, number in counted.items() if number}
