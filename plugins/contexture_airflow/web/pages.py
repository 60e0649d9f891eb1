"""The pages that only read: overview, publications, samples, drift of topics, exports, and the tabs in Airflow."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Path, Query, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from contexture.errors import ConfigurationError, ContextureError
from contexture.monitoring.rows import InterventionRow, RunRow
from contexture.operations.actions.check import StructurePreview
from contexture.operations.actions.check import preview as preview_structures
from contexture.operations.actions.preview import (
    NamePreview,
    Preview,
    SampleEntities,
    SampleEntity,
    asked_of_sample,
    preview,
    show_names,
)
from contexture.operations.reports.build import ReportSources, quality_report
from contexture.operations.reports.html import page
from contexture.operations.reports.model import ReportPeriod, RunReport
from contexture.operations.reports.selection import LAST
from contexture.operations.status import detail
from contexture.operations.status.dead_letters import dead_letter_page
from contexture.operations.status.health import PublicationHealth
from contexture.operations.status.quality import quality_over_time
from contexture.operations.status.quarantine import find_refused_entity, quarantines
from contexture.operations.status.sources import Sources, manifest
from contexture.publications import NgsiPublication, SdmxPublication
from contexture.sources.ngsi.notifications.notification import notified_form
from contexture.storage.folder import StoredFolder
from contexture.storage.publication_store import PublicationStore, run_name
from contexture_airflow.settings import VERIFY_DAG, publication_of_dag
from contexture_airflow.web.actions import ACTIONS, Action
from contexture_airflow.web.asgi import TAB
from contexture_airflow.web.fragments import progress_of
from contexture_airflow.web.rendering import render
from contexture_airflow.web.responses import DOCUMENT_POLICY, report_file, verification_file
from contexture_airflow.web.transaction_filter import Moment, RequestedFilter, RequestedQuarantine, address
from contexture_airflow.web.visitor import CurrentVisitor, PageNumber, Visitor

report_router = APIRouter()

_MOST: Final = 1000
_TYPES: Final = {"html": "text/html; charset=utf-8", "json": "application/json"}
RunCount = Annotated[int, Query(ge=1, le=_MOST)]


@report_router.get("/publications/{name}/report.{form}")
def export_report(
    visitor: CurrentVisitor,
    name: str,
    form: Literal["html", "json"],
    since: Moment = None,
    until: Moment = None,
    last: RunCount | None = None,
    run: Annotated[str | None, Query(max_length=300)] = None,
    download: bool = True,
) -> Response:
    """The output of `contexture report`, as a file; at most 1,000 runs, because the server waits for it.

    Without `download` the browser shows it, with links to the quarantine.
    """
    if since is not None and until is not None and since >= until:
        raise HTTPException(422, "since: this is not before until")
    # As on the command line: who chooses a time gets the runs of it.
    most = last or (LAST if since is None and until is None else _MOST)
    period = ReportPeriod(run=run) if run else ReportPeriod(since=since, until=until, last=most)
    quarantine = None if download else visitor.places.publication(name, "quarantine")
    content = _content(visitor, visitor.publication(name), period, form, quarantine)
    disposition = "attachment" if download else "inline"
    headers = {
        "Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(f'{name}-quality.{form}', safe='')}",
        "Content-Security-Policy": DOCUMENT_POLICY,
    }
    return Response(content, media_type=_TYPES[form], headers=headers)


def _content(visitor: Visitor, name: str, period: ReportPeriod, form: str, quarantine: str | None) -> bytes:
    sources = ReportSources(visitor.sources.home, visitor.sources.tables, visitor.sources.now)
    try:
        found = quality_report(sources, name, period)
    except ConfigurationError as error:
        raise HTTPException(404, str(error)) from error
    return found.to_json() if form == "json" else page(found, quarantine)


ENTITIES = 10
STRUCTURES = 20_000
"""For so many the page shows where they go."""
_COLUMNS = ["operation", "path", "body", "media_type", "received_at"]


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the sample would become.

    Attributes:
        names: what each topic's name is made of.
        preview: records with their topics, keys and batches.
        structures: where structures that the target holds go.
        why_not: why there is nothing to show.
    """

    names: tuple[NamePreview, ...] = ()
    preview: Preview | None = None
    structures: StructurePreview | None = None
    why_not: str = ""


def _structures(store: PublicationStore, publication: SdmxPublication) -> Sampled:
    state = store.state
    urns = state.table(state.pointer(), ["identity"]).column("identity").to_pylist()[:STRUCTURES]
    if not urns:
        return Sampled(why_not="the target holds no structure: run the publication first")
    try:
        held = [urn.decode() for urn in urns]
        return Sampled(structures=preview_structures(publication, "what the target holds", held))
    except ContextureError as error:
        return Sampled(why_not=str(error))


