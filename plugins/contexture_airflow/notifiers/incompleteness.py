"""Alerts people that a publication does not detect what is deleted in its source, run after run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from contexture_airflow.notifiers.telling import Audience, airflow_address, tell

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.publications import Publication
    from contexture.storage.home import Storage
    from contexture.storage.incompleteness import Incompleteness


def alert_incompleteness(storage: Storage, publication: Publication, context: Context, log: Any) -> None:
    """Alerts the people of a publication when its reads have been incomplete for long; never raises."""
    try:
        from contexture.storage.state import State

        found = State(storage, publication.name).pointer().incomplete
        if found is not None and found.is_lasting:
            log.warning("%s", found.sentence)
            if found.is_alert_due:
                _alert(storage, publication, found, context, log)
    except Exception:
        # The run is concluded, and must not fail because an alert could not be sent.
        log.exception("Could not send the alert about deletions that are not detected")


def _alert(storage: Storage, publication: Publication, found: Incompleteness, context: Context, log: Any) -> None:
    from contexture.monitoring.alerts import AlertKind, Failure

    given: Any = context
    instance, run_id = given["ti"], given["dag_run"].run_id
    since = f"{found.since:%Y-%m-%d %H:%M} UTC"
    failure = Failure(
        publication=publication.name,
        run_id=run_id,
        task="",
        at=datetime.now(UTC),
        happened=f"since {since} ({found.runs} runs) deletions in the source are not detected: {found.why}",
        next_step=found.next_step,
        run_url=f"{airflow_address()}/dags/{instance.dag_id}/runs/{quote(run_id)}",
        log_url=str(getattr(instance, "log_url", "") or ""),
        kind=AlertKind.INCOMPLETE,
    )
    tell(failure, Audience.of(publication), storage, context, log)
