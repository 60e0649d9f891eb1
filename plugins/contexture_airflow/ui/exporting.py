"""Data quality to take along: a report as one file, of the last runs, of a time, or of one run."""

from __future__ import annotations

from typing import Annotated, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Query, Response

from contexture.errors import ConfigurationError
from contexture.operations.reports.build import ReportSources, quality_report
from contexture.operations.reports.html import page
from contexture.operations.reports.model import Period
from contexture.operations.reports.selection import LAST
from contexture_airflow.ui.answers import DOCUMENT_POLICY
from contexture_airflow.ui.choosing_transactions import Moment
from contexture_airflow.ui.reader import Reader, Reading

router = APIRouter()

_MOST: Final = 1000
_TYPES: Final = {"html": "text/html; charset=utf-8", "json": "application/json"}
Number = Annotated[int, Query(ge=1, le=_MOST)]


@router.get("/publications/{name}/report.{form}")
def export_report(
    reader: Reading,
    name: str,
    form: Literal["html", "json"],
    since: Moment = None,
    until: Moment = None,
    last: Number | None = None,
    run: Annotated[str | None, Query(max_length=300)] = None,
) -> Response:
    """What `contexture report` tells, as a file; at most 1,000 runs, for the server waits for it."""
    if since is not None and until is not None and since >= until:
        raise HTTPException(422, "since: this is not before until")
    # As on the command line: who chooses a time gets the runs of it.
    most = last or (LAST if since is None and until is None else _MOST)
    period = Period(run=run) if run else Period(since=since, until=until, last=most)
    content = _content(reader, reader.publication(name), period, form)
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(f'{name}-quality.{form}', safe='')}",
        "Content-Security-Policy": DOCUMENT_POLICY,
    }
    return Response(content, media_type=_TYPES[form], headers=headers)


def _content(reader: Reader, name: str, period: Period, form: str) -> bytes:
    sources = ReportSources(reader.sources.storage, reader.sources.tables, reader.sources.now)
    try:
        found = quality_report(sources, name, period)
    except ConfigurationError as error:
        raise HTTPException(404, str(error)) from error
    return found.to_json() if form == "json" else page(found)
