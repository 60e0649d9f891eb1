"""Alerts that a run sends itself: dead letters, removed topics, undetected deletions, a question to a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from contexture.storage.publication_store import PublicationStore
from contexture_airflow.alerts.delivery import Audience, airflow_address, send_alert

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.monitoring.alerts import Failure
    from contexture.publications import Publication
    from contexture.storage.incompleteness import Incompleteness
    from contexture.storage.known_topics import LostTopics
    from contexture.storage.shrink_report import ShrinkReport

_DEAD_LETTERS_NEXT: Final = (
    "read the reason with contexture dead-letters {publication} (or in the headers contexture_refused_... there), "
    "raise the limit that it names or correct the source, then start a run in mode full: it sends them again, as does "
    "each run that reads them anew"
)


def alert_dead_letters(
    store: PublicationStore, publication: Publication, outboxes: Sequence[str], context: Context, log: Any
) -> None:
    """Alerts the people of a publication where records of concluded outboxes are dead letters; never raises."""
    try:
        count = sum(store.outbox(outbox).dead_letters().count for outbox in outboxes)
        if count:
            _alert_dead_letters(store, publication, count, context, log)
    except Exception:
        # The run is concluded, and must not fail because an alert could not be sent.
        log.exception("Could not send the alert about dead letters")


def _alert_dead_letters(
    store: PublicationStore, publication: Publication, count: int, context: Context, log: Any
) -> None:
    from contexture.monitoring.alerts import AlertKind, Failure

    given: Any = context
    instance, run_id = given["ti"], given["dag_run"].run_id
    found = Failure(
        publication=publication.name,
        run_id=run_id,
        task="",
        at=datetime.now(UTC),
        happened=f"{count} records can never be sent; they are in the topic {publication.dead_letter_topic}",
        next_step=_DEAD_LETTERS_NEXT.format(publication=publication.name),
        run_url=f"{airflow_address()}/dags/{instance.dag_id}/runs/{quote(run_id)}",
        log_url=str(getattr(instance, "log_url", "") or ""),
        kind=AlertKind.DEAD_LETTERS,
    )
    send_alert(found, Audience.of(publication), store, context, log)


_SHOWN: Final = 10


def alert_question(
    store: PublicationStore, publication: Publication, vanishing: ShrinkReport, context: Context, log: Any
) -> None:
    """Alerts the people of a publication that its run asks whether so much may be deleted; never raises."""
    try:
        asked = build_question_alert(publication, vanishing, context, datetime.now(UTC))
        send_alert(asked, Audience.of(publication), store, context, log)
    except Exception:
        # Airflow shows the question, and must continue to show it where no alert could be sent.
        log.exception("Could not send the alert about the question")


def build_question_alert(publication: Publication, vanishing: ShrinkReport, context: Context, now: datetime) -> Failure:
    """Builds the alert about the question of a task."""
    from contexture.monitoring.alerts import AlertKind, Failure
    from contexture_airflow.steps.shrink_approval import describe_safe_state

    given: Any = context
    instance, run_id = given["task_instance"], given["dag_run"].run_id
    run_url = f"{airflow_address()}/dags/{quote(instance.dag_id, safe='')}/runs/{quote(run_id, safe='')}"
    return Failure(
        publication=publication.name,
        run_id=run_id,
        task="",
        at=now,
        happened=f"{vanishing.count} of the {vanishing.held} identities that were sent are missing from the source, "
        f"and {vanishing.limit} may be deleted in one run: the run waits for approval to delete them",
        next_step=_next_step(vanishing, now + timedelta(hours=publication.source.shrink_limit.answer_hours)),
        run_url=run_url,
        log_url=str(getattr(instance, "log_url", "") or ""),
        kind=AlertKind.QUESTION,
        answer_url=f"{run_url}/tasks/{quote(instance.task_id, safe='')}/required_actions",
        samples=(*(describe_safe_state(each) for each in vanishing.identities[:_SHOWN]), *_more(vanishing)),
        about=str(instance.id),
    )


def _next_step(vanishing: ShrinkReport, until: datetime) -> str:
    return (
        f"check that the source is complete, and answer until {until:%Y-%m-%d %H:%M} UTC, with a reason (Airflow shows "
        f"the question under Browse, Required Actions, too): Approve deletes all {vanishing.count} and continues with "
        "what was read; Reject, or no answer, deletes nothing, and the run fails"
    )


def _more(vanishing: ShrinkReport) -> tuple[str, ...]:
    more = vanishing.count - min(_SHOWN, len(vanishing.identities))
    return (f"and {more} more",) if more > 0 else ()


def alert_incompleteness(store: PublicationStore, publication: Publication, context: Context, log: Any) -> None:
    """Alerts the people of a publication when its reads have been incomplete for long; never raises."""
    try:
        found = store.state.pointer().incomplete
        if found is not None and found.is_lasting:
            log.warning("%s", found.sentence)
            if found.is_alert_due:
                _alert_incompleteness(store, publication, found, context, log)
    except Exception:
        # The run is concluded, and must not fail because an alert could not be sent.
        log.exception("Could not send the alert about deletions that are not detected")


def _alert_incompleteness(
    store: PublicationStore, publication: Publication, found: Incompleteness, context: Context, log: Any
) -> None:
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
    send_alert(failure, Audience.of(publication), store, context, log)


_LOST_TOPICS_NEXT: Final = (
    "find out who removed the topic. Start its consumers from its beginning again, and check its permissions and "
    "quotas. With topics.keep: history, send what the archive holds again by a backfill"
)


@contextmanager
def alerting_lost_topics(
    store: PublicationStore, publication: Publication, context: Context, log: Any
) -> Iterator[None]:
    """Alerts the people of a publication when the task within has noticed removed topics, also where it fails."""
    before = _noticed(store, publication, log)
    try:
        yield
    finally:
        found = _noticed(store, publication, log)
        if found is not None and found != before:
            _alert_lost_topics(store, publication, found, context, log)


def _noticed(store: PublicationStore, publication: Publication, log: Any) -> LostTopics | None:
    try:
        return store.state.pointer().lost_topics
    except Exception:
        # The task reads the same file, and its own error says what to do.
        log.info("Could not read which topics were removed", exc_info=True)
        return None


def _alert_lost_topics(
    store: PublicationStore, publication: Publication, found: LostTopics, context: Context, log: Any
) -> None:
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
            next_step=_LOST_TOPICS_NEXT,
            run_url=f"{airflow_address()}/dags/{instance.dag_id}/runs/{quote(run_id)}",
            log_url=str(getattr(instance, "log_url", "") or ""),
            kind=AlertKind.TOPIC_REMOVED,
        )
        send_alert(failure, Audience.of(publication), store, context, log)
    except Exception:
        # The task has done its work, and must not fail because an alert could not be sent.
        log.exception("Could not send the alert about removed topics")
