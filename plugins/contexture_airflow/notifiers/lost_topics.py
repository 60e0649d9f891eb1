"""Alerts people that topics of a publication were removed, though they held what it had sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from contexture_airflow.notifiers.telling import Audience, airflow_address, tell

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.publications import Publication
    from contexture.storage.home import Storage
    from contexture.storage.known_topics import LostTopics

_NEXT: Final = (
    "find out who removed the topic. Let consumers read it from its beginning again, and check its permissions and "
    "quotas. With topics.keep: history, send what the archive holds again by a backfill"
)


@contextmanager
def alerting_lost_topics(storage: Storage, publication: Publication, context: Context, log: Any) -> Iterator[None]:
    """Alerts the people of a publication when the task within has noticed removed topics, also where it fails."""
    before = _noticed(storage, publication, log)
    try:
        yield
    finally:
        found = _noticed(storage, publication, log)
        if found is not None and found != before:
            _alert(storage, publication, found, context, log)


def _noticed(storage: Storage, publication: Publication, log: Any) -> LostTopics | None:
    try:
        from contexture.storage.state import State

        return State(storage, publication.name).pointer().lost_topics
    except Exception:
        # The task reads the same file, and its own error says what to do.
        log.info("Could not read which topics were removed", exc_info=True)
        return None


def _alert(storage: Storage, publication: Publication, found: LostTopics, context: Context, log: Any) -> None:
    from contexture.monitoring.alerts import AlertKind, Failure

    given: Any = context
    try:
        instance, run_id = given["ti"], given["dag_run"].run_id
        failure = Failure(
            publication=publication.name,
            run_id=run_id,
            task="",
            at=datetime.now(UTC),
            happened=found.sentence,
            next_step=_NEXT,
            run_url=f"{airflow_address()}/dags/{instance.dag_id}/runs/{quote(run_id)}",
            log_url=str(getattr(instance, "log_url", "") or ""),
            kind=AlertKind.TOPIC_REMOVED,
        )
        tell(failure, Audience.of(publication), storage, context, log)
    except Exception:
        # The task has done its work, and must not fail because an alert could not be sent.
        log.exception("Could not send the alert about removed topics")
