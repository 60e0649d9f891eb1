"""The progress of a run: its tasks, what it has read and sent, and how long the rest takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contexture.errors import DefectError
from contexture.monitoring.rows import RunRow
from contexture.operations.status.detail import StepTime
from contexture.operations.status.health import HealthAssessment, OpenQuestion
from contexture.operations.status.sources import Sources, collect_facts, manifest
from contexture.publications import SdmxPublication
from contexture.storage.delivery import most_urgent
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import LandingStore

TASKS: Final = ("settle", "stage", "quality_gate", "publish", "conclude")
"""The tasks of a publication's DAG, in order."""

_READS: Final = "stage"
_SENDS: Final = "publish"
_SOONEST: Final = 1.0
"""Seconds without which a speed is not known."""


@dataclass(frozen=True, slots=True)
class Amount:
    """How far something is.

    Attributes:
        done: what is done; None where that is not known.
        total: how much it is in all; None where that is not known.
        seconds_left: how long the rest takes at the speed until now; None where that is not known.
    """

    done: int | None = None
    total: int | None = None
    seconds_left: float | None = None

    @property
    def share(self) -> float | None:
        """What is done of the total, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.done is not None and self.total else None


NOTHING: Final = Amount()


@dataclass(frozen=True, slots=True)
class RunProgress:
    """What a publication does now.

    Attributes:
        health: of the publication.
        active: whether a run of it is queued or running.
        run: the run that is going on; without it, the latest one.
        tasks: of that run, in order; one that has not started has the state `none`.
        task: the task that runs now.
        read: entities or structures that the run has read.
        sent: records that the run has sent.
        attempt: of a send that failed, in words; empty where none has.
        waiting: notifications in the inbox, in files.
        question: what the run waits for.
        next_run_at: when the next scheduled run may start.
        is_of_registry: whether it reads structures, not entities.
    """

    health: HealthAssessment
    active: bool
    run: RunRow | None = None
    tasks: tuple[StepTime, ...] = ()
    task: StepTime | None = None
    read: Amount = NOTHING
    sent: Amount = NOTHING
    attempt: str = ""
    waiting: int = 0
    question: OpenQuestion | None = None
    next_run_at: datetime | None = None
    is_of_registry: bool = False


def find_progress(sources: Sources, name: str, run: RunRow | None, steps: Sequence[StepTime]) -> RunProgress:
    """Returns what a publication does now.

    Args:
        sources: of the page.
        name: of the publication.
        run: its latest run; None where none is known.
        steps: the tasks of that run that have started.

    Raises:
        RetriableError: the storage did not respond.
    """
    [found], store = collect_facts(sources, [name]), sources.home.publication(name)
    # Without Airflow, the tables say whether the run goes on; a run of theirs may also have ended unnoticed.
    active = found.dag.active if found.dag else run is not None and run.state == "running"
    is_going_on = active and run is not None and run.state == "running"
    started = {step.task: step for step in steps}
    tasks = tuple(started.get(task) or StepTime(task, "none", None) for task in TASKS) if run else ()
    made = manifest(store, run.outbox) if run else None
    urgent = most_urgent([send for outbox in found.stored.pending for send in outbox.sends])
    last = manifest(store, found.stored.pointer.outbox)
    return RunProgress(
        health=found.judged,
        active=active,
        run=run,
        tasks=tasks,
        task=next((step for step in reversed(tasks) if step.state in _AT_WORK), None) if is_going_on else None,
        read=_read(store.landing(run.run), run, made, started.get(_READS), last, sources.now) if run else NOTHING,
        sent=_sent(sources, made, started.get(_SENDS)) if made else NOTHING,
        attempt=f"shard {urgent.shard}: {urgent.describe()}" if urgent else "",
        waiting=len(store.inbox.files()),
        question=found.asked.question if found.asked else None,
        next_run_at=found.dag.next_run_at if found.dag and not found.dag.paused else None,
        is_of_registry=isinstance(sources.publications.get(name), SdmxPublication),
    )


_AT_WORK: Final = frozenset({"running", "deferred", "up_for_retry", "queued", "scheduled", "awaiting_input"})


def _read(
    landing: LandingStore,
    run: RunRow,
    made: Manifest | None,
    step: StepTime | None,
    last: Manifest | None,
    now: datetime,
) -> Amount:
    if made is not None:
        return Amount(made.read, made.read)
    try:
        complete = landing.find_manifest()
    except DefectError:
        return NOTHING
    if complete is not None:
        return Amount(complete.rows, complete.rows)
    if run.state != "running":
        return NOTHING
    # Only a full run reads what the source holds; how much has changed shows when all of it is read.
    total = last.source_count if last and run.mode == "full" and last.source_count else None
    done = landing.count_rows()
    return Amount(done, total, remaining_seconds(done, total, _elapsed(step, now)))


def _sent(sources: Sources, made: Manifest, step: StepTime | None) -> Amount:
    since = step.started_at if step and step.started_at else sources.now
    done, lately = sources.tables.ask(
        lambda history: history.sent_of_outbox(made.publication, made.outbox, since), (None, 0)
    )
    if done is None:
        return Amount(None, made.records)
    left = remaining_seconds(lately, lately + made.records - done, _elapsed(step, sources.now))
    return Amount(done, made.records, left)


def _elapsed(step: StepTime | None, now: datetime) -> float:
    return (now - step.started_at).total_seconds() if step and step.started_at and step.seconds is None else 0.0


def remaining_seconds(done: int | None, total: int | None, elapsed: float) -> float | None:
    """Returns how long the rest takes at the speed until now; None where the speed or the rest is not known."""
    if not done or total is None or done >= total or elapsed < _SOONEST:
        return None
    return elapsed * (total - done) / done
