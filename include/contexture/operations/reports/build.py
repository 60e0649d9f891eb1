"""Builds a publication's data quality report from its home and the operational tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from contexture.errors import DefectError
from contexture.monitoring.history import History
from contexture.operations import environment
from contexture.operations.reports.dimensions import score_dimensions
from contexture.operations.reports.model import (
    ExpectationOutcome,
    ExpectationOverTime,
    NewType,
    QualityReport,
    ReportPeriod,
    RuleOverTime,
    RuleResult,
    RunReport,
    StoppedRun,
)
from contexture.operations.reports.selection import KeptOutbox, KeptRun, kept_outboxes, last_runs, select_runs
from contexture.operations.reports.verdict import judge_latest_run
from contexture.operations.status.dead_letters import of_outbox
from contexture.operations.status.sources import Tables
from contexture.operations.status.status import OperationsReader
from contexture.publications import Publication
from contexture.records.changes.attribute_types import AttributeTypes
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest, QualityVerdict
from contexture.storage.publication_store import PublicationStore
from contexture.storage.quarantine import RuleSamples


@dataclass(frozen=True, slots=True)
class TypesOfRun:
    """How many attributes a run saw, and which of their types were new."""

    attributes: int
    new: tuple[NewType, ...]


def type_drift(store: PublicationStore, runs: Sequence[KeptRun]) -> dict[str, TypesOfRun]:
    """What each of the runs, which are given oldest first, saw, by outbox; runs that noted no types are left out.

    The first run that is kept has nothing to differ from. Backfills send the past, and are left out.

    Raises:
        RetriableError: the storage did not answer.
    """
    known, found = AttributeTypes(), {}
    for run in runs:
        seen = None if run.manifest.mode == "backfill" else _seen(store, run)
        if seen is None:
            continue
        found[run.manifest.outbox] = TypesOfRun(len(seen.types), _new(known, seen))
        # What was refused as a whole becomes no state, so a later run differs from what was before it.
        if run.status.status not in {"rejected", "abandoned"}:
            known = known.after(seen, whole=run.manifest.mode == "full")
    return found


def _new(known: AttributeTypes, seen: AttributeTypes) -> tuple[NewType, ...]:
    return tuple(
        NewType(entity_type=entity, attribute=name, type=kind, before=tuple(sorted(known.types[entity, name])))
        for entity, name, kind in known.new_in(seen)
    )


def _seen(store: PublicationStore, run: KeptRun) -> AttributeTypes | None:
    try:
        return store.outbox(run.manifest.outbox).seen_types()
    except msgspec.DecodeError:
        return None


def run_report(store: PublicationStore, run: KeptRun, run_id: str | None, types: TypesOfRun | None) -> RunReport:
    """The report of one run; how its volume changed is not known here.

    Raises:
        RetriableError: the storage did not answer.
    """
    manifest = run.manifest
    verdict, samples = store.outbox(manifest.outbox).find_verdict(), _samples(store, manifest)
    return RunReport(
        outbox=manifest.outbox,
        sequence=manifest.sequence,
        run=manifest.run,
        run_id=run_id,
        mode=manifest.mode,
        status=run.status.status,
        prepared_at=run.prepared_at,
        received_from=manifest.received_from,
        received_to=manifest.received_to,
        in_source=_in_source(store, manifest),
        in_source_change=None,
        read=manifest.read,
        accepted=manifest.accepted,
        unchanged=manifest.unchanged,
        repeated=manifest.repeated,
        quarantined=manifest.quarantined_entities,
        upserts=manifest.upserts,
        deletes=manifest.deletes,
        records=manifest.records,
        bytes=sum(shard.bytes for shard in manifest.shards),
        topics=manifest.topics,
        dead_letters=of_outbox(store, manifest) or 0,
        attributes=types.attributes if types else None,
        new_types=types.new if types else (),
        approved=verdict.approved if verdict else None,
        expectations=tuple(_judged(verdict, samples)) if verdict else (),
        rules=tuple(_rules(manifest, samples)),
    )


def _judged(verdict: QualityVerdict, samples: RuleSamples) -> Iterator[ExpectationOutcome]:
    for result in verdict.results:
        yield ExpectationOutcome(**result.model_dump(), examples=samples.expectations.get(result.name, ()))


def _rules(manifest: Manifest, samples: RuleSamples) -> Iterator[RuleResult]:
    for severity, counts in (("error", manifest.quarantined), ("warning", manifest.warnings)):
        for rule, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
            found = {"rule": rule, "severity": severity, "count": count, "samples": samples.rules.get(rule, ())}
            yield RuleResult.model_validate(found)


def _samples(store: PublicationStore, manifest: Manifest) -> RuleSamples:
    kept = store.outbox(manifest.outbox).samples()
    if kept is not None:
        return kept
    # Of an earlier version, or judged by no one: what was refused is in quarantine all the same.
    refused = store.quarantine(manifest.outbox).samples(manifest.quarantined)
    return RuleSamples(outbox=manifest.outbox, rules=refused)


def _in_source(store: PublicationStore, manifest: Manifest) -> int | None:
    try:
        landing = store.landing(manifest.run).manifest()
    except (FileNotFoundError, DefectError):
        return None
    # A registry's log shows what changed, and not how much there is.
    counted = landing.knows_source and (landing.complete or landing.registry_transaction is None)
    return landing.source_count if counted else None


TOTALS: Final = ("read", "accepted", "quarantined", "upserts", "deletes", "records", "bytes", "dead_letters")
"""The members of `RunReport` that are summed up."""


def totals(runs: Sequence[RunReport]) -> dict[str, int]:
    return {name: sum(getattr(run, name) for run in runs) for name in TOTALS}


def rules(runs: Sequence[RunReport]) -> tuple[RuleOverTime, ...]:
    """Each rule that was broken: errors first, those that were broken most before the others."""
    found: dict[tuple[str, str], RuleOverTime] = {}
    for run in runs:
        for each in run.rules:
            before = found.get((each.rule, each.severity))
            found[each.rule, each.severity] = RuleOverTime(
                rule=each.rule,
                severity=each.severity,
                runs=(before.runs if before else 0) + 1,
                count=(before.count if before else 0) + each.count,
                last_at=run.prepared_at,
            )
    return tuple(sorted(found.values(), key=lambda each: (each.severity, -each.count, each.rule)))


def expectations(runs: Sequence[RunReport]) -> tuple[ExpectationOverTime, ...]:
    """Each expectation that was judged: those that failed most often first, else as the last run has them."""
    judged: dict[str, list[tuple[RunReport, ExpectationOutcome]]] = {}
    for run in reversed(runs):
        for each in run.expectations:
            judged.setdefault(each.name, []).append((run, each))
    found = [_expectation(name, each) for name, each in judged.items()]
    return tuple(sorted(found, key=lambda each: -each.failed))


def _expectation(name: str, judged: Sequence[tuple[RunReport, ExpectationOutcome]]) -> ExpectationOverTime:
    """`judged`: the latest first."""
    latest = judged[0][1]
    failed = [run.prepared_at for run, each in judged if not each.success]
    return ExpectationOverTime(
        name=name,
        severity=latest.severity,
        on=latest.on,
        description=latest.description,
        judged=len(judged),
        failed=len(failed),
        last_failed_at=failed[0] if failed else None,
        observed=latest.observed,
    )


_READERS: Final = 8
_COMPARED: Final = 200
_STOPPED: Final = 100


@dataclass(frozen=True, slots=True)
class ReportSources:
    """Where a report comes from: the home, the operational tables, and the time of making it."""

    home: Home
    tables: Tables
    now: datetime


def report_of_home(publication: str, period: ReportPeriod) -> QualityReport:
    """Builds the report from the home and the tables that the environment names; raises as `quality_report`."""
    home = environment.open_home()
    environment.stores(home, publication)
    return quality_report(ReportSources(home, OperationsReader(home).tables(), datetime.now(UTC)), publication, period)


def quality_report(sources: ReportSources, publication: str, period: ReportPeriod) -> QualityReport:
    """The report of a publication about the runs of a period that are kept.

    Raises:
        ConfigurationError: it is about one run, and that is not kept.
        RetriableError: the storage did not answer.
    """
    store = sources.home.publication(publication)
    kept = kept_outboxes(store)
    wanted = select_runs(store.outboxes, kept, period)
    names = {run.manifest.run for run in wanted}
    rows = sources.tables.ask(lambda history: history.runs_named(publication, names), ())
    earlier = _earlier_runs(store, kept, wanted)
    runs = _run_reports(store, earlier, wanted, {row.run: row.run_id for row in rows})
    stopped = sources.tables.ask(lambda history: _stopped(history, publication, wanted, period), ())
    before = _run_before(store, earlier, runs)
    owner = _publication(store, wanted)
    return QualityReport.model_validate(
        {
            "publication": publication,
            "description": owner.description if owner else "",
            "many": owner.source.plural if owner else "entities",
            "made_at": sources.now,
            "period": period,
            "verdict": judge_latest_run(runs[-1], before, stopped) if runs else None,
            "scores": score_dimensions(runs[-1], owner) if runs else (),
            "totals": totals(runs),
            "runs": runs,
            "rules": rules(runs),
            "expectations": expectations(runs),
            "stopped": stopped,
            "tables_problem": sources.tables.problem,
        }
    )


def _earlier_runs(store: PublicationStore, kept: Sequence[KeptOutbox], wanted: Sequence[KeptRun]) -> Sequence[KeptRun]:
    if not wanted:
        return ()
    first = wanted[0]
    earlier = [each for each in kept if (each.prepared_at, each.sequence) < (first.prepared_at, first.status.sequence)]
    return last_runs(store.outboxes, earlier, _COMPARED)


def _run_before(store: PublicationStore, earlier: Sequence[KeptRun], runs: Sequence[RunReport]) -> RunReport | None:
    """Returns the last run of the mode of the latest one before it: the counts of other modes say nothing about it."""
    if not runs:
        return None
    mode = runs[-1].mode
    inside = next((run for run in reversed(runs[:-1]) if run.mode == mode), None)
    if inside:
        return inside
    outside = next((run for run in reversed(earlier) if run.manifest.mode == mode), None)
    return run_report(store, outside, None, None) if outside else None


def _run_reports(
    store: PublicationStore, earlier: Sequence[KeptRun], wanted: Sequence[KeptRun], run_ids: Mapping[str, str]
) -> tuple[RunReport, ...]:
    if not wanted:
        return ()
    types = type_drift(store, [*earlier, *wanted])

    def report(run: KeptRun) -> RunReport:
        found: TypesOfRun | None = types.get(run.manifest.outbox)
        return run_report(store, run, run_ids.get(run.manifest.run), found)

    with ThreadPoolExecutor(_READERS) as readers:
        return tuple(_with_changes(list(readers.map(report, wanted))))


def _with_changes(runs: Sequence[RunReport]) -> Sequence[RunReport]:
    known: int | None = None
    changed = []
    for run in runs:
        change = (run.in_source - known) / known if known and run.in_source is not None else None
        changed.append(run.model_copy(update={"in_source_change": change}))
        known = known if run.in_source is None else run.in_source
    return changed


def _stopped(
    history: History, publication: str, wanted: Sequence[KeptRun], period: ReportPeriod
) -> tuple[StoppedRun, ...]:
    if period.run is not None:
        return ()
    since = period.since or (wanted[0].prepared_at if wanted and len(wanted) == period.last else None)
    failed = history.failed_runs(publication, since=since, until=period.until, limit=_STOPPED)
    return tuple(
        StoppedRun(run_id=row.run_id, started_at=row.started_at, failed_task=row.failed_task, message=row.message)
        for row in failed
    )


def _publication(store: PublicationStore, wanted: Sequence[KeptRun]) -> Publication | None:
    """As it was when the last of the runs was planned."""
    if not wanted:
        return None
    try:
        return store.run(wanted[-1].manifest.run).order().publication
    except (FileNotFoundError, DefectError):
        return None
