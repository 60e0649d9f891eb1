"""Connections on the page: what each sets, those that do not respond, and a test whose steps are shown as they end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from contexture.errors import ContextureError, RetriableError
from contexture.operations.actions.connection_check import check_connection_fields
from contexture.operations.actions.connection_properties import (
    ConnectionProperty,
    PropertyOrigin,
    describe_kafka,
    describe_source,
)
from contexture.operations.actions.reachability import ReachProbe, find_reach_problem
from contexture.operations.actions.source_check import CheckOutcome, CheckStep
from contexture.operations.status.detail import connections
from contexture.publications import Publication, SdmxSource
from contexture.sources.http.connection import HttpConnection
from contexture_airflow.connections.settings import fields, kafka_settings, source_connection
from contexture_airflow.web.actions import STALE, Filled
from contexture_airflow.web.forms import TOKEN_FIELD, is_token, token_for
from contexture_airflow.web.rendering import render, stream
from contexture_airflow.web.visitor import CurrentVisitor, Visitor

if TYPE_CHECKING:
    from contexture.kafka import ClientSettings

router = APIRouter(default_response_class=HTMLResponse)

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS: Final = 15.0
_PROBE_SECONDS: Final = 1.5
_WAIT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """What a connection sets for a publication.

    Attributes:
        connection: its id.
        set: the properties that anyone but the Kafka client sets.
        defaults: those that have the Kafka client's own default.
        problem: why there is nothing to show.
    """

    connection: str
    set: tuple[ConnectionProperty, ...] = ()
    defaults: tuple[ConnectionProperty, ...] = ()
    problem: str = ""


@router.get("/publications/{name}/connections")
def show_connections(visitor: CurrentVisitor, name: str) -> str:
    """The properties of a publication's connections, each with its origin."""
    publication = visitor.sources.publications.get(visitor.publication(name))
    ids = connections(visitor.sources, name)
    seen = [_view(publication, each) for each in ids if publication and visitor.may_see_connection(each)]
    hidden = len(ids) - len(seen)
    return render("connections", visitor.places, name=name, connections=seen, hidden=hidden)


def _view(publication: Publication, connection_id: str) -> ConnectionView:
    try:
        opened = _open(publication, connection_id)
        if isinstance(opened, HttpConnection):
            found = describe_source(opened, fields(connection_id), publication)
        else:
            found = describe_kafka(opened, publication)
    except ContextureError as error:
        return ConnectionView(connection_id, problem=str(error))
    by_client = [each for each in found if each.origin is PropertyOrigin.CLIENT]
    return ConnectionView(connection_id, tuple(each for each in found if each not in by_client), tuple(by_client))


def _open(publication: Publication, connection_id: str) -> HttpConnection | ClientSettings:
    source = publication.source
    if source.has_content and connection_id == source.connection:
        return source_connection(connection_id, source.kind)
    return kafka_settings(connection_id)


@dataclass(frozen=True, slots=True)
class UnreachableConnection:
    """A connection that does not respond, with the publications that use it; the reason for those who may see it."""

    connection: str
    publications: tuple[str, ...]
    reason: str


@router.get("/connections/unreachable")
def show_unreachable(visitor: CurrentVisitor) -> str:
    """The connections of the visitor's publications where nothing responds; loaded after the overview."""
    return render("unreachable", visitor.places, unreachable=find_unreachable(visitor))


def find_unreachable(visitor: Visitor) -> list[UnreachableConnection]:
    """Returns the connections of the visitor's publications that do not respond, within `_WAIT_SECONDS`."""
    users: dict[str, list[Publication]] = {}
    for name in sorted(visitor.sources.dags):
        for each in connections(visitor.sources, name):
            users.setdefault(each, []).append(visitor.sources.publications[name])
    probes = [_probe(publications[0], each) for each, publications in users.items()]
    problems = visitor.installation.reachability.find_problems(probes, _WAIT_SECONDS)
    return [
        UnreachableConnection(
            each, tuple(user.name for user in users[each]), problem if visitor.may_see_connection(each) else ""
        )
        for each, problem in problems.items()
    ]


def _probe(publication: Publication, connection_id: str) -> ReachProbe[HttpConnection | ClientSettings]:
    return ReachProbe(
        connection_id,
        lambda: _open(publication, connection_id),
        lambda opened: find_reach_problem(opened, _PROBE_SECONDS),
    )


