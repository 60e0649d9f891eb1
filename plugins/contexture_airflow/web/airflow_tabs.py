"""The tabs on a DAG, a run and a task in Airflow: the same state where people already look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from contexture.errors import ConfigurationError
from contexture.monitoring.rows import RunRow
from contexture.operations.reports.build import ReportSources, quality_report
from contexture.operations.reports.model import ReportPeriod, RunReport
from contexture.storage.publication_store import run_name
from contexture_airflow.settings import publication_of_dag
from contexture_airflow.web.asgi import TAB
from contexture_airflow.web.rendering import render
from contexture_airflow.web.visitor import CurrentVisitor, Visitor

router = APIRouter(default_response_class=HTMLResponse)

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
