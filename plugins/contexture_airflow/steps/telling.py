"""What the tasks tell of themselves as events, for publications of `kind: operations`. Never fails or delays them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import JsonValue

from contexture.monitoring import Journal
from contexture.monitoring.alerts import Failure
from contexture.monitoring.own_events import EventType, Happening
from contexture.publications import Publication
from contexture.storage.delivery import SendAttempts
from contexture_airflow.steps.run import RunPlan, RunRequest


def tell_started(
    journal: Journal, publication: Publication, request: RunRequest, plan: RunPlan, fingerprint_before: str | None
) -> None:
    """A run has been planned, and perhaps for a publication that has changed.

    Runs that tell such events are not told: each would give the next one something to tell.
    """
    if fingerprint_before not in {None, plan.fingerprint}:
        _tell(
            journal,
            EventType.CONFIGURATION_CHANGED,
            publication.name,
            plan.run,
            {
                "run_id": request.run_id,
                "fingerprint": plan.fingerprint,
                "fingerprint_before": fingerprint_before,
                "mode": plan.mode,
            },
        )
    if publication.source.kind != "operations":
        _tell(
            journal,
            EventType.RUN_STARTED,
            publication.name,
            plan.run,
            {
                "run_id": request.run_id,
                "run_type": request.run_type,
                "mode": plan.mode,
                "sequence": plan.sequence,
                "why": plan.why,
                "triggered_by": request.triggered_by,
                "reason": request.reason,
                "dry_run": request.dry_run,
            },
        )


def tell_end(
    journal: Journal,
    publication: Publication,
    run: str,
    run_id: str,
    outbox: str,
    counts: Mapping[str, JsonValue] | None,
) -> None:
    """A run has come to its good end; `counts` are None where there was nothing to conclude."""
    if publication.source.kind == "operations":
        return
    data: dict[str, JsonValue] = {
        "run_id": run_id,
        "outbox": outbox,
        "concluded": counts is not None,
        "counts": None if counts is None else {name: value for name, value in counts.items() if name != "outbox"},
    }
    _tell(journal, EventType.RUN_SUCCEEDED, publication.name, run, data)


def tell_failure(journal: Journal, failure: Failure) -> None:
    """A task of a run has failed for good."""
    _tell(
        journal,
        EventType.RUN_FAILED,
        failure.publication,
        f"{failure.run_id} {failure.task} {failure.at.isoformat()}",
        {
            "run_id": failure.run_id,
            "task": failure.task,
            "kind": str(failure.kind),
            "message": failure.happened,
            "next_step": failure.next_step,
        },
    )


def tell_attempt(journal: Journal, publication: str, attempts: SendAttempts) -> None:
    """A send has failed; it is told when no further attempt comes by itself."""
    if attempts.state not in {"used up", "stopped"}:
        return
    _tell(
        journal,
        EventType.SENDING_STOPPED,
        publication,
        f"{attempts.outbox} {attempts.shard} {attempts.failed}",
        {
            "outbox": attempts.outbox,
            "shard": attempts.shard,
            "attempt": attempts.attempt,
            "attempts_allowed": attempts.allowed,
            "state": attempts.state,
            "message": attempts.message,
        },
    )


def _tell(journal: Journal, kind: EventType, publication: str, occasion: str, data: Mapping[str, JsonValue]) -> None:
    happening = Happening(kind, publication, datetime.now(UTC), occasion, data)
    journal.note(lambda store: store.happened(happening))
