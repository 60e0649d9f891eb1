"""The notifiers of DAGs: failed runs, missed deadlines, verifications that found differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from airflow.sdk import (  # type: ignore[attr-defined]  # its stub file lacks what deadlines need
    AsyncCallback,
    BaseNotifier,
    DeadlineAlert,
    DeadlineReference,
)
from asgiref.sync import sync_to_async

from contexture.errors import ContextureError
from contexture_airflow.alerts.delivery import Audience, airflow_address, send_alert

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.monitoring.alerts import Failure
    from contexture.publications import Publication
    from contexture.storage.publication_store import PublicationStore

_LOST = "the task ended without an error of its own: it was killed, or its machine was lost"
_SEE_LOG = "read the log of the task, then clear it or start a new run: both continue where sending stopped"


class FailureNotifier(BaseNotifier):
    """Alerts people that a task of a publication's run has failed for good, once for each run and hour.

    For `on_failure_callback` of tasks. A failure that Airflow will retry, or that `batch_ttl` still covers, sends
    no alert. A failure that the next run settles by itself sends one when it happens again within the hour.

    Mail goes by the connection `contexture_mail`, to the publication's `notify.mail`, else to `CONTEXTURE_MAIL_TO`. The
    publication's `notify.notifiers` are called too. With none of them the failure is recorded in the operational tables
    only. An alert that cannot be sent is logged.

    Args:
        publication: name of the publication.
        mail: addresses.
        notifiers: mappings with `notifier` and `arguments`.
    """

    def __init__(self, publication: str, mail: Sequence[str] = (), notifiers: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__()
        self.publication = publication
        self.audience = Audience.from_lists(mail, notifiers)

    def notify(self, context: Context) -> None:
        """Sends the alert about the failed task of this context."""
        from contexture_airflow.connections.settings import open_home
        from contexture_airflow.run_events import open_run_events

        try:
            store = open_home().publication(self.publication)
            failure = build_failure(context, store)
            with open_run_events(store.home, self.log.warning) as events:
                events.run_failed(failure)
            send_alert(failure, self.audience, store, context, self.log)
        except Exception:
            # The run has failed already, and an error of its alert must not hide the reason.
            self.log.exception("The alert about the failure could not be sent")


def build_failure(context: Context, store: PublicationStore) -> Failure:
    """Builds the alert about the failed task of a context.

    Raises:
        RetriableError: the storage did not answer.
    """
    from contexture.monitoring.alerts import Failure, kind_of, pending_sends
    from contexture.monitoring.rows import BACKFILL_RUN

    given: Any = context
    instance, run_id = given["ti"], given["dag_run"].run_id
    error = given.get("exception")
    again = run_id.startswith(BACKFILL_RUN)
    happened, next_step = describe_error(error)
    pending = pending_sends(store)
    shard = instance.map_index
    return Failure(
        publication=store.name,
        run_id=run_id,
        task=instance.task_id if shard is None or shard < 0 else f"{instance.task_id}[{shard}]",
        at=datetime.now(UTC),
        happened=happened,
        next_step=next_step,
        run_url=f"{airflow_address()}/dags/{instance.dag_id}/runs/{quote(run_id)}",
        log_url=str(getattr(instance, "log_url", "") or ""),
        pending=pending,
        # A backfill sends its own outboxes alone, and other runs send none of them.
        kind=kind_of(
            own_error(error),
            instance.task_id,
            [send for each in pending if each.of_backfill == again for send in each.sends],
        ),
    )


def own_error(error: object) -> ContextureError | None:
    """Returns the error of ours that a task failed with, or that its error was raised from."""
    found = error
    while isinstance(found, BaseException) and not isinstance(found, ContextureError):
        found = found.__cause__
    return found if isinstance(found, ContextureError) else None


def describe_error(error: object) -> tuple[str, str]:
    """Returns what happened and what to do, from the error of a task.

    Errors of ours are written for people and hold no data. Of other errors only the class is named, because their text
    may hold anything.
    """
    own = own_error(error)
    if own is not None:
        return own.message, own.next_step
    if isinstance(error, BaseException):
        return f"{type(error).__name__}, see the log", _SEE_LOG
    return _LOST, _SEE_LOG


# A run that failed sent its alert when it failed, and one that has ended needs none.
_UNDER_WAY: Final = frozenset({"queued", "running"})
_LATE_NEXT: Final = (
    "find in the run which task is red, waits or still runs, and read the reason in its log. Usual reasons are a slow "
    "source, brokers that do not respond, a full pool, and runs that wait for each other. A run of a suspended "
    "publication waits until the publication is resumed"
)


def deadline(publication: Publication) -> DeadlineAlert | None:
    """Returns Airflow's deadline for the runs of a publication; None where the publication sets none."""
    minutes = publication.notify.published_within_minutes
    if minutes is None:
        return None
    audience = Audience.of(publication)
    arguments: dict[str, Any] = {
        "publication": publication.name,
        "minutes": minutes,
        "mail": list(audience.mail),
        "notifiers": [dict(each) for each in audience.notifiers],
    }
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(minutes=minutes),
        # In the triggerer: a callback that an executor calls is refused the connections of Airflow's database (3.3.2).
        callback=AsyncCallback(alert_deadline, arguments),
        name=f"published within {minutes} minutes",
    )


