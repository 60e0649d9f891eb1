"""The pages by which something is done: what it means, a reason, a confirmation, and then what came of it."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated, Final

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from contexture.errors import ConfigurationError, ContextureError
from contexture_airflow.ui.actions import ACTIONS, Action, Asked
from contexture_airflow.ui.airflow_api import AirflowApi, RefusedError
from contexture_airflow.ui.forms import TOKEN_FIELD, Form, is_token, read_form, token_for
from contexture_airflow.ui.reader import Reader, Reading
from contexture_airflow.ui.rendering import render
from contexture_airflow.ui.showing import shown_before

router = APIRouter(default_response_class=HTMLResponse)
log = logging.getLogger(__name__)

STALE: Final = "this form was shown too long ago, or to somebody else: look at it again, and confirm it"
Filled = Annotated[Form, Depends(read_form)]


@router.get("/publications/{name}/actions/{action}")
def show_action(request: Request, reader: Reading, name: str, action: str, outbox: str = "") -> str:
    """What an action means, with its form."""
    found = _action(action, outbox)
    reader.actor(name)
    return _confirmation(request, reader, name, action, found, outbox)


@router.post("/publications/{name}/actions/{action}")
async def perform_action(request: Request, reader: Reading, form: Filled, name: str, action: str) -> Response:
    """Does it, and leads back to the publication."""
    loop, outbox = asyncio.get_running_loop(), form.one("outbox")
    found = _action(action, outbox)
    # Beside the loop, in threads of their own: Airflow's application answers within it while we wait.
    return await asyncio.to_thread(_perform, request, AirflowApi(request, loop), reader, form, (name, action, found))


def _perform(request: Request, api: AirflowApi, reader: Reader, form: Form, what: tuple[str, str, Action]) -> Response:
    name, key, action = what
    reader.actor(name)
    outbox = form.one("outbox")
    asked = Asked(api, reader.sources.storage, name, outbox, reader.who, form)
    try:
        if not is_token(request, reader.who, _what(name, key, outbox), form.one(TOKEN_FIELD)):
            raise ConfigurationError(STALE, next_step="confirm it again")
        if not form.reason:
            raise ConfigurationError("no reason is given", next_step="say why: it is kept for whoever asks later")
        done = action.perform(asked)
    except ContextureError as error:
        status = 403 if isinstance(error, RefusedError) else 409
        page = _confirmation(request, reader, name, key, action, outbox, str(error), form.reason)
        return HTMLResponse(page, status)
    log.info("%r did %s on %s %s: %r", reader.who, key, name, outbox, form.reason)
    reader.note(name, action.title, outbox, form.reason, done.outcome, done.run_id)
    return RedirectResponse(reader.places.publication(name, done=key), 303)


def _confirmation(
    request: Request,
    reader: Reader,
    name: str,
    key: str,
    action: Action,
    outbox: str,
    problem: str = "",
    reason: str = "",
) -> str:
    try:
        shown = shown_before(reader.sources, name, key, outbox)
    except ConfigurationError as error:
        raise HTTPException(404, str(error)) from error
    return render(
        "confirm",
        reader.places,
        name=name,
        key=key,
        action=action,
        outbox=outbox,
        token=token_for(request, reader.who, _what(name, key, outbox)),
        shown=shown,
        problem=problem,
        reason=reason,
    )


def _action(key: str, outbox: str) -> Action:
    found = ACTIONS.get(key)
    if found is None or found.of_outbox != bool(outbox):
        raise HTTPException(404, "there is no such action")
    return found


def _what(name: str, key: str, outbox: str) -> str:
    return f"{name}/{key}/{outbox}"