def take_sample(sources: Sources, name: str) -> Sampled:
    """The first entities of the last concluded run, as the publication's file would name and batch them now.

    Of a registry, the structures that the target holds, and where the file would send them now.

    Raises:
        RetriableError: the storage did not answer.
    """
    publication = sources.publications.get(name)
    if publication is None:
        return Sampled(why_not="there is no valid publication file of this name")
    if isinstance(publication, SdmxPublication):
        return _structures(sources.home.publication(name), publication)
    if not isinstance(publication, NgsiPublication):
        return Sampled(why_not=f"events go to {', '.join(publication.topics.topics)}")
    store = sources.home.publication(name)
    concluded = manifest(store, store.state.pointer().outbox)
    entities = tuple(_entities(store.landing(concluded.run))) if concluded else ()
    if not entities:
        return Sampled(why_not="nothing that was read is stored: run the publication first")
    samples = SampleEntities("the last concluded run", entities, None)
    try:
        asked, _ = asked_of_sample(publication, samples)
        return Sampled(tuple(show_names(publication, asked)[: 3 * ENTITIES]), preview(publication, samples))
    except ContextureError as error:
        return Sampled(why_not=str(error))


def _entities(landing: StoredFolder) -> Iterator[SampleEntity]:
    left = ENTITIES
    for file in landing.files(".parquet"):
        for row in _rows(landing, file):
            if row.body is not None:
                yield row
                left -= 1
            if left == 0:
                return


def _rows(landing: StoredFolder, name: str) -> Iterator[SampleEntity]:
    with landing.translate_errors(name), landing.open_table(name, pre_buffer=False) as file:
        batch = next(file.iter_batches(batch_size=4 * ENTITIES, columns=_COLUMNS), None)
        rows = [] if batch is None else batch.to_pylist()
    for row in rows:
        is_plain = row["operation"] == "upsert" and notified_form(row["media_type"] or "") is None
        if is_plain and row["body"] is not None:
            yield SampleEntity(row["body"], row["path"], row["received_at"])


_IDENTITIES = 10
_Ordinal = Annotated[int, Path(ge=0, le=2**63 - 1)]
_JUST_NOW = timedelta(hours=1)

log = logging.getLogger(__name__)
router = APIRouter(default_response_class=HTMLResponse)


@router.get("/")
def show_overview(
    visitor: CurrentVisitor, page: PageNumber = 1, health: PublicationHealth | None = None, *, suspended: bool = False
) -> str:
    """All publications."""
    found = visitor.overview(page, health, suspended)
    may_propose = visitor.may_test(None)
    return render(
        "overview", visitor.places, overview=found, health=health, suspended=suspended, may_propose=may_propose
    )


@router.get("/publications/{name}")
def show_publication(visitor: CurrentVisitor, name: str, done: str = "") -> str:
    """One publication; `done`: the action that led here."""
    found = detail.detail(visitor.sources, visitor.publication(name))
    action = ACTIONS.get(done)
    return render(
        "publication",
        visitor.places,
        name=name,
        detail=found,
        progress=progress_of(visitor, name),
        now=visitor.sources.now,
        may_act=visitor.may_act(name),
        tested=[each for each in found.connections if visitor.may_test(each)],
        done=action,
        done_last=action and _just_done(found, action, visitor),
        shown=_IDENTITIES,
        verifies=visitor.installation.airflow.has_dag(VERIFY_DAG),
    )


def _just_done(found: detail.Detail, action: Action, visitor: Visitor) -> InterventionRow | None:
    """What came of an action: an address that was made up, or kept, shows none that was not done just now."""
    rows = (each for each in found.interventions if each.action == action.title and each.who == visitor.user)
    return next((each for each in rows if visitor.sources.now - each.at < _JUST_NOW), None)


@router.get("/publications/{name}/transactions")
def show_transactions(visitor: CurrentVisitor, name: str, which: RequestedFilter, page: PageNumber = 1) -> str:
    """Those of its transactions that are asked for."""
    found = detail.transactions(visitor.sources, visitor.publication(name), which, page=page)
    return render("transactions", visitor.places, name=name, transactions=found, asked=address(which))


@router.get("/publications/{name}/runs")
def show_runs(visitor: CurrentVisitor, name: str, page: PageNumber = 1) -> str:
    """Its runs."""
    return render("runs", visitor.places, name=name, runs=visitor.runs(name, page))


@router.get("/publications/{name}/topics/drift")
def show_drift(visitor: CurrentVisitor, name: str) -> str:
    """How its topics differ from what its file says: the brokers are asked after the page is shown."""
    return render("drift", visitor.places, name=visitor.publication(name))


@router.get("/publications/{name}/samples")
def show_samples(visitor: CurrentVisitor, name: str) -> str:
    """How its topics and batches come about."""
    found = take_sample(visitor.sources, visitor.publication(name))
    return render("samples", visitor.places, name=name, sampled=found)


@router.get("/publications/{name}/quality")
def show_quality(visitor: CurrentVisitor, name: str) -> str:
    """Its data over time."""
    found = quality_over_time(visitor.sources, visitor.publication(name))
    return render("quality", visitor.places, name=name, quality=found)


