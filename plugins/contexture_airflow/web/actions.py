"""The actions of the page: what each asks before it is done, and doing it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final, Protocol

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from contexture.errors import ConfigurationError, ContextureError, DefectError
from contexture.monitoring.rows import RunRow
from contexture.operations.actions import interventions
from contexture.operations.status.quarantine import QuarantinedByRule, read_quarantine
from contexture.operations.status.sources import Sources
from contexture.storage.outboxes import Outboxes
from contexture.storage.publication_store import PublicationStore
from contexture.storage.shrink_report import ShrinkReport
from contexture_airflow.settings import VERIFY_DAG
from contexture_airflow.web.airflow_api import AirflowApi, AlreadyStartedError, RefusedError
from contexture_airflow.web.forms import (
    EMPTY,
    FORM_FIELD,
    TOKEN_FIELD,
    SubmittedForm,
    is_token,
    new_form,
    read_form,
    token_for,
)
from contexture_airflow.web.rendering import render
from contexture_airflow.web.visitor import CurrentVisitor, Visitor


class PageDags(interventions.DagControl, interventions.SuspensionControl, Protocol):
    """The calls to Airflow that the page needs."""


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """What a person wants done, and with what.

    Attributes:
        subject: an outbox; empty where the action is about the publication.
        user: the user's name in Airflow.
        is_suspended: whether runs that are started wait, because the publication's DAG is paused.
    """

    dags: PageDags
    store: PublicationStore
    publication: str
    subject: str
    user: str
    form: SubmittedForm
    is_suspended: bool = False


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What came of it, and the run that was started."""

    outcome: str
    run_id: str | None = None

    @classmethod
    def by_run(cls, asked: ActionRequest, outcome: str, run_id: str) -> ActionResult:
        """By a run of the publication; while that is suspended, Airflow lets the run wait."""
        waits = "; the publication is suspended, and the run waits until it is resumed"
        return cls(outcome + (waits if asked.is_suspended else ""), run_id)


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can be done.

    Attributes:
        title: what it is called.
        meaning: what will happen, before a person confirms it.
        perform: does it; raises a ContextureError when it can't be done.
        while_suspended: what else is to be known while the publication is suspended.
        of_outbox: it is about one outbox.
        needs_file: nothing comes of it without a good publication file.
        is_grave: it deletes, or gives up.
    """

    title: str
    meaning: str
    perform: Callable[[ActionRequest], ActionResult]
    while_suspended: str = ""
    of_outbox: bool = False
    needs_file: bool = True
    is_grave: bool = False


def _run(asked: ActionRequest) -> ActionResult:
    params = {"dry_run": True} if asked.form.one("dry_run") else {}
    run = interventions.run_now(asked.dags, asked.publication, asked.form.reason, **params)
    return ActionResult.by_run(asked, "a dry run was started" if params else "a run was started", run)


def _resynchronise(asked: ActionRequest) -> ActionResult:
    if asked.is_suspended:
        raise ConfigurationError("the publication is suspended, and would be left out", next_step="resume it first")
    started = interventions.resynchronise(asked.dags, [asked.publication], mode="full", reason=asked.form.reason)
    if started.paused:
        return ActionResult("it is suspended and was left out: resume it, and start this again")
    # The run that was started is one of another DAG, whose id leads nowhere here.
    return ActionResult(f"a full run is being started by run {started.run} of {interventions.RESYNCHRONISE}")


def _suspend(asked: ActionRequest) -> ActionResult:
    return ActionResult(interventions.suspend(asked.dags, asked.publication, asked.form.reason))


def _resume(asked: ActionRequest) -> ActionResult:
    return ActionResult(interventions.resume(asked.dags, asked.publication, asked.form.reason))


def _retry_outbox(asked: ActionRequest) -> ActionResult:
    sent = interventions.send_again(asked.dags, asked.store, asked.subject, asked.form.reason)
    return ActionResult(sent.outcome) if sent.run is None else ActionResult.by_run(asked, sent.outcome, sent.run)


def _abandon(asked: ActionRequest) -> ActionResult:
    done = interventions.abandon(asked.store, asked.subject, asked.form.reason, asked.user)
    return ActionResult(done.outcome)


def _retry_quarantine(asked: ActionRequest) -> ActionResult:
    rules = asked.form.many("rule")
    order = interventions.retry_order(asked.store, asked.subject, rules, asked.form.reason)
    run = asked.dags.trigger(order.dag, order.conf)
    events = "1 quarantined event" if order.events == 1 else f"{order.events} quarantined events"
    return ActionResult.by_run(asked, f"a run was started that retries {events}", run)


def _confirm_shrink(asked: ActionRequest) -> ActionResult:
    run = interventions.run_now(asked.dags, asked.publication, asked.form.reason, confirm_shrink=True)
    return ActionResult.by_run(asked, "a run was started that may delete more than source.shrink_limit allows", run)


def _verify(asked: ActionRequest) -> ActionResult:
    interventions.refuse_paused(asked.dags, VERIFY_DAG)
    run = asked.dags.trigger(VERIFY_DAG, {"publications": [asked.publication], "reason": asked.form.reason})
    return ActionResult(f"run {run} of {VERIFY_DAG} was started")


_WAITS: Final = "The publication is suspended: the run waits until it is resumed."

ACTIONS: Final[Mapping[str, Action]] = {
    "run": Action(
        "Run now",
        "A run of the publication begins, in the mode that its file specifies. What waits to be sent is sent first.",
        _run,
        while_suspended=_WAITS,
    ),
    "resynchronise": Action(
        "Resynchronise in full",
        "Everything the source holds is read and sent again, and what it no longer holds is deleted from the topics.",
        _resynchronise,
        while_suspended="The publication is suspended, and would be left out: resume it first.",
    ),
    "suspend": Action(
        "Suspend",
        "No further run begins until the publication is resumed. Of a run that has begun, the tasks that run now "
        "continue to their end, and the rest waits until then.",
        _suspend,
        needs_file=False,
    ),
    "resume": Action(
        "Resume",
        "Runs begin again by the publication's schedule, the latest missed one immediately. A run that was paused, or "
        "was started in the meantime, continues first.",
        _resume,
        needs_file=False,
    ),
    "retry-outbox": Action(
        interventions.SEND_AGAIN,
        "The failed sends of the outbox are cleared, and a run begins that sends the rest of it immediately, from the "
        "ledger's position, with all its attempts available again. For an outbox of a backfill no run begins: its own "
        "run alone sends it, when its publish task is cleared.",
        _retry_outbox,
        while_suspended=_WAITS,
        of_outbox=True,
    ),
    "abandon-outbox": Action(
        interventions.ABANDON,
        "The rest of the outbox is never sent, except what a task is sending at this moment. What is in Kafka already "
        "stays there, and the publication's next run is a full one, unless it is an outbox of a backfill.",
        _abandon,
        of_outbox=True,
        needs_file=False,
        is_grave=True,
    ),
    "retry-quarantine": Action(
        "Retry quarantined events",
        "A run begins that retries what the rules quarantined, instead of reading the source. What passes now is "
        "published, unless the target holds something newer; what is quarantined again stays, with its new reason.",
        _retry_quarantine,
        while_suspended=_WAITS,
        of_outbox=True,
    ),
    "confirm-shrink": Action(
        "Confirm many deletions",
        "A run begins that may delete more than source.shrink_limit allows. It reads the source again: what is "
        "missing for the second time is deleted from the topics.",
        _confirm_shrink,
        while_suspended=_WAITS,
        is_grave=True,
    ),
    "verify": Action(
        "Verify the replica",
        "The topics are read back and compared with what the target should contain. Nothing is changed.",
        _verify,
    ),
}
"""Actions by the name in their addresses."""


CONFIRM_SHRINK: Final = "confirm-shrink"
_LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True)
class ConfirmationFacts:
    """What is shown beside the form.

    Attributes:
        facts: names and values.
        held: what the rules hold back, with a choice of rules.
        shrink_report: what would be deleted.
    """

    facts: tuple[tuple[str, str], ...] = ()
    held: QuarantinedByRule | None = None
    shrink_report: ShrinkReport | None = None


def find_confirmation_facts(sources: Sources, name: str, action: str, outbox: str) -> ConfirmationFacts:
    """What belongs to an action; nothing for most.

    Raises:
        ConfigurationError: there is no such outbox.
        RetriableError: the storage did not answer.
    """
    if action == CONFIRM_SHRINK:
        return ConfirmationFacts(shrink_report=find_shrink_report(sources, name))
    if not outbox:
        return ConfirmationFacts()
    store = sources.home.publication(name)
    status = store.outboxes.status(_one_step(outbox))
    if action == "retry-quarantine":
        return ConfirmationFacts(held=read_quarantine(store, status))
    sends = store.attempts.of_outbox(outbox)
    failed = ", ".join(f"shard {each.shard}: {each.describe()}" for each in sends)
    state = f"{status.status}, {status.steps[-1].reason}"
    counts = _of_manifest(store.outboxes, outbox)
    return ConfirmationFacts(facts=(("Outbox", outbox), ("State", state), *counts, ("Failed sends", failed or "none")))


def _of_manifest(outboxes: Outboxes, outbox: str) -> tuple[tuple[str, str], ...]:
    try:
        manifest = outboxes.manifest(outbox)
    except DefectError:
        # To be abandoned is the way out of a damaged outbox.
        return (("Records", "not known: its manifest cannot be read"),)
    records = f"{manifest.records:,} for {manifest.topics:,} topics, {manifest.deletes:,} of them tombstones"
    return (("Mode", manifest.mode), ("Records", records))


def find_shrink_report(sources: Sources, name: str) -> ShrinkReport | None:
    """Returns what the last run that has ended would have deleted without the guard; backfills delete nothing."""
    runs: Sequence[RunRow] = sources.tables.ask(lambda history: history.runs(name, limit=_LOOKED_AT), ())
    ended = (each for each in runs if each.state != "running" and not each.is_backfill)
    latest = next(ended, None)
    return sources.home.publication(name).run(latest.run).shrink_report() if latest else None


def _one_step(outbox: str) -> str:
    # It becomes part of a path.
    if not outbox.isalnum():
        raise ConfigurationError("there is no such outbox", next_step="choose one on the publication's page")
    return outbox


router = APIRouter(default_response_class=HTMLResponse)
log = logging.getLogger(__name__)

STALE: Final = "this form was shown too long ago, or to another user: open it again, and confirm it"
NOTHING_HELD_UP: Final = "no deletions wait for confirmation"
Filled = Annotated[SubmittedForm, Depends(read_form)]


@router.get("/publications/{name}/actions/{action}")
def show_action(request: Request, visitor: CurrentVisitor, name: str, action: str, outbox: str = "") -> str:
    """What an action means, with its form."""
    found = _action(action, outbox)
    visitor.require_action_right(name)
    return _confirmation(request, visitor, name, action, found, outbox)


@router.post("/publications/{name}/actions/{action}")
async def perform_action(request: Request, visitor: CurrentVisitor, form: Filled, name: str, action: str) -> Response:
    """Does it, and leads back to the publication."""
    loop, outbox = asyncio.get_running_loop(), form.one("outbox")
    found = _action(action, outbox)
    # Beside the loop, in threads of their own: Airflow's application answers within it while we wait.
    api = AirflowApi(request, loop, form.one(FORM_FIELD))
    return await asyncio.to_thread(_perform, request, api, visitor, form, (name, action, found))


def _perform(
    request: Request, api: AirflowApi, visitor: Visitor, form: SubmittedForm, what: tuple[str, str, Action]
) -> Response:
    name, key, action = what
    visitor.require_action_right(name)
    outbox = form.one("outbox")
    suspended = bool(visitor.sources.dags[name].paused)
    asked = ActionRequest(api, visitor.sources.home.publication(name), name, outbox, visitor.user, form, suspended)
    try:
        _check(request, visitor, name, key, form)
        _check_file(visitor, name, action)
        done = action.perform(asked)
    except AlreadyStartedError:
        # Pressed twice: what the first one did is kept, and the second did nothing.
        return RedirectResponse(visitor.places.publication(name, done=key), 303)
    except ContextureError as error:
        status = 403 if isinstance(error, RefusedError) else 409
        page = _confirmation(request, visitor, name, key, action, outbox, str(error), form)
        return HTMLResponse(page, status)
    log.info("%r did %s on %s %s: %r", visitor.user, key, name, outbox, form.reason)
    visitor.record_action(name, action.title, outbox, form.reason, done.outcome, done.run_id)
    return RedirectResponse(visitor.places.publication(name, done=key), 303)


def _check(request: Request, visitor: Visitor, name: str, key: str, form: SubmittedForm) -> None:
    what = _what(visitor, name, key, form.one("outbox"), form.one(FORM_FIELD))
    if not is_token(request, visitor.user, what, form.one(TOKEN_FIELD)):
        raise ConfigurationError(STALE, next_step="confirm it again")
    if key == CONFIRM_SHRINK and find_shrink_report(visitor.sources, name) is None:
        raise ConfigurationError(NOTHING_HELD_UP, next_step="read in the latest run what has happened")
    if not form.reason:
        raise ConfigurationError("a reason is required", next_step="enter a reason: it is stored with the action")


def _check_file(visitor: Visitor, name: str, action: Action) -> None:
    if action.needs_file and name not in visitor.sources.publications:
        raise ConfigurationError(
            "there is no valid publication file of this name, so that it would have no effect",
            next_step="find the errors in its file: contexture check",
        )


def _confirmation(
    request: Request,
    visitor: Visitor,
    name: str,
    key: str,
    action: Action,
    outbox: str,
    problem: str = "",
    filled: SubmittedForm = EMPTY,
) -> str:
    try:
        shown = find_confirmation_facts(visitor.sources, name, key, outbox)
    except ConfigurationError as error:
        raise HTTPException(404, str(error)) from error
    form = new_form()
    # What was ticked stays so: a form that comes back must not ask for something else.
    return render(
        "confirm",
        visitor.places,
        name=name,
        key=key,
        action=action,
        outbox=outbox,
        form=form,
        token=token_for(request, visitor.user, _what(visitor, name, key, outbox, form)),
        suspended=visitor.sources.dags[name].paused,
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


def _what(visitor: Visitor, name: str, key: str, outbox: str, form: str) -> str:
    """What a form is about. A confirmation of deletions is about those that were shown, not those of a later run."""
    about = find_shrink_report(visitor.sources, name) if key == CONFIRM_SHRINK else None
    shown = "" if about is None else sha256(about.to_json()).hexdigest()
    return f"{name}/{key}/{outbox}/{shown}/{form}"
