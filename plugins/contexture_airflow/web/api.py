"""The same data as JSON, for scripts: with a token of Airflow's in the header `Authorization: Bearer`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from contexture.operations.status import detail
from contexture.operations.status.dead_letters import dead_letter_page
from contexture.operations.status.health import PublicationHealth
from contexture.operations.status.quality import quality_over_time
from contexture.operations.status.quarantine import quarantines
from contexture.operations.status.status import StatusReport, statuses
from contexture_airflow.web.reader import Number, Reading
from contexture_airflow.web.transaction_filter import Asked

API: str = "/api"
router = APIRouter(prefix=f"{API}/publications")


@router.get("")
def get_overview(
    reader: Reading, page: Number = 1, health: PublicationHealth | None = None, *, suspended: bool = False
) -> Any:
    """All publications."""
    return reader.overview(page, health, suspended)


@router.get("/{name}")
def get_publication(reader: Reading, name: str) -> Any:
    """One publication."""
    return detail.detail(reader.sources, reader.publication(name))


@router.get("/{name}/transactions")
def get_transactions(reader: Reading, name: str, which: Asked, page: Number = 1) -> Any:
    """Those of its transactions that are asked for."""
    return detail.transactions(reader.sources, reader.publication(name), which, page=page)


@router.get("/{name}/runs")
def get_runs(reader: Reading, name: str, page: Number = 1) -> Any:
    """Its runs."""
    return reader.runs(name, page)


@router.get("/{name}/topics")
def get_topics(reader: Reading, name: str, page: Number = 1) -> Any:
    """Its topics."""
    return detail.topics(reader.sources, reader.publication(name), page=page)


@router.get("/{name}/quarantine")
def get_quarantine(reader: Reading, name: str, page: Number = 1) -> Any:
    """What its rules hold back."""
    return quarantines(reader.sources, reader.publication(name), page=page)


@router.get("/{name}/dead-letters")
def get_dead_letters(reader: Reading, name: str, page: Number = 1) -> Any:
    """What of it can never be sent."""
    return dead_letter_page(reader.sources, reader.publication(name), page=page)


@router.get("/{name}/quality")
def get_quality(reader: Reading, name: str) -> Any:
    """Its data over time."""
    return quality_over_time(reader.sources, reader.publication(name))


status_router = APIRouter(prefix=f"{API}/status")


@status_router.get("")
def get_statuses(reader: Reading) -> Any:
    """All publications that the reader may see."""
    found = statuses(reader.sources, reader.sources.dags)
    return {"publications": found, "operational_tables_problem": reader.sources.tables.problem}


@status_router.get("/{name}")
def get_status(reader: Reading, name: str) -> StatusReport:
    """One publication."""
    return statuses(reader.sources, [reader.publication(name)])[0]
