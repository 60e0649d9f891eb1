"""Tells people that a run waits for their answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from contexture_airflow.notifiers.telling import Audience, airflow_address, tell

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.monitoring.alerts import Failure
    from contexture.publications import Publication
    from contexture.storage.home import Storage
    from contexture.storage.shrink_report import Vanishing

_SHOWN: Final = 10


def tell_question(storage: Storage, publication: Publication, vanishing: Vanishing, context: Context, log: Any) -> None:
    """Alerts the people of a publication that its run asks whether so much may be deleted; never raises."""
    try:
        asked = question_of(publication, vanishing, context, datetime.now(UTC))
        tell(asked, Audience.of(publication), storage, context, log)
    except Exception:
        # Airflow shows the question, and must go on showing it where nobody could be told.
        log.exception("The question could not be told to anybody")


def question_of(publication: Publication, vanishing: Vanishing, context: Context, now: datetime) -> Failure:
    """What there is to tell of the question of a task."""
    from contexture.monitoring.alerts import AlertKind, Failure
    from contexture_airflow.steps.shrinking import harmless

    given: Any = context
    instance, run_id = given["task_instance"], given["dag_run"].run_id
    run_url = f"{airflow_address()}/dags/{quote(instance.dag_id, safe='')}/runs/{quote(run_id, safe='')}"
    return Failure(
        publication=publication.name,
        run_id=run_id,
        task="",
        at=now,
        happened=f"{vanishing.count} of the {vanishing.held} identities that were sent are gone from the source, and "
        f"{vanishing.limit} may go in one run: it waits to be told whether they may be deleted",
        next_step=_next_step(vanishing, now + timedelta(hours=publication.source.shrink_limit.answer_hours)),
        run_url=run_url,
        log_url=str(getattr(instance, "log_url", "") or ""),
        kind=AlertKind.QUESTION,
        answer_url=f"{run_url}/tasks/{quote(instance.task_id, safe='')}/required_actions",
        samples=(*(harmless(each) for each in vanishing.identities[:_SHOWN]), *_more(vanishing)),
        about=str(instance.id),
    )


def _next_step(vanishing: Vanishing, until: datetime) -> str:
    return (
        f"see whether the source is whole, and answer until {until:%Y-%m-%d %H:%M} UTC, with a reason (Airflow shows "
        f"the question under Browse, Required Actions, too): Approve deletes all {vanishing.count} and goes on with "
        "what was read; Reject, or no answer, deletes nothing, and the run fails"
    )


def _more(vanishing: Vanishing) -> tuple[str, ...]:
    more = vanishing.count - min(_SHOWN, len(vanishing.identities))
    return (f"and {more} more",) if more > 0 else ()