@router.get("/publications/{name}/quarantine")
def show_quarantine(visitor: CurrentVisitor, name: str, which: RequestedQuarantine, page: PageNumber = 1) -> str:
    """What its rules quarantined."""
    found = quarantines(visitor.sources, visitor.publication(name), page=page, which=which)
    may_act = visitor.may_act(name)
    return render("quarantine", visitor.places, name=name, quarantines=found, which=which, may_act=may_act)


@router.get("/publications/{name}/quarantine/{outbox}/{ordinal}")
def show_refused_entity(visitor: CurrentVisitor, name: str, outbox: str, ordinal: _Ordinal) -> str:
    """One quarantined entity with its content, for users who may act on the publication."""
    visitor.require_action_right(name)
    store = visitor.sources.home.publication(name)
    found = find_refused_entity(store, outbox, ordinal) if outbox.isalnum() else None
    if found is None:
        raise HTTPException(404, "there is no such event in quarantine: retention may have removed it")
    log.info("%r read event %d in the quarantine of %s, outbox %s", visitor.user, ordinal, name, outbox)
    return render("refused", visitor.places, name=name, refused=found)


@router.get("/publications/{name}/dead-letters")
def show_dead_letters(visitor: CurrentVisitor, name: str, page: PageNumber = 1) -> str:
    """What of it can never be sent."""
    found = dead_letter_page(visitor.sources, visitor.publication(name), page=page)
    return render("dead_letters", visitor.places, name=name, letters=found, may_act=visitor.may_act(name))


@router.get("/publications/{name}/topics")
def show_topics(visitor: CurrentVisitor, name: str, page: PageNumber = 1) -> str:
    """Its topics."""
    found = detail.topics(visitor.sources, visitor.publication(name), page=page)
    return render("topics", visitor.places, name=name, topics=found)


@router.get("/publications/{name}/reports/{outbox}/{path:path}")
def show_report(visitor: CurrentVisitor, name: str, outbox: str, path: str) -> Response:
    """A file of a data quality report."""
    return report_file(visitor.sources.home.publication(visitor.publication(name)), outbox, path)


@router.get("/publications/{name}/verifications/{verification}/{path:path}")
def show_verification(visitor: CurrentVisitor, name: str, verification: str, path: str) -> Response:
    """A file of a verification's report."""
    return verification_file(visitor.sources.home.publication(visitor.publication(name)), verification, path)


_REPORT_TASKS: Final = ("quality_gate",)
_SEND_TASKS: Final = ("publish",)
Text = Annotated[str, Query(max_length=300)]


@dataclass(frozen=True, slots=True)
class RunView:
    """One run of a publication, as its tab shows it.

    Attributes:
        run_id: Airflow's.
        row: the run in the operational tables; None where there is none.
        report: what the run read, refused and sent; None where it has no outbox, or that is no longer stored.
        tables_problem: why the operational tables do not respond; None where they do.
    """

    run_id: str
    row: RunRow | None
    report: RunReport | None
    tables_problem: str | None


@router.get(TAB)
def show_tab(visitor: CurrentVisitor, dag: Text, run: Text = "", task: Text = "", map_index: int = -1) -> Response:
    """The page of a DAG's publication; of a run what it did; of a task its report or its transactions."""
    name = publication_of_dag(dag)
    if name is None or name not in visitor.sources.dags:
        # Airflow shows the tabs of a plugin on all DAGs, also on those that have nothing to do with it.
        return HTMLResponse(render("no_publication", visitor.places, dag=dag))
    if not run:
        return RedirectResponse(visitor.places.publication(name), 303)
    found = find_run(visitor, name, run)
    if found.report and task in _REPORT_TASKS:
        return RedirectResponse(visitor.places.report(name, found.report.outbox), 303)
    if found.report and task in _SEND_TASKS:
        shard = map_index if map_index >= 0 else None
        sent = visitor.places.publication(name, "transactions", outbox=found.report.outbox, shard=shard)
        return RedirectResponse(sent, 303)
    return HTMLResponse(render("run", visitor.places, name=name, run=found))


def find_run(visitor: Visitor, name: str, run_id: str) -> RunView:
    """Returns what is stored about one run of a publication.

    Raises:
        RetriableError: the storage did not respond.
    """
    sources, folder = visitor.sources, run_name(run_id)
    rows = sources.tables.ask(lambda history: history.runs_named(name, [folder]), [])
    row = rows[0] if rows else None
    report = None
    try:
        # By the outbox where it is known: finding it by the run reads the manifest of every outbox.
        period = ReportPeriod(run=row.outbox if row and row.outbox else run_id)
        report = quality_report(ReportSources(sources.home, sources.tables, sources.now), name, period).runs[-1]
    except ConfigurationError:
        # The run prepared no outbox, or retention removed it.
        pass
    return RunView(run_id, row, report, sources.tables.problem)
