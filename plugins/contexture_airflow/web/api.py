"""The same data as JSON, for scripts: with a token of Airflow's in the header `Authorization: Bearer`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from contexture.operations.status import detail
from contexture.operations.status.dead_letters import dead_letter_page
from contexture.operations.status.health import PublicationHealth
from contexture.operations.status.progress import RunProgress
from contexture.operations.status.quality import quality_over_time
from contexture.operations.status.quarantine import quarantines
from contexture.operations.status.status import StatusReport, statuses
from contexture_airflow.web.fragments import progress_of
from contexture_airflow.web.transaction_filter import RequestedFilter, RequestedQuarantine
from contexture_airflow.web.visitor import CurrentVisitor, PageNumber

API: str = "/api"
router = APIRouter(prefix=f"{API}/publications")


@router.get("")
def get_overview(
    visitor: CurrentVisitor, page: PageNumber = 1, health: PublicationHealth | None = None, *, suspended: bool = False
) -> Any:
    """All publications."""
    return visitor.overview(page, health, suspended)


@router.get("/{name}")
def get_publication(visitor: CurrentVisitor, name: str) -> Any:
    """One publication."""
    return detail.detail(visitor.sources, visitor.publication(name))


@router.get("/{name}/progress")
def get_progress(visitor: CurrentVisitor, name: str) -> RunProgress:
    """What it does now."""
    return progress_of(visitor, name)


@router.get("/{name}/transactions")
def get_transactions(visitor: CurrentVisitor, name: str, which: RequestedFilter, page: PageNumber = 1) -> Any:
    """Those of its transactions that are asked for."""
    return detail.transactions(visitor.sources, visitor.publication(name), which, page=page)


@router.get("/{name}/runs")
def get_runs(visitor: CurrentVisitor, name: str, page: PageNumber = 1) -> Any:
    """Its runs."""
    return visitor.runs(name, page)


@router.get("/{name}/topics")
def get_topics(visitor: CurrentVisitor, name: str, page: PageNumber = 1) -> Any:
    """Its topics."""
    return detail.topics(visitor.sources, visitor.publication(name), page=page)


@router.get("/{name}/quarantine")
def get_quarantine(visitor: CurrentVisitor, name: str, which: RequestedQuarantine, page: PageNumber = 1) -> Any:
    """What its rules quarantined."""
    return quarantines(visitor.sources, visitor.publication(name), page=page, which=which)


@router.get("/{name}/dead-letters")
def get_dead_letters(visitor: CurrentVisitor, name: str, page: PageNumber = 1) -> Any:
    """What of it can never be sent."""
    return dead_letter_page(visitor.sources, visitor.publication(name), page=page)


@router.get("/{name}/quality")
def get_quality(visitor: CurrentVisitor, name: str) -> Any:
    """Its data over time."""
    return quality_over_time(visitor.sources, visitor.publication(name))


status_router = APIRouter(prefix=f"{API}/status")


@status_router.get("")
def get_statuses(visitor: CurrentVisitor) -> Any:
    """All publications that the visitor may see."""
    found = statuses(visitor.sources, visitor.sources.dags)
    return {"publications": found, "operational_tables_problem": visitor.sources.tables.problem}


@status_router.get("/{name}")
def get_status(visitor: CurrentVisitor, name: str) -> StatusReport:
    """One publication."""
    return statuses(visitor.sources, [visitor.publication(name)])[0]
