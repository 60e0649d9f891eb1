"""What a person can do about a publication, the same from the command line and from the page.

Runs are started through Airflow, as `DagControl`; the status of outboxes changes on storage. Nothing waits for a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from contexture.errors import ConfigurationError
from contexture.monitoring.own_events import EventType, OwnEvent
from contexture.monitoring.rows import InterventionRow
from contexture.storage.conclusion import require_full_run
from contexture.storage.outboxes import ALLOWED
from contexture.storage.publication_store import PublicationStore
from contexture.storage.quarantine_retry import resolve

if TYPE_CHECKING:
    from contexture.monitoring import RunTables

RESYNCHRONISE: Final = "resynchronise"
"""The DAG that starts publications again."""


class DagControl(Protocol):
    """The calls to Airflow that actions need. Each raises a ContextureError when Airflow refuses or is unavailable."""

    def is_paused(self, dag_id: str) -> bool:
        """Returns whether runs of a DAG wait until it is resumed."""

    def trigger(self, dag_id: str, conf: Mapping[str, object]) -> str:
        """Starts a run; returns its id."""


class SuspensionControl(Protocol):
    """The call to Airflow that suspends and resumes. It raises as those of `DagControl`."""

    def pause(self, dag_id: str, paused: bool, reason: str) -> None:
        """Suspends a DAG or resumes it."""


@dataclass(frozen=True, slots=True)
class Resynchronised:
    """What was started; `paused`: the publications that are left out, because their DAGs are paused."""

    run: str
    publications: tuple[str, ...]
    paused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetryOrder:
    """A run that retries quarantined events: what to start, and how many events there are."""

    dag: str
    outbox: str
    events: int
    conf: Mapping[str, object]


def dag_of(publication: str) -> str:
    return f"publish_{publication}"


def run_now(dags: DagControl, publication: str, reason: str, **params: object) -> str:
    """Starts a run of a publication; returns its id. `params`: of the run's form, where they are not the default."""
    return dags.trigger(dag_of(publication), {**params, "reason": _require_reason(reason)})


def suspend(dags: SuspensionControl, publication: str, reason: str) -> str:
    """Pauses the DAG of a publication; returns the outcome as a sentence."""
    dags.pause(dag_of(publication), True, _require_reason(reason))
    return "its DAG is paused: no run begins, and one that has begun pauses when its running tasks end"


def resume(dags: SuspensionControl, publication: str, reason: str) -> str:
    """Lets the DAG of a publication run again; returns the outcome as a sentence."""
    dags.pause(dag_of(publication), False, _require_reason(reason))
    return "its DAG is no longer paused"


def resynchronise(dags: DagControl, publications: Sequence[str], *, mode: str, reason: str) -> Resynchronised:
    """Starts publications again, through the DAG `resynchronise`.

    Raises:
        ConfigurationError: the reason is empty, that DAG is paused, or Airflow does not know a publication.
    """
    _require_reason(reason)
    refuse_paused(dags, RESYNCHRONISE)
    wanted = tuple(dict.fromkeys(publications))
    paused = tuple(name for name in wanted if dags.is_paused(dag_of(name)))
    run = dags.trigger(RESYNCHRONISE, {"publications": list(wanted), "mode": mode, "reason": reason})
    return Resynchronised(run, wanted, paused)


def refuse_paused(dags: DagControl, dag: str) -> None:
    """Checks that a DAG is not paused, because a run of a paused one waits without a visible reason.

    Raises:
        ConfigurationError: it is paused, or Airflow does not know it.
    """
    if dags.is_paused(dag):
        raise ConfigurationError(f"the DAG {dag} is paused", next_step=f"resume it: airflow dags unpause {dag}")


SEND_AGAIN: Final = "Send the outbox again"
ABANDON: Final = "Abandon the outbox"


@dataclass(frozen=True, slots=True)
class SentAgain:
    """An outbox whose failed sends are forgotten.

    Attributes:
        forgotten: how many.
        run: the run that sends it first; None where Airflow is not known here, or only its backfill sends it.
    """

    dag: str
    forgotten: int
    run: str | None
    is_of_backfill: bool

    @property
    def outcome(self) -> str:
        """What was done, and what is left to do."""
        counted = "1 failed send is cleared" if self.forgotten == 1 else f"{self.forgotten} failed sends are cleared"
        if self.run is not None:
            return f"{counted}, and a run was started that sends it first"
        if self.is_of_backfill:
            return f"{counted}; now clear the publish task of its backfill in {self.dag}: no other run sends it"
        return (
            f"{counted}; now start {self.dag} (in the UI, or: airflow dags trigger {self.dag}): its first task sends "
            "this outbox from the ledger's position"
        )


