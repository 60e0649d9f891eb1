"""The plan of a run of structures, which the driver makes from narrow rows and state.

It holds transactions, changes of state, and violations of rules about all structures. State holds what the target has
now. For a backfill that says nothing about the past, but it shows which records would undo later ones on a replica.

The records are written without their values; the task that assembles the shard adds the bodies.
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
from contexture.records.changes.structure_plan import (
    StructurePlan,
    StructureRun,
    plan_structures,
    vanishing_structures,
)
from contexture.records.topics.structure_routes import router
from contexture.sources.sdmx.rules.catalogue import REJECTING, StructureRuleOptions, severities
from contexture.sources.sdmx.rules.consistency import ConsistencyViolation, PublishedStructure, check_consistency
from contexture.sources.sdmx.urn import is_registration
from contexture.storage.manifests import LandingManifest
from contexture.storage.schemas import BUNDLED_FILE, STATE
from contexture.storage.shrink_report import ShrinkReport
from contexture.storage.state import StatePointer
from spark_jobs.shared.context import StageContext, check_task_results
from spark_jobs.structures.bundles import bundle_plan, bundle_rows, bundled_structures, is_bundled
from spark_jobs.structures.evaluate import unplanned_folder
from spark_jobs.structures.rows import PLANNED, UNPLANNED, evaluated_rows, quarantined_rows, record_rows

_HELD = ["key", "content_hash", "topics", "withheld", "modified_at", "sequence", "references", "is_final"]


def held_structures(rows: Any) -> dict[str, HeldStructure]:
    """Converts rows of state to structures by URN, in order of their URNs."""
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
    """Writes the rows that concluding the outbox adds to state."""
    delta = preparation.records.state_delta
    delta.write_table("shard-00000.parquet", changed_rows(held, changes), compression="zstd")


def changed_rows(held: Mapping[str, HeldStructure], changes: Mapping[str, HeldStructure | None]) -> Any:
    """Returns the rows that concluding an outbox adds to state."""
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
"""The content of a structure before the first transaction that contains it is unknown."""


def held_before(preparation: StageContext, routes: Routes) -> dict[str, HeldStructure]:
    """Returns the structures before a backfill's interval, as the landing lists them, with topics by today's routes."""
    urns = preparation.landing.structures_before()
    topics = routes.route(urns, held=urns).topics
    return {urn: HeldStructure(_SOME_CONTENT, topics.get(urn, ())) for urn in urns}


def drop_transactions(unplanned: Any, transactions: Sequence[int]) -> Any:
    """Returns the rows without those of these transactions."""
    if not transactions:
        return unplanned
    is_out = pc.is_in(unplanned.column("source_transaction"), value_set=pa.array(transactions, pa.int64()))
    return unplanned.filter(pc.invert(is_out)).combine_chunks()


def drop_superseded(
    plan: StructurePlan, events: Sequence[StructureEvent], now: Mapping[str, HeldStructure]
) -> tuple[StructurePlan, int]:
    """Drops records that would undo later ones on a replica; returns the plan and the number of dropped records.

    A value remains if it is the last record of its structure in a topic, and the target has just that content there. A
    tombstone remains if it is the last record, and the target has nothing there.
    """
    contents = {event.event: event.content_hash for event in events}
    last = {(each.urn, each.topic): each for step in plan.transactions for each in step.records}
    kept: list[PlannedTransaction] = []
    for transaction in plan.transactions:
        records = tuple(
            each
            for each in transaction.records
            if last[each.urn, each.topic] is each and _matches_target(each, contents, now.get(each.urn))
        )
        if records:
            kept.append(replace(transaction, records=records))
    every = sum(len(transaction.records) for transaction in plan.transactions)
    return replace(plan, transactions=tuple(kept)), every - sum(len(transaction.records) for transaction in kept)


def _matches_target(record: PlannedRecord, contents: Mapping[int, bytes], held: HeldStructure | None) -> bool:
    is_there = held is not None and record.topic in held.topics
    if record.event is None:
        return not is_there
    return held is not None and is_there and held.content_hash == contents[record.event]


def reroute(records: Any, prefix: str) -> Any:
    """Returns planned records with prefixed topics; an empty prefix changes nothing."""
    if not prefix:
        return records
    topics = pc.binary_join_element_wise(prefix, records.column("topic").cast(pa.string()), "")
    return records.set_column(records.schema.get_field_index("topic"), "topic", topics).cast(PLANNED)


_CYCLES_SHOWN = 5
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StructureRunPlan:
    """The plan of a run, with its tables.

    Attributes:
        plan: of the structures.
        held: what the target had before.
        rows: one per landing row, with its final verdict; the columns of EVALUATED.
        records: in sending order; the columns of PLANNED, or of PLANNED_BUNDLES.
        quarantined: the violations for quarantine; the columns of QUARANTINED.
        skipped_newer: how many records of a backfill are dropped because the target has something newer.
    """

    plan: StructurePlan
    held: Mapping[str, HeldStructure]
    rows: Any
    records: Any
    quarantined: Any
    skipped_newer: int = 0


def plan_run(preparation: StageContext, landing: LandingManifest) -> StructureRunPlan:
    """Plans the records of a landing, and writes its changes of state.

    Raises:
        ConfigurationError: more structures are gone than the limits allow, or Kafka takes two topics for one.
        RetriableError: the storage does not list all results of the evaluation.
    """
    evaluated = _read_unplanned(preparation)
    check_task_results(evaluated.num_rows, landing.rows, "landed structures")
    unplanned = drop_transactions(evaluated, landing.skipped_transactions)
    state = preparation.store.state
    pointer = StatePointer.model_validate_json(preparation.pointer_json)
    held = held_structures(state.table(pointer))
    if preparation.is_backfill:
        return _plan_past(preparation, landing, unplanned, held)
    events, run = _events(unplanned), _run(preparation, landing)
    try:
        plan = plan_structures(events, held, router(SdmxPublication.of(preparation.publication).topics), run)
    except ConfigurationError as error:
        if "vanishing" in error.context:
            gone = vanishing_structures(events, held, proves_absence=run.proves_absence)
            _write_shrink_report(preparation, gone, held, run)
        raise
    for cycle in plan.cycles[:_CYCLES_SHOWN]:
        _log.warning("%d structures refer to each other, the first is %s", len(cycle), cycle[0])
    write_changes(preparation, held, plan.changes)
    planned = StructureRunPlan(
        plan=plan,
        held=held,
        rows=evaluated_rows(unplanned, plan),
        records=record_rows(unplanned, plan, preparation.reference_time),
        quarantined=quarantined_rows(unplanned, plan),
    )
    return _bundled(preparation, planned)


def _bundled(preparation: StageContext, planned: StructureRunPlan) -> StructureRunPlan:
    if not is_bundled(SdmxPublication.of(preparation.publication)):
        return planned
    if planned.records.num_rows:
        preparation.records.write_table(BUNDLED_FILE, bundled_structures(planned.records))
    return replace(planned, plan=bundle_plan(planned.plan), records=bundle_rows(planned.records))


def _write_shrink_report(
    preparation: StageContext, gone: Sequence[str], held: Mapping[str, Any], run: StructureRun
) -> None:
    """Writes which structures would disappear, for the person who decides about it."""
    # Data registrations have a limit of their own.
    of = sum(map(is_registration, held)) if all(map(is_registration, gone)) else len(held)
    report = ShrinkReport.of(gone, count=len(gone), held=of, limit=run.guard.limit(of))
    preparation.store.run(preparation.order.run).write_shrink_report(report)


def _plan_past(
    preparation: StageContext,
    landing: LandingManifest,
    unplanned: Any,
    now: Mapping[str, HeldStructure],
) -> StructureRunPlan:
    """Plans past transactions from the structures before them; state stays as it is."""
    routes, events, skipped = router(SdmxPublication.of(preparation.publication).topics), _events(unplanned), 0
    before = held_before(preparation, routes)
    # What the past deleted was decided then.
    plan = plan_structures(events, before, routes, replace(_run(preparation, landing), confirmed=True))
    if preparation.skips_outdated:
        plan, skipped = drop_superseded(plan, events, now)
    records = record_rows(unplanned, plan, preparation.reference_time)
    planned = StructureRunPlan(
        plan=plan,
        # The content of structures before the interval is unknown.
        held={urn: replace(there, content_hash=NO_CONTENT) for urn, there in before.items()},
        rows=evaluated_rows(unplanned, plan),
        records=reroute(records, preparation.order.replay.topic_prefix),
        quarantined=quarantined_rows(unplanned, plan),
        skipped_newer=skipped,
    )
    return _bundled(preparation, planned)


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


def _read_unplanned(preparation: StageContext) -> Any:
    dataset = unplanned_folder(preparation.work).dataset(schema=UNPLANNED)
    return dataset.to_table().sort_by("event").combine_chunks()


_OF_EVENT = [
    *("event", "operation", "verdict", "urn", "source_transaction", "modified_at", "content_hash"),
    *("references", "is_final"),
]


def _events(unplanned: Any) -> list[StructureEvent]:
    return [_event(row) for row in unplanned.select(_OF_EVENT).to_pylist()]


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
"""The schema of structures that break rules about all structures: some of each rule."""

_SAMPLES_OF_A_RULE = 10
_BROKEN_SHOWN = 20
_PUBLISHED_COLUMNS = ["urn", "content_hash", "references", "is_final"]


def broken_rules(
    preparation: StageContext, landing: LandingManifest, planned: StructureRunPlan
) -> tuple[dict[str, int], dict[str, int]]:
    """Returns how often each counted rule is broken, and how often each rule that rejects the run."""
    options = StructureRuleOptions.for_publication(SdmxPublication.of(preparation.publication))
    # A complete landing after a gap contains transactions of the log too.
    in_turn = not landing.complete or planned.rows.column("source_transaction").null_count < planned.rows.num_rows
    broken = _broken(planned, options, in_turn=in_turn)
    _log_first(broken)
    _write_samples(preparation, broken)
    found = Counter(each.violation.rule for each in broken)
    found["count-drop"] = planned.plan.dropped
    if landing.complete:
        found["count-mismatch"] = abs(_count_present(planned) - landing.source_count)
    wanted = options.severities
    warned = {rule: number for rule, number in found.items() if number and wanted.get(rule) == "warning"}
    rejecting = {rule: found[rule] for rule in REJECTING if found[rule] and wanted.get(rule) == "error"}
    return warned | _unpublished(planned), rejecting


def _broken(planned: StructureRunPlan, options: StructureRuleOptions, *, in_turn: bool) -> list[ConsistencyViolation]:
    accepted = planned.rows.filter(pc.less_equal(planned.rows.column("verdict"), int(ChangeKind.UNCHANGED)))
    read = [PublishedStructure(**row) for row in accepted.select(_PUBLISHED_COLUMNS).to_pylist()]
    published = {urn: held.content_hash for urn, held in planned.held.items() if held.content_hash != NO_CONTENT}
    final = {urn: held.is_final for urn, held in planned.held.items() if held.is_final is not None}
    gone = {urn for urn, held in planned.plan.changes.items() if held is None}
    shown = [*_shown(planned).to_pylist(), *(urn for urn in planned.held if urn not in gone)]
    return check_consistency(read, published, options, final=final, gone=gone, shown=shown, in_turn=in_turn)


SAMPLES_FILE = "samples.parquet"
"""The first structures of each broken rule, which the report names; in the work folder."""


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


def _count_present(planned: StructureRunPlan) -> int:
    """Returns how many structures the landing contains whose last row is no deletion."""
    last = dict(zip(*(planned.rows.column(name).to_pylist() for name in ("urn", "operation")), strict=True))
    return sum(operation != "delete" for urn, operation in last.items() if urn is not None)


def _shown(planned: StructureRunPlan) -> pa.ChunkedArray:
    is_shown = pc.not_equal(planned.rows.column("operation"), "delete")
    return planned.rows.filter(is_shown).column("urn").drop_null()


def _unpublished(planned: StructureRunPlan) -> dict[str, int]:
    """Returns how many structures no topic gets although they break no rule, by reason."""
    inexpressible = pc.sum(pc.equal(planned.rows.column("operation"), "inexpressible")).as_py() or 0
    counted = {
        "inexpressible": inexpressible,
        "unrouted": len(planned.plan.unrouted),
        "unserved-route": len(planned.plan.unserved),
    }
    return {rule: number for rule, number in counted.items() if number}
