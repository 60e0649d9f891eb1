"""Tells people that records of a run can never be sent and lie in the dead-letter topic."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from contexture_airflow.notifiers.telling import Audience, airflow_address, tell

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.publications import Publication
    from contexture.storage.home import Storage

_NEXT: Final = (
    "read why with contexture dead-letters {publication} (or in the headers contexture_refused_... there), raise the "
    "limit that is named or correct the source, then start a run in mode full: it tries them again, and so does each "
    "run that reads them anew"
)


def tell_dead_letters(
    storage: Storage, publication: Publication, outboxes: Sequence[str], context: Context, log: Any
) -> None:
    """Alerts the people of a publication where records of concluded outboxes are dead letters; never raises."""
    try:
        count = sum(_dead_letters(storage, publication.name, outbox) for outbox in outboxes)
        if count:
            _tell(storage, publication, count, context, log)
    except Exception:
        # The run is concluded, and must not fail because nobody could be told.
        log.exception("The dead letters could not be told to anybody")


def _dead_letters(storage: Storage, publication: str, outbox: str) -> int:
    from contexture.storage.delivery import dead_letters_of
    from contexture.storage.outboxes import Outboxes

    return dead_letters_of(storage, Outboxes(storage, publication).manifest(outbox)).count


def _tell(storage: Storage, publication: Publication, count: int, context: Context, log: Any) -> None:
    from contexture.monitoring.alerts import AlertKind, Failure

    given: Any = context
    instance, run_id = given["ti"], given["dag_run"].run_id
    found = Failure(
        publication=publication.name,
        run_id=run_id,
        task="",
        at=datetime.now(UTC),
        happened=f"{count} records can never be sent; they are in the topic {publication.dead_letter_topic}",
        next_step=_NEXT.format(publication=publication.name),
        run_url=f"{airflow_address()}/dags/{instance.dag_id}/runs/{quote(run_id)}",
        log_url=str(getattr(instance, "log_url", "") or ""),
        kind=AlertKind.DEAD_LETTERS,
    )
    tell(found, Audience.of(publication), storage, context, log)
