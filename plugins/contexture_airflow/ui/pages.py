"""The pages for people. All of them only read."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from contexture.operations import TransactionStatus
from contexture.operations.page import detail
from contexture.operations.page.standing import Standing
from contexture_airflow.ui.documents import report_file
from contexture_airflow.ui.reader import Number, Reading
from contexture_airflow.ui.rendering import render

router = APIRouter(default_response_class=HTMLResponse)


@router.get("/")
def show_overview(reader: Reading, page: Number = 1, standing: Standing | None = None) -> str:
    """All publications."""
    found = reader.overview(page, standing)
    return render("overview", reader.places, overview=found, standing=standing)


@router.get("/publications/{name}")
def show_publication(reader: Reading, name: str) -> str:
    """One publication."""
    found = detail.detail(reader.sources, reader.publication(name))
    return render("publication", reader.places, name=name, detail=found)


@router.get("/publications/{name}/transactions")
def show_transactions(reader: Reading, name: str, page: Number = 1, status: TransactionStatus | None = None) -> str:
    """Its transactions."""
    found = detail.transactions(reader.sources, reader.publication(name), status=status, page=page)
    return render("transactions", reader.places, name=name, transactions=found)


@router.get("/publications/{name}/runs")
def show_runs(reader: Reading, name: str, page: Number = 1) -> str:
    """Its runs."""
    return render("runs", reader.places, name=name, runs=reader.runs(name, page))


@router.get("/publications/{name}/topics")
def show_topics(reader: Reading, name: str, page: Number = 1) -> str:
    """Its topics."""
    found = detail.topics(reader.sources, reader.publication(name), page=page)
    return render("topics", reader.places, name=name, topics=found)


@router.get("/publications/{name}/reports/{outbox}/{path:path}")
def show_report(reader: Reading, name: str, outbox: str, path: str) -> Response:
    """A file of a data quality report."""
    return report_file(reader.sources.storage, reader.publication(name), outbox, path)