def send_again(dags: DagControl | None, store: PublicationStore, outbox: str, reason: str) -> SentAgain:
    """Forgets the failed sends of an approved outbox, and starts the run that sends it.

    Args:
        dags: Airflow; None where it is not known, so that a person starts the run.
        store, outbox: the outbox, in the store of its publication.
        reason: stored with the run.

    Raises:
        ConfigurationError: the reason is empty, there is no such outbox, it is not approved, or Airflow refuses us.
        RetriableError: Airflow did not respond.
    """
    _require_reason(reason)
    failed = reset_send_attempts(store, outbox)
    of_backfill = store.outboxes.is_of_backfill(outbox)
    run = None if dags is None or of_backfill else run_now(dags, store.name, reason)
    return SentAgain(dag_of(store.name), failed, run, of_backfill)


def reset_send_attempts(store: PublicationStore, outbox: str) -> int:
    """Forgets the failed sends of an approved outbox, so that a run sends it with all attempts; returns how many.

    Raises:
        ConfigurationError: there is no such outbox, or it is not approved.
    """
    status = store.outboxes.status(outbox)
    if status.status != "approved":
        raise ConfigurationError(
            f"outbox {outbox} is {status.status}, and only an approved one is sent",
            next_step=f"check its state: contexture outbox show {outbox}",
        )
    failed = sum(each.failed for each in store.attempts.of_outbox(outbox))
    store.attempts.forget(outbox)
    return failed


@dataclass(frozen=True, slots=True)
class Abandoned:
    """An outbox that was abandoned; `requires_full_run`: the publication's next run sends everything."""

    outbox: str
    requires_full_run: bool

    @property
    def outcome(self) -> str:
        """What was done."""
        follows = "the next run is full" if self.requires_full_run else "no full run is required"
        return f"outbox {self.outbox} is abandoned; {follows}"


def abandon(store: PublicationStore, outbox: str, reason: str, who: str) -> Abandoned:
    """Abandons an outbox: the rest of it is never sent. Reason and person are stored with it.

    Raises:
        ConfigurationError: the reason is empty, there is no such outbox, or it has ended otherwise.
    """
    why = f"{_require_reason(reason)} ({who})" if who else _require_reason(reason)
    status = store.outboxes.status(outbox)
    # A backfill's outbox has no part in state, so no full run is required after it.
    is_in_state = not store.outboxes.is_known_of_backfill(outbox)
    if is_in_state and "abandoned" in ALLOWED[status.status]:
        require_full_run(store, f"outbox {outbox} was abandoned: {why}")
    return Abandoned(store.outboxes.set_status(outbox, "abandoned", reason=why).outbox, is_in_state)


def retry_order(store: PublicationStore, outbox: str, rules: Sequence[str], reason: str | None) -> RetryOrder:
    """Returns the run that retries what an outbox's run quarantined.

    Raises:
        ConfigurationError: there is no such outbox, or nothing of it is quarantined.
        RetriableError: the storage did not respond.
    """
    retry = resolve(store, outbox, tuple(rules))
    events = len(store.quarantine(retry.outbox).chosen(tuple(rules)))
    conf: dict[str, Any] = {"retry_quarantine": retry.outbox}
    conf |= {"retry_rules": list(rules)} if rules else {}
    conf |= {"reason": reason} if reason else {}
    return RetryOrder(dag_of(store.name), retry.outbox, events, conf)


def record_intervention(tables: RunTables, row: InterventionRow) -> None:
    """Writes what a person did to the operational tables, with the events that follow from it.

    Raises:
        RetriableError: the tables are away.
    """
    tables.insert_action(row)
    if row.action == ABANDON:
        data = {"outbox": row.subject, "reason": row.reason, "abandoned_by": row.who}
        tables.append_event(OwnEvent(EventType.OUTBOX_ABANDONED, row.publication, row.at, row.subject, data))


def _require_reason(reason: str) -> str:
    if not reason.strip():
        raise ConfigurationError("a reason is required", next_step="enter a reason: it is stored with the action")
    return reason
