"""The pages for people that only read."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from contexture.monitoring.rows import InterventionRow
from contexture.operations.status import detail
from contexture.operations.status.dead_letters import dead_letter_page
from contexture.operations.status.health import Standing
from contexture.operations.status.quality import quality_over_time
from contexture.operations.status.quarantine import quarantines
from contexture_airflow.settings import VERIFY_DAG
from contexture_airflow.ui.actions import ACTIONS, Action
from contexture_airflow.ui.choosing_transactions import Asked, address
from contexture_airflow.ui.documents import report_file, verification_file
from contexture_airflow.ui.drifting import SHOWN, drift
from contexture_airflow.ui.reader import Number, Reader, Reading
from contexture_airflow.ui.rendering import render
from contexture_airflow.ui.sampling import sampled

_IDENTITIES = 10
_JUST_NOW = timedelta(hours=1)

router = APIRouter(default_response_class=HTMLResponse)


@router.get("/")
def show_overview(
    reader: Reading, page: Number = 1, standing: Standing | None = None, *, suspended: bool = False
) -> str:
    """All publications."""
    found = reader.overview(page, standing, suspended)
    return render("overview", reader.places, overview=found, standing=standing, suspended=suspended)


@router.get("/publications/{name}")
def show_publication(reader: Reading, name: str, done: str = "") -> str:
    """One publication; `done`: the action that led here."""
    found = detail.detail(reader.sources, reader.publication(name))
    action = ACTIONS.get(done)
    return render(
        "publication",
        reader.places,
        name=name,
        detail=found,
        steps_told=reader.steps(name, found.line.last_run),
        may_act=reader.may_act(name),
        tested=[each for each in found.connections if reader.may_test(each)],
        done=action,
        done_last=action and _just_done(found, action, reader),
        shown=_IDENTITIES,
        verifies=reader.installation.airflow.has_dag(VERIFY_DAG),
    )


def _just_done(found: detail.Detail, action: Action, reader: Reader) -> InterventionRow | None:
    """What came of an action: an address that somebody made up, or kept, tells of none that was not done just now."""
    rows = (each for each in found.interventions if each.action == action.title and each.who == reader.who)
    return next((each for each in rows if reader.sources.now - each.at < _JUST_NOW), None)


@router.get("/publications/{name}/transactions")
def show_transactions(reader: Reading, name: str, which: Asked, page: Number = 1) -> str:
    """Those of its transactions that are asked for."""
    found = detail.transactions(reader.sources, reader.publication(name), which, page=page)
    return render("transactions", reader.places, name=name, transactions=found, asked=address(which))


@router.get("/publications/{name}/runs")
def show_runs(reader: Reading, name: str, page: Number = 1) -> str:
    """Its runs."""
    return render("runs", reader.places, name=name, runs=reader.runs(name, page))


@router.get("/publications/{name}/topics/drift")
def show_drift(reader: Reading, name: str) -> str:
    """How its topics differ from what its file says."""
    found = drift(reader.sources, reader.publication(name))
    return render("drift", reader.places, name=name, drift=found, shown=SHOWN)


@router.get("/publications/{name}/samples")
def show_samples(reader: Reading, name: str) -> str:
    """How its topics and batches come about."""
    found = sampled(reader.sources, reader.publication(name))
    return render("samples", reader.places, name=name, sampled=found)


@router.get("/publications/{name}/quality")
def show_quality(reader: Reading, name: str) -> str:
    """Its data over time."""
    found = quality_over_time(reader.sources, reader.publication(name))
    return render("quality", reader.places, name=name, quality=found)


@router.get("/publications/{name}/quarantine")
def show_quarantine(reader: Reading, name: str, page: Number = 1) -> str:
    """What its rules hold back."""
    found = quarantines(reader.sources, reader.publication(name), page=page)
    return render("quarantine", reader.places, name=name, quarantines=found, may_act=reader.may_act(name))


@router.get("/publications/{name}/dead-letters")
def show_dead_letters(reader: Reading, name: str, page: Number = 1) -> str:
    """What of it can never be sent."""
    found = dead_letter_page(reader.sources, reader.publication(name), page=page)
    return render("dead_letters", reader.places, name=name, letters=found, may_act=reader.may_act(name))


@router.get("/publications/{name}/topics")
def show_topics(reader: Reading, name: str, page: Number = 1) -> str:
    """Its topics."""
    found = detail.topics(reader.sources, reader.publication(name), page=page)
    return render("topics", reader.places, name=name, topics=found)


@router.get("/publications/{name}/reports/{outbox}/{path:path}")
def show_report(reader: Reading, name: str, outbox: str, path: str) -> Response:
    """A file of a data quality report."""
    return report_file(reader.sources.storage, reader.publication(name), outbox, path)


@router.get("/publications/{name}/verifications/{verification}/{path:path}")
def show_verification(reader: Reading, name: str, verification: str, path: str) -> Response:
    """A file of a verification's report."""
    return verification_file(reader.sources.storage, reader.publication(name), verification, path)
