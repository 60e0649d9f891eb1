"""What a person can do about a publication, the same from the command line and from the page.

Runs are started through Airflow, as `DagControl`; outboxes are moved on storage. Nothing here waits for a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from contexture.errors import ConfigurationError
from contexture.storage.conclusion import require_full_run
from contexture.storage.delivery import AttemptLog
from contexture.storage.home import Storage
from contexture.storage.outboxes import ALLOWED, Outboxes, OutboxStatus, is_known_of_backfill
from contexture.storage.quarantine import Quarantine, resolve

RESYNCHRONISE: Final = "resynchronise"
"""The DAG that starts publications again."""


class DagControl(Protocol):
    """Airflow, as far as actions need it. Every method raises a ContextureError when Airflow refuses or is away."""

    def is_paused(self, dag_id: str) -> bool:
        """Whether runs of a DAG wait until somebody resumes it."""

    def trigger(self, dag_id: str, conf: Mapping[str, object]) -> str:
        """Starts a run; gives its id."""


@dataclass(frozen=True, slots=True)
class Resynchronised:
    """What was started; `paused`: the publications that are left out, for their DAGs are paused."""

    run: str
    publications: tuple[str, ...]
    paused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetryOrder:
    """A run that tries quarantined events again: what to start, and how many events there are."""

    dag: str
    outbox: str
    events: int
    conf: Mapping[str, object]


def dag_of(publication: str) -> str:
    """The DAG of a publication."""
    return f"publish_{publication}"


def run_now(dags: DagControl, publication: str, reason: str, **params: object) -> str:
    """Starts a run of a publication; gives its id.

    Args:
        dags: Airflow.
        publication: whose.
        reason: why; kept with the run.
        params: of the run's form, where they are not the default.
    """
    return dags.trigger(dag_of(publication), {**params, "reason": _require_reason(reason)})


def resynchronise(dags: DagControl, publications: Sequence[str], *, mode: str, reason: str) -> Resynchronised:
    """Starts publications again, through the DAG `resynchronise`.

    Raises:
        ConfigurationError: no reason is given, that DAG is paused, or Airflow does not know a publication.
    """
    _require_reason(reason)
    refuse_paused(dags, RESYNCHRONISE)
    wanted = tuple(dict.fromkeys(publications))
    paused = tuple(name for name in wanted if dags.is_paused(dag_of(name)))
    run = dags.trigger(RESYNCHRONISE, {"publications": list(wanted), "mode": mode, "reason": reason})
    return Resynchronised(run, wanted, paused)


def refuse_paused(dags: DagControl, dag: str) -> None:
    """Lets only those pass who ask a DAG that runs: what is asked of a paused one waits, and nobody would know why.

    Raises:
        ConfigurationError: it is paused, or Airflow does not know it.
    """
    if dags.is_paused(dag):
        raise ConfigurationError(f"the DAG {dag} is paused", next_step=f"resume it: airflow dags unpause {dag}")


def reset_send_attempts(outboxes: Outboxes, outbox: str) -> int:
    """Lets an approved outbox be sent at once, with all attempts; gives how many failed sends are forgotten.

    Raises:
        ConfigurationError: there is no such outbox, or it is not approved.
    """
    status = outboxes.status(outbox)
    if status.status != "approved":
        raise ConfigurationError(
            f"outbox {outbox} is {status.status}, and only an approved one is sent",
            next_step=f"look at it with: contexture outbox show {outbox}",
        )
    log = AttemptLog(outboxes.storage, outboxes.folder.publication)
    failed = sum(each.failed for each in log.of_outbox(outbox))
    log.forget(outbox)
    return failed


def abandon(outboxes: Outboxes, outbox: str, reason: str) -> tuple[OutboxStatus, bool]:
    """Gives an outbox up: the rest of it is never sent.

    Returns:
        Where it stands now, and whether the publication's next run sends everything.

    Raises:
        ConfigurationError: no reason is given, there is no such outbox, or it has ended otherwise.
    """
    _require_reason(reason)
    status = outboxes.status(outbox)
    # A backfill's outbox has no part in state, so nothing is owed after it.
    owes = not is_known_of_backfill(outboxes, outbox)
    if owes and "abandoned" in ALLOWED[status.status]:
        require_full_run(outboxes.storage, outboxes.folder.publication, f"outbox {outbox} was abandoned: {reason}")
    return outboxes.move(outbox, "abandoned", reason=reason), owes


def retry_order(
    storage: Storage, publication: str, outbox: str, rules: Sequence[str], reason: str | None
) -> RetryOrder:
    """The run that tries again what an outbox's run refused.

    Raises:
        ConfigurationError: there is no such outbox, or nothing of it is held back.
        RetriableError: the storage did not answer.
    """
    retry = resolve(storage, publication, outbox, tuple(rules))
    folder = Outboxes(storage, publication).folder
    events = len(Quarantine(storage, folder, retry.outbox).chosen(tuple(rules)))
    conf: dict[str, Any] = {"retry_quarantine": retry.outbox}
    conf |= {"retry_rules": list(rules)} if rules else {}
    conf |= {"reason": reason} if reason else {}
    return RetryOrder(dag_of(publication), retry.outbox, events, conf)


def _require_reason(reason: str) -> str:
    if not reason.strip():
        raise ConfigurationError("no reason is given", next_step="say why: it is kept for whoever asks later")
    return reason
