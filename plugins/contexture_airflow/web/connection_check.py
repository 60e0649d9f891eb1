"""Checking a connection from the page: each step is shown as soon as it is done."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from queue import SimpleQueue
from threading import BoundedSemaphore, Thread
from typing import Final

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from contexture.errors import ContextureError
from contexture.operations.actions.connection_check import check_connection_fields
from contexture.operations.actions.source_check import CheckOutcome, CheckStep
from contexture.operations.status.detail import connections
from contexture.publications import Publication, SdmxSource
from contexture_airflow.connections.settings import fields
from contexture_airflow.web.actions import STALE, Filled
from contexture_airflow.web.forms import TOKEN_FIELD, is_token, token_for
from contexture_airflow.web.rendering import render, stream
from contexture_airflow.web.visitor import CurrentVisitor, Visitor

router = APIRouter(default_response_class=HTMLResponse)

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS: Final = 15.0
# Who presses the button again and again should not keep all threads of the server busy.
_AT_ONCE: Final = BoundedSemaphore(2)


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
        self._steps: SimpleQueue[CheckStep | None] = SimpleQueue()

    def steps(self) -> Iterator[CheckStep]:
        """Each step as soon as it is done."""
        if not _AT_ONCE.acquire(blocking=False):
            yield _failed("two other connection tests are running: retry when they have ended")
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
            _AT_ONCE.release()
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
