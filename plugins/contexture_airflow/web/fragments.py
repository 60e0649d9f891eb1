"""Parts that a page loads after itself: what changes while a run works, and what asks the brokers or many files.

The response is HTML whose elements with an `id` replace those of the page with the same `id`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from contexture.errors import ContextureError
from contexture.kafka.topics import TopicsPlan, plan_topics
from contexture.operations.actions.topic_plan import wanted
from contexture.operations.status.progress import RunProgress, find_progress
from contexture.operations.status.quality import find_trends
from contexture.operations.status.sources import PAGE_SIZE
from contexture_airflow.connections.settings import kafka_settings
from contexture_airflow.web.rendering import render
from contexture_airflow.web.visitor import CurrentVisitor, Visitor

SHOWN: Final = 200
_WAIT_SECONDS: Final = 15.0

router = APIRouter(default_response_class=HTMLResponse)


def progress_of(visitor: Visitor, name: str) -> RunProgress:
    """Returns what a publication does now."""
    latest = visitor.sources.tables.ask(lambda history: history.latest_runs(), {}).get(visitor.publication(name))
    return find_progress(visitor.sources, name, latest, visitor.steps(name, latest))


@router.get("/publications/{name}/now")
def show_progress(visitor: CurrentVisitor, name: str) -> str:
    """What a publication does now."""
    return render("now", visitor.places, name=name, progress=progress_of(visitor, name), now=visitor.sources.now)


@router.get("/trends")
def show_trends(visitor: CurrentVisitor, name: Annotated[list[str], Query(max_length=PAGE_SIZE)]) -> str:
    """The records and the quarantine of the last runs of publications, as charts."""
    names = [visitor.publication(each) for each in dict.fromkeys(name)]
    return render("trends", visitor.places, trends=find_trends(visitor.sources, names))


@dataclass(frozen=True, slots=True)
class Drift:
    """What was found; `problem`: why nothing was."""

    plan: TopicsPlan | None = None
    problem: str = ""


def find_drift(visitor: Visitor, name: str) -> Drift:
    """The plan that `contexture topics plan` shows, of one publication."""
    sources = visitor.sources
    publication = sources.publications.get(name)
    if publication is None:
        return Drift(problem="there is no valid publication file of this name")
    try:
        with visitor.installation.outside_calls:
            [(connection, want)] = wanted(sources.home, [publication]).items()
            settings = kafka_settings(connection)
            return Drift(plan_topics(settings, want.specs, frozenset(want.keyed), wait_seconds=_WAIT_SECONDS))
    except ContextureError as error:
        return Drift(problem=str(error))


@router.get("/publications/{name}/topics/drift/plan")
def show_drift_plan(visitor: CurrentVisitor, name: str) -> str:
    """How its topics differ from what its file says, as the brokers respond."""
    found = find_drift(visitor, visitor.publication(name))
    return render("drift_plan", visitor.places, drift=found, shown=SHOWN)
