"""Rules about all that a registry holds, counted on the driver over narrow rows and state."""

from __future__ import annotations

import logging
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.records.changes import Verdict
from contexture.records.changes.structure_changes import NO_CONTENT
from contexture.sources.sdmx.rules import REJECTING, Broken, RuleOptions, Told, check_held
from contexture.storage.home import Storage
from contexture.storage.manifests import LandingManifest
from spark_jobs.preparation.settings import Preparation
from spark_jobs.structures.run_plan import RunPlan

SAMPLES = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("rule", "urn", "message")])
"""Structures that break rules about all that is held: some of each rule."""

_SAMPLES_OF_A_RULE = 10
_BROKEN_SHOWN = 20
_log = logging.getLogger(__name__)
_TOLD = ["urn", "content_hash", "references", "is_final"]


def broken_rules(
    preparation: Preparation, landing: LandingManifest, planned: RunPlan
) -> tuple[dict[str, int], dict[str, int]]:
    """How often each rule is broken that is only counted, and how often each that rejects the run."""
    options = RuleOptions.for_publication(preparation.publication)
    # What the log tells behind a catch-up stands in a whole landing too.
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


def _broken(planned: RunPlan, options: RuleOptions, *, in_turn: bool) -> list[Broken]:
    accepted = planned.rows.filter(pc.less_equal(planned.rows.column("verdict"), int(Verdict.UNCHANGED)))
    told = [Told(**row) for row in accepted.select(_TOLD).to_pylist()]
    published = {urn: held.content_hash for urn, held in planned.held.items() if held.content_hash != NO_CONTENT}
    final = {urn: held.is_final for urn, held in planned.held.items() if held.is_final is not None}
    gone = {urn for urn, held in planned.plan.changes.items() if held is None}
    shown = [*_shown(planned).to_pylist(), *(urn for urn in planned.held if urn not in gone)]
    return check_held(told, published, options, final=final, gone=gone, shown=shown, in_turn=in_turn)


def samples_file(work: str) -> str:
    """Where the structures lie that the report names, those of each rule that come first."""
    return f"{work}/samples.parquet"


def _write_samples(preparation: Preparation, broken: list[Broken]) -> None:
    shown: Counter[str] = Counter()
    rows = []
    for each in broken:
        shown[each.violation.rule] += 1
        if shown[each.violation.rule] <= _SAMPLES_OF_A_RULE:
            rows.append({"rule": each.violation.rule, "urn": each.urn, "message": each.violation.message})
    storage = Storage(preparation.home)
    with storage.replacing(samples_file(preparation.work)) as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=SAMPLES), path, filesystem=storage.filesystem)


def _log_first(broken: list[Broken]) -> None:
    for each in broken[:_BROKEN_SHOWN]:
        _log.warning("%s breaks %s: %s", each.urn, each.violation.rule, each.violation.message)
    if len(broken) > _BROKEN_SHOWN:
        _log.warning("%d more break such rules", len(broken) - _BROKEN_SHOWN)


def _there_in_the_end(planned: RunPlan) -> int:
    """How many structures the landing shows, and says nothing of their end after that."""
    last = dict(zip(*(planned.rows.column(name).to_pylist() for name in ("urn", "operation")), strict=True))
    return sum(operation != "delete" for urn, operation in last.items() if urn is not None)


def _shown(planned: RunPlan) -> pa.ChunkedArray:
    is_shown = pc.not_equal(planned.rows.column("operation"), "delete")
    return planned.rows.filter(is_shown).column("urn").drop_null()


def _unpublished(planned: RunPlan) -> dict[str, int]:
    """What the registry holds and no topic gets, without anybody being at fault."""
    inexpressible = pc.sum(pc.equal(planned.rows.column("operation"), "inexpressible")).as_py() or 0
    counted = {
        "inexpressible": inexpressible,
        "unrouted": len(planned.plan.unrouted),
        "unserved-route": len(planned.plan.unserved),
    }
    return {rule: number for rule, number in counted.items() if number}