async def alert_deadline(context: Context, **arguments: Any) -> None:
    """Sends the alert about a run that missed its deadline; Airflow's triggerer calls it."""
    # Home and mail server may respond late, and the triggerer's loop must not wait.
    await sync_to_async(DeadlineNotifier(**arguments).notify, thread_sensitive=False)(context)


class DeadlineNotifier(BaseNotifier):
    """Alerts people that a run of a publication has not concluded in time.

    For Airflow's deadlines, once for each run that misses its own. It sends nothing where the run has failed, because
    that has its own alert, where the run has ended, and for backfills, because no one waits for them.

    Args:
        publication: name of the publication.
        minutes: how long a run may take, from when it was queued.
        mail: addresses.
        notifiers: mappings with `notifier` and `arguments`.
    """

    def __init__(
        self,
        publication: str,
        minutes: int,
        mail: Sequence[str] = (),
        notifiers: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__()
        self.publication = publication
        self.minutes = minutes
        self.audience = Audience.from_lists(mail, notifiers)

    def notify(self, context: Context) -> None:
        """Sends the alert about the run of this context, which has it in the form of Airflow's REST interface."""
        from contexture_airflow.connections.settings import open_home

        given: Any = context
        run: Mapping[str, Any] = given["dag_run"]
        if run["state"] not in _UNDER_WAY or run["run_type"] == "backfill":
            self.log.info("No alert is sent: the run is %s (%s)", run["state"], run["run_type"])
            return
        store = open_home().publication(self.publication)
        send_alert(self._failure(run, store), self.audience, store, context, self.log)

    def _failure(self, run: Mapping[str, Any], store: PublicationStore) -> Failure:
        from contexture.monitoring.alerts import AlertKind, Failure, pending_sends

        run_id = str(run["dag_run_id"])
        return Failure(
            publication=self.publication,
            run_id=run_id,
            task="",
            at=datetime.now(UTC),
            happened=f"the run was queued more than {self.minutes} min ago and is still {run['state']}",
            next_step=_LATE_NEXT,
            run_url=f"{airflow_address()}/dags/{run['dag_id']}/runs/{quote(run_id)}",
            log_url="",
            pending=pending_sends(store),
            kind=AlertKind.LATE,
        )


class VerificationNotifier(BaseNotifier):
    """Alerts the people of a publication that verifying its topics has failed for good.

    For `on_failure_callback` of `VerifyReplicaOperator`. A verification is no run of the publication, so
    nothing is recorded of its runs.
    """

    def notify(self, context: Context) -> None:
        """Sends the alert about the failed task of this context."""
        from contexture_airflow.alerts.delivery import Audience, send_alert
        from contexture_airflow.connections.settings import open_home
        from contexture_airflow.steps.verify import find_publication

        given: Any = context
        try:
            publication = find_publication(given["task"].publication)
            store = open_home().publication(publication.name)
            failure = build_failure(context, store)
            send_alert(failure, Audience.of(publication), store, context, self.log)
        except Exception:
            # The task has failed already, and an error of its alert must not hide the reason.
            self.log.exception("The alert about the failure could not be sent")
