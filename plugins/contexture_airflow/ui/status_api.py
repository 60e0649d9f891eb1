"""The status of publications as JSON, for monitoring: with a token of Airflow's, as all of the API."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from contexture.operations.status.status import StatusReport, statuses
from contexture_airflow.ui.api import API
from contexture_airflow.ui.reader import Reading

router = APIRouter(prefix=f"{API}/status")


@router.get("")
def tell_statuses(reader: Reading) -> Any:
    """All publications that the reader may see."""
    found = statuses(reader.sources, reader.sources.dags)
    return {"publications": found, "operational_tables_problem": reader.sources.tables.problem}


@router.get("/{name}")
def tell_status(reader: Reading, name: str) -> StatusReport:
    """One publication."""
    return statuses(reader.sources, [reader.publication(name)])[0]
