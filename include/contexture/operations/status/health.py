"""The health of a publication, and what a waiting run requires of a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from contexture.monitoring.alerts import PendingSend
from contexture.monitoring.rows import RunRow
from contexture.publications import Publication
from contexture.storage.delivery import SendAttempts, most_urgent
from contexture.storage.publication_store import PublicationStore, run_name
from contexture.storage.shrink_report import ShrinkReport
from contexture.storage.state import StatePointer

_NO_END = "the latest run has ended in Airflow, and recorded neither a conclusion nor an error: check its tasks"
_HELD = "its DAG is paused: the tasks that run now end, and the rest of the run waits until it is resumed"
_WAITS = "an approved outbox waits: the next run sends it before it reads anything new"
_BACKFILL_WAITS = (
    "an approved outbox of a backfill waits, and its own run alone sends it: clear its publish task, or abandon the "
    "outbox"
)


class PublicationHealth(StrEnum):
    """What a publication does, or why it does nothing."""

    STOPPED = "stopped"
    ASKING = "waiting for approval"
    RESYNC_REQUIRED = "resync required"
    INCOMPLETE = "deletions not detected"
    WAITING = "waiting to send"
    RUNNING = "running"
    NEVER_RUN = "never run"
    IDLE = "idle"


URGENCY = {health: place for place, health in enumerate(PublicationHealth)}
"""The order in which lists show them."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """Where a run waits for a person's answer.

    Attributes:
        run_id, task: Airflow's.
        until: when it is too late; None when that is not known.
    """

    run_id: str
    task: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class DagFacts:
    """What Airflow knows of a publication's DAG.

    Attributes:
        paused: whether it is suspended.
        active: whether a run of it is queued or running.
        next_run_at: when the next scheduled run may begin; None when none is planned.
        question: what a run of it waits for; None when none does.
    """

    paused: bool
    active: bool
    next_run_at: datetime | None
    question: OpenQuestion | None = None


@dataclass(frozen=True, slots=True)
class HealthAssessment:
    """The state of a publication, and why; `reason` is empty where the word says it all."""

    health: PublicationHealth
    reason: str = ""


def assess_health(
    pointer: StatePointer,
    latest: RunRow | None,
    pending: Sequence[PendingSend],
    dag: DagFacts | None,
    asked: str | None = None,
) -> HealthAssessment:
    """The state of a publication.

    Args:
        pointer: its state on storage.
        latest: the run that began last; None without the operational tables.
        pending: its outboxes that are not at their end.
        dag: what Airflow knows; None when it knows nothing, and the tables are believed.
        asked: the question that a run of it waits for; None when none waits.
    """
    if asked is not None:
        return HealthAssessment(PublicationHealth.ASKING, asked)
    urgent = most_urgent([send for outbox in pending for send in outbox.sends])
    # Airflow continues no run of a paused DAG: what is wrong must not hide behind one that is paused.
    held = dag is not None and dag.paused and dag.active
    if not held and (dag.active if dag else latest is not None and latest.state == "running"):
        return HealthAssessment(PublicationHealth.RUNNING, _attempts(urgent))
    if urgent is not None and urgent.state != "waiting":
        return HealthAssessment(PublicationHealth.STOPPED, f"{_attempts(urgent)}: {urgent.message}")
    if latest is not None and (latest.state == "failed" or (latest.state == "running" and not held)):
        failed = f"{latest.failed_task or 'a task'}: {latest.message or 'no message'}"
        return HealthAssessment(PublicationHealth.STOPPED, failed if latest.state == "failed" else _NO_END)
    if held:
        return HealthAssessment(PublicationHealth.RUNNING, _HELD)
    approved = [each for each in pending if each.status == "approved"]
    if approved:
        waits = _BACKFILL_WAITS if all(each.of_backfill for each in approved) else _WAITS
        return HealthAssessment(PublicationHealth.WAITING, _attempts(urgent) or waits)
    if pointer.full_run_due:
        return HealthAssessment(PublicationHealth.RESYNC_REQUIRED, pointer.full_run_due)
    if pointer.incomplete is not None and pointer.incomplete.is_lasting:
        return HealthAssessment(PublicationHealth.INCOMPLETE, pointer.incomplete.sentence)
    is_new = latest is None and pointer.concluded_at is None
    return HealthAssessment(PublicationHealth.NEVER_RUN if is_new else PublicationHealth.IDLE)


def _attempts(send: SendAttempts | None) -> str:
    return f"shard {send.shard}, {send.describe()}" if send else ""


_TASK = "stage"


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question: whether what is gone from the source may be deleted.

    Attributes:
        question: where it is put.
        shrink_report: what would be deleted; None when that is no longer stored.
    """

    question: OpenQuestion
    shrink_report: ShrinkReport | None

    @property
    def sentence(self) -> str:
        """The question in one sentence."""
        found, until = self.shrink_report, self.question.until
        what = f"{found.count} of {found.held} identities" if found else "more than source.shrink_limit allows"
        when = f" until {until:%Y-%m-%d %H:%M} UTC" if until else ""
        return f"{what} would be deleted, once a person approves{when}"


def find_open_question(
    store: PublicationStore, publication: Publication | None, dag: DagFacts | None, latest: RunRow | None
) -> AnsweredQuestion | None:
    """What a run of a publication asks; None when none does.

    Args:
        store: of the publication.
        publication: its file, if there is a good one.
        dag: what Airflow knows; without it, the run's own files are believed.
        latest: the run that began last.

    Raises:
        RetriableError: the storage did not answer.
    """
    if dag is None:
        return _by_files(store, publication, latest)
    if dag.question is None:
        return None
    return AnsweredQuestion(dag.question, store.run(run_name(dag.question.run_id)).shrink_report())


def _by_files(
    store: PublicationStore, publication: Publication | None, latest: RunRow | None
) -> AnsweredQuestion | None:
    if publication is None or publication.source.shrink_limit.beyond != "ask":
        return None
    if latest is None or latest.state != "running":
        return None
    run = store.run(latest.run)
    found = run.shrink_report()
    if found is None or run.has_shrink_decision():
        return None
    return AnsweredQuestion(OpenQuestion(latest.run_id, _TASK), found)
