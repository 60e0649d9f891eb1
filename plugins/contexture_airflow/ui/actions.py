"""What can be done from the page: each action with what it means, and how it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from contexture.errors import ConfigurationError
from contexture.operations.actions import interventions
from contexture.operations.actions.interventions import dag_of
from contexture.storage.home import Storage
from contexture.storage.outboxes import Outboxes, is_of_backfill
from contexture_airflow.settings import VERIFY_DAG
from contexture_airflow.ui.forms import Form


class Dags(interventions.Dags, Protocol):
    """Airflow, as far as the page acts on it."""

    def pause(self, dag_id: str, paused: bool, reason: str) -> None:
        """Suspends a DAG or resumes it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person wants done, and with what.

    Attributes:
        subject: an outbox; empty where the action is about the publication.
        who: the user, as Airflow calls them.
        is_suspended: whether runs that are started wait, because the publication's DAG is paused.
    """

    dags: Dags
    storage: Storage
    publication: str
    subject: str
    who: str
    form: Form
    is_suspended: bool = False

    @property
    def outboxes(self) -> Outboxes:
        """The outboxes of the publication."""
        return Outboxes(self.storage, self.publication)


@dataclass(frozen=True, slots=True)
class Done:
    """What came of it, and the run that was started."""

    outcome: str
    run_id: str | None = None

    @classmethod
    def by_run(cls, asked: Asked, outcome: str, run_id: str) -> Done:
        """By a run of the publication; while that is suspended, Airflow lets the run wait."""
        waits = "; the publication is suspended, and the run waits until somebody resumes it"
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
    perform: Callable[[Asked], Done]
    while_suspended: str = ""
    of_outbox: bool = False
    needs_file: bool = True
    is_grave: bool = False


def _run(asked: Asked) -> Done:
    params = {"dry_run": True} if asked.form.one("dry_run") else {}
    run = interventions.run_now(asked.dags, asked.publication, asked.form.reason, **params)
    return Done.by_run(asked, "a dry run was started" if params else "a run was started", run)


def _resynchronise(asked: Asked) -> Done:
    if asked.is_suspended:
        raise ConfigurationError("the publication is suspended, and would be left out", next_step="resume it first")
    started = interventions.resynchronise(asked.dags, [asked.publication], mode="full", reason=asked.form.reason)
    if started.paused:
        return Done("it is suspended and was left out: resume it, and ask again")
    # The run that was started is one of another DAG, whose id leads nowhere here.
    return Done(f"a full run is being started by run {started.run} of {interventions.RESYNCHRONISE}")


def _suspend(asked: Asked) -> Done:
    asked.dags.pause(dag_of(asked.publication), True, asked.form.reason)
    return Done("its DAG is paused: no run begins, and one that is on its way stands still when its running tasks end")


def _resume(asked: Asked) -> Done:
    asked.dags.pause(dag_of(asked.publication), False, asked.form.reason)
    return Done("its DAG is no longer paused")


def _retry_outbox(asked: Asked) -> Done:
    failed = interventions.forget_failed_sends(asked.outboxes, asked.subject)
    forgotten = "1 failed send is forgotten" if failed == 1 else f"{failed} failed sends are forgotten"
    if is_of_backfill(asked.outboxes, asked.subject):
        then = "clear the publish task of its backfill, which alone sends it"
        return Done(f"{forgotten}; now {then}")
    run = interventions.run_now(asked.dags, asked.publication, asked.form.reason)
    return Done.by_run(asked, f"{forgotten}, and a run was started that sends it first", run)


def _abandon(asked: Asked) -> Done:
    said = f"{asked.form.reason} ({asked.who})"
    moved, owes = interventions.abandon(asked.outboxes, asked.subject, said)
    return Done(f"outbox {moved.outbox} is abandoned; " + ("the next run is full" if owes else "nothing else is owed"))


def _retry_quarantine(asked: Asked) -> Done:
    rules = asked.form.many("rule")
    order = interventions.retry_order(asked.storage, asked.publication, asked.subject, rules, asked.form.reason)
    run = asked.dags.trigger(order.dag, order.conf)
    events = "1 quarantined event" if order.events == 1 else f"{order.events} quarantined events"
    return Done.by_run(asked, f"a run was started that tries {events} again", run)


def _confirm_shrink(asked: Asked) -> Done:
    run = interventions.run_now(asked.dags, asked.publication, asked.form.reason, confirm_shrink=True)
    return Done.by_run(asked, "a run was started that may delete more than source.shrink_limit allows", run)


def _verify(asked: Asked) -> Done:
    interventions.refuse_paused(asked.dags, VERIFY_DAG)
    run = asked.dags.trigger(VERIFY_DAG, {"publications": [asked.publication], "reason": asked.form.reason})
    return Done(f"run {run} of {VERIFY_DAG} was started")


_WAITS: Final = "The publication is suspended: the run waits until somebody resumes it."

ACTIONS: Final[Mapping[str, Action]] = {
    "run": Action(
        "Run now",
        "A run of the publication begins, in the mode that its file says. What waits to be sent is sent first.",
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
        "No further run begins until somebody resumes the publication. Of a run that is on its way, the tasks that run "
        "now go on to their end, and the rest stands still until then.",
        _suspend,
        needs_file=False,
    ),
    "resume": Action(
        "Resume",
        "Runs begin again by the publication's schedule, the latest that was missed at once. A run that stood still, "
        "or was started meanwhile, goes on first.",
        _resume,
        needs_file=False,
    ),
    "retry-outbox": Action(
        "Send the outbox again",
        "The failed sends of the outbox are forgotten, and a run begins that sends the rest of it at once, from where "
        "the ledger stands, with all its attempts. For an outbox of a backfill no run begins: its own run alone sends "
        "it, when somebody clears its publish task.",
        _retry_outbox,
        while_suspended=_WAITS,
        of_outbox=True,
    ),
    "abandon-outbox": Action(
        "Abandon the outbox",
        "The rest of the outbox is never sent, but for what a task is sending at this moment. What is in Kafka already "
        "stays there, and the publication's next run is a full one, unless it is an outbox of a backfill.",
        _abandon,
        of_outbox=True,
        needs_file=False,
        is_grave=True,
    ),
    "retry-quarantine": Action(
        "Try quarantined events again",
        "A run begins that tries what the rules held back, instead of reading the source. What passes now is "
        "published, unless the target holds something newer; what is refused again stays, with its new reason.",
        _retry_quarantine,
        while_suspended=_WAITS,
        of_outbox=True,
    ),
    "confirm-shrink": Action(
        "Confirm that much is gone",
        "A run begins that may delete more than source.shrink_limit allows. It reads the source again: what it then "
        "misses for the second time is deleted from the topics.",
        _confirm_shrink,
        while_suspended=_WAITS,
        is_grave=True,
    ),
    "verify": Action(
        "Verify the replica",
        "The topics are read back and compared with what the target should hold. Nothing is changed.",
        _verify,
    ),
}
"""Actions by the name in their addresses."""