@router.get("/publications/{name}/connections/{connection}")
def show_connection(request: Request, visitor: CurrentVisitor, name: str, connection: str) -> str:
    """What a test does, with its form."""
    _tested(visitor, name, connection)
    return _form(request, visitor, name, connection)


@router.post("/publications/{name}/connections/{connection}")
def check_connection(request: Request, visitor: CurrentVisitor, form: Filled, name: str, connection: str) -> Response:
    """Tests it."""
    publication = _tested(visitor, name, connection)
    if not is_token(request, visitor.user, _what(name, connection), form.one(TOKEN_FIELD)):
        return HTMLResponse(_form(request, visitor, name, connection, STALE, form.reason), 409)
    if not form.reason:
        return HTMLResponse(
            _form(request, visitor, name, connection, "enter a reason: it is stored with the action"), 409
        )
    steps = ConnectionCheckStream(visitor, publication, connection, form.reason).steps()
    page = stream("connection_check", visitor.places, name=name, connection=connection, steps=steps)
    # Compressed, the steps would wait for each other.
    return StreamingResponse(page, media_type="text/html", headers={"Content-Encoding": "identity"})


class ConnectionCheckStream:
    """One test, in a thread of its own, so that its steps can be shown while it goes on.

    Args:
        visitor: the visitor who starts the test.
        publication: whose connection it is.
        connection: its id.
        reason: why it is tested.
    """

    def __init__(self, visitor: Visitor, publication: Publication, connection: str, reason: str) -> None:
        self._visitor = visitor
        self._publication = publication
        self._connection = connection
        self._reason = reason
        self._calls = visitor.installation.outside_calls
        self._steps: SimpleQueue[CheckStep | None] = SimpleQueue()

    def steps(self) -> Iterator[CheckStep]:
        """Each step as soon as it is done."""
        try:
            self._calls.begin()
        except RetriableError as error:
            yield _failed(str(error))
            return
        Thread(target=self._run, name="contexture-connection-check", daemon=True).start()
        while (step := self._steps.get()) is not None:
            yield step

    def _run(self) -> None:
        try:
            outcome = self._report_outcome()
            visitor, name = self._visitor, self._publication.name
            visitor.record_action(name, "Test connection", self._connection, self._reason, outcome, run_id=None)
        finally:
            self._calls.end()
            # Last: what was done is kept once the page has ended.
            self._steps.put(None)

    def _report_outcome(self) -> str:
        try:
            outcome = self._outcome()
        except ContextureError as error:
            self._steps.put(_failed(str(error)))
            return "it cannot be used"
        except Exception as error:  # the page must come to its end, whatever a library does
            log.exception("the test of connection %s failed itself", self._connection)
            self._steps.put(_failed(f"the test itself failed ({type(error).__name__}): see the API server's log"))
            return "the test itself failed"
        failed = [step.name for step in outcome.steps if step.passed is False]
        return f"failed: {', '.join(failed)}" if failed or outcome.unreachable else "it works"

    def _outcome(self) -> CheckOutcome:
        source = self._publication.source
        of_source = self._connection == source.connection
        return check_connection_fields(
            self._connection,
            fields(self._connection),
            service=source.tenant,
            timeout_seconds=_TIMEOUT_SECONDS,
            media_type=(source.media_type or "") if of_source and isinstance(source, SdmxSource) else "",
            transactional_id_prefix=self._publication.publish.transactional_id_prefix,
            kind=source.kind if of_source else None,
            on_step=self._steps.put,
        )


def _tested(visitor: Visitor, name: str, connection: str) -> Publication:
    """The publication whose connection it is, for those who may test it."""
    visitor.require_action_right(name)
    visitor.require_test_right(connection)
    if connection not in connections(visitor.sources, name):
        raise HTTPException(404, "this publication has no such connection")
    return visitor.sources.publications[name]


def _form(request: Request, visitor: Visitor, name: str, connection: str, problem: str = "", reason: str = "") -> str:
    token = token_for(request, visitor.user, _what(name, connection))
    shown = {"token": token, "problem": problem, "reason": reason}
    return render("connection_form", visitor.places, name=name, connection=connection, **shown)


def _what(name: str, connection: str) -> str:
    return f"{name}/connections/{connection}"


def _failed(why: str) -> CheckStep:
    return CheckStep(name="test", passed=False, detail=why, seconds=0.0)
