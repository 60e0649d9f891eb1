"""Makes a publication's report from what its home keeps, and from the operational tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from contexture.monitoring.history import History
from contexture.operations.page.tables import Tables
from contexture.operations.reports.choosing import KeptOutbox, KeptRun, chosen, kept_outboxes, last_runs
from contexture.operations.reports.documents import Period, QualityReport, RunReport, StoppedRun
from contexture.operations.reports.of_run import run_report
from contexture.operations.reports.over_time import expectations, rules, totals
from contexture.operations.reports.type_drift import TypesOfRun, type_drift
from contexture.publications import Publication
from contexture.storage.home import Storage
from contexture.storage.orders import StageOrder
from contexture.storage.outboxes import Outboxes
from contexture.storage.publication_store import PublicationFolder

_READERS: Final = 8
_COMPARED: Final = 200
_STOPPED: Final = 100
_MANY: Final = {"ngsi": "entities", "sdmx": "structures", "operations": "events"}


@dataclass(frozen=True, slots=True)
class ReportSources:
    """Where a report comes from: the home, the operational tables, and the time of making it."""

    storage: Storage
    tables: Tables
    now: datetime


def quality_report(sources: ReportSources, publication: str, period: Period) -> QualityReport:
    """The report of a publication about the runs of a period that are kept.

    Raises:
        ConfigurationError: it is about one run, and that is not kept.
        RetriableError: the storage did not answer.
    """
    outboxes = Outboxes(sources.storage, publication)
    kept = kept_outboxes(outboxes)
    wanted = chosen(outboxes, kept, period)
    names = {run.manifest.run for run in wanted}
    rows = sources.tables.ask(lambda history: history.runs_named(publication, names), ())
    runs = _told(outboxes, kept, wanted, {row.run: row.run_id for row in rows})
    owner = _publication(sources.storage, wanted)
    return QualityReport.model_validate(
        {
            "publication": publication,
            "description": owner.description if owner else "",
            "many": _MANY[owner.source.kind if owner else "ngsi"],
            "made_at": sources.now,
            "period": period,
            "totals": totals(runs),
            "runs": runs,
            "rules": rules(runs),
            "expectations": expectations(runs),
            "stopped": sources.tables.ask(lambda history: _stopped(history, publication, wanted, period), ()),
            "tables_problem": sources.tables.problem,
        }
    )


def _told(
    outboxes: Outboxes, kept: Sequence[KeptOutbox], wanted: Sequence[KeptRun], run_ids: Mapping[str, str]
) -> tuple[RunReport, ...]:
    if not wanted:
        return ()
    first = wanted[0]
    earlier = [each for each in kept if (each.prepared_at, each.sequence) < (first.prepared_at, first.status.sequence)]
    types = type_drift(outboxes.storage, [*last_runs(outboxes, earlier, _COMPARED), *wanted])

    def tell(run: KeptRun) -> RunReport:
        found: TypesOfRun | None = types.get(run.manifest.outbox)
        return run_report(outboxes.storage, run, run_ids.get(run.manifest.run), found)

    with ThreadPoolExecutor(_READERS) as readers:
        told = list(readers.map(tell, wanted))
    return tuple(_with_changes(told))


def _with_changes(runs: Sequence[RunReport]) -> Sequence[RunReport]:
    known: int | None = None
    told = []
    for run in runs:
        change = (run.in_source - known) / known if known and run.in_source is not None else None
        told.append(run.model_copy(update={"in_source_change": change}))
        known = known if run.in_source is None else run.in_source
    return told


def _stopped(history: History, publication: str, wanted: Sequence[KeptRun], period: Period) -> tuple[StoppedRun, ...]:
    if period.run is not None:
        return ()
    since = period.since or (wanted[0].prepared_at if wanted and len(wanted) == period.last else None)
    failed = history.failed_runs(publication, since=since, until=period.until, limit=_STOPPED)
    return tuple(
        StoppedRun(run_id=row.run_id, started_at=row.started_at, failed_task=row.failed_task, message=row.message)
        for row in failed
    )


def _publication(storage: Storage, wanted: Sequence[KeptRun]) -> Publication | None:
    """As it was when the last of the runs was planned."""
    if not wanted:
        return None
    manifest = wanted[-1].manifest
    try:
        content = storage.read(PublicationFolder(manifest.publication).order(manifest.run))
        return StageOrder.model_validate_json(content).publication
    except (FileNotFoundError, ValidationError):
        return None
