"""The pages by which something is done: what it means, a reason, a confirmation, and then what came of it."""

from __future__ import annotations

import asyncio
import logging
from hashlib import sha256
from typing import Annotated, Final

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from contexture.errors import ConfigurationError, ContextureError
from contexture_airflow.ui.actions import ACTIONS, Action, Asked
from contexture_airflow.ui.airflow_api import AirflowApi, AlreadyStartedError, RefusedError
from contexture_airflow.ui.forms import EMPTY, FORM_FIELD, TOKEN_FIELD, Form, is_token, new_form, read_form, token_for
from contexture_airflow.ui.reader import Reader, Reading
from contexture_airflow.ui.rendering import render
from contexture_airflow.ui.showing import CONFIRM_SHRINK, shown_before, vanishing_of_latest

router = APIRouter(default_response_class=HTMLResponse)
log = logging.getLogger(__name__)

STALE: Final = "this form was shown too long ago, or to somebody else: look at it again, and confirm it"
NOTHING_HELD_UP: Final = "no deletions are held up that could be confirmed"
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
    api = AirflowApi(request, loop, form.one(FORM_FIELD))
    return await asyncio.to_thread(_perform, request, api, reader, form, (name, action, found))


def _perform(request: Request, api: AirflowApi, reader: Reader, form: Form, what: tuple[str, str, Action]) -> Response:
    name, key, action = what
    reader.actor(name)
    outbox = form.one("outbox")
    suspended = bool(reader.sources.dags[name].paused)
    asked = Asked(api, reader.sources.storage, name, outbox, reader.who, form, suspended)
    try:
        _check(request, reader, name, key, form)
        _check_file(reader, name, action)
        done = action.perform(asked)
    except AlreadyStartedError:
        # Pressed twice: what the first one did is kept, and the second did nothing.
        return RedirectResponse(reader.places.publication(name, done=key), 303)
    except ContextureError as error:
        status = 403 if isinstance(error, RefusedError) else 409
        page = _confirmation(request, reader, name, key, action, outbox, str(error), form)
        return HTMLResponse(page, status)
    log.info("%r did %s on %s %s: %r", reader.who, key, name, outbox, form.reason)
    reader.note(name, action.title, outbox, form.reason, done.outcome, done.run_id)
    return RedirectResponse(reader.places.publication(name, done=key), 303)


def _check(request: Request, reader: Reader, name: str, key: str, form: Form) -> None:
    what = _what(reader, name, key, form.one("outbox"), form.one(FORM_FIELD))
    if not is_token(request, reader.who, what, form.one(TOKEN_FIELD)):
        raise ConfigurationError(STALE, next_step="confirm it again")
    if key == CONFIRM_SHRINK and vanishing_of_latest(reader.sources, name) is None:
        raise ConfigurationError(NOTHING_HELD_UP, next_step="see in the latest run what has happened")
    if not form.reason:
        raise ConfigurationError("no reason is given", next_step="say why: it is kept for whoever asks later")


def _check_file(reader: Reader, name: str, action: Action) -> None:
    if action.needs_file and name not in reader.sources.publications:
        raise ConfigurationError(
            "there is no good publication file of this name, so nothing would come of it",
            next_step="see what is wrong with its file: contexture check",
        )


def _confirmation(
    request: Request,
    reader: Reader,
    name: str,
    key: str,
    action: Action,
    outbox: str,
    problem: str = "",
    filled: Form = EMPTY,
) -> str:
    try:
        shown = shown_before(reader.sources, name, key, outbox)
    except ConfigurationError as error:
        raise HTTPException(404, str(error)) from error
    form = new_form()
    # What was ticked stays so: a form that comes back must not ask for something else.
    return render(
        "confirm",
        reader.places,
        name=name,
        key=key,
        action=action,
        outbox=outbox,
        form=form,
        token=token_for(request, reader.who, _what(reader, name, key, outbox, form)),
        suspended=reader.sources.dags[name].paused,
        shown=shown,
        problem=problem,
        reason=filled.reason,
        ticked=frozenset(filled.many("rule")),
        dry_run=bool(filled.one("dry_run")),
    )


def _action(key: str, outbox: str) -> Action:
    found = ACTIONS.get(key)
    if found is None or found.of_outbox != bool(outbox):
        raise HTTPException(404, "there is no such action")
    return found


def _what(reader: Reader, name: str, key: str, outbox: str, form: str) -> str:
    """What a form is about. Whoever confirms deletions confirms those that were shown, and not those of a later run."""
    about = vanishing_of_latest(reader.sources, name) if key == CONFIRM_SHRINK else None
    shown = "" if about is None else sha256(about.to_json()).hexdigest()
    return f"{name}/{key}/{outbox}/{shown}/{form}"
