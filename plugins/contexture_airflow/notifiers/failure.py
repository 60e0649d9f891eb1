"""Tells people, and the operational tables, that a run has failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseNotifier

from contexture.errors import ContextureError
from contexture_airflow.notifiers.telling import Audience, airflow_address, tell

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.monitoring.alerts import Failure
    from contexture.storage.home import Storage

_LOST = "the task ended without an error of its own: it was killed, or its machine was lost"
_SEE_LOG = "read the log of the task, then clear it or start a new run: both go on where sending stopped"


class FailureNotifier(BaseNotifier):
    """Alerts people that a task of a publication's run has failed for good, once for each run and hour.

    For `on_failure_callback` of tasks. A failure that Airflow will retry, or that `batch_ttl` still covers, alerts
    nobody; nor does one that the next run settles by itself, until that happens again within the hour. Mail goes by the
    connection `contexture_mail`, to the publication's `notify.mail`, else to `CONTEXTURE_MAIL_TO`; the publication's
    `notify.notifiers` are called beside it. With none of them only the operational tables are told. What can't be
    sent is logged.

    Args:
        publication: name of the publication.
        mail: addresses.
        notifiers: mappings with `notifier` and `arguments`.
    """

    def __init__(self, publication: str, mail: Sequence[str] = (), notifiers: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__()
        self.publication = publication
        self.audience = Audience.received(mail, notifiers)

    def notify(self, context: Context) -> None:
        """Tells about the failed task of this context."""
        from contexture_airflow.steps.noting import note_failure, open_journal
        from contexture_airflow.steps.open import open_storage

        try:
            storage = open_storage()
            failure = failure_of(self.publication, context, storage)
            with open_journal(storage, self.log.warning) as journal:
                note_failure(journal, failure)
            tell(failure, self.audience, storage, context, self.log)
        except Exception:
            # The run has failed already, and what is said about it must not hide why.
            self.log.exception("The failure could not be told to anybody")


def failure_of(publication: str, context: Context, storage: Storage) -> Failure:
    """What there is to tell of the failed task of a context.

    Raises:
        RetriableError: the storage did not answer.
    """
    from contexture.monitoring.alerts import Failure, kind_of, pending_sends
    from contexture.monitoring.rows import BACKFILL_RUN

    given: Any = context
    instance, run_id = given["ti"], given["dag_run"].run_id
    error = given.get("exception")
    again = run_id.startswith(BACKFILL_RUN)
    happened, next_step = told(error)
    pending = pending_sends(storage, publication)
    shard = instance.map_index
    return Failure(
        publication=publication,
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
    """The error of ours that a task failed with, or that what it failed with was raised from."""
    found = error
    while isinstance(found, BaseException) and not isinstance(found, ContextureError):
        found = found.__cause__
    return found if isinstance(found, ContextureError) else None


def told(error: object) -> tuple[str, str]:
    """What happened and what to do, from the error of a task.

    Errors of ours are fit for people and hold no data; of others only the kind is told: their text may hold anything.
    """
    own = own_error(error)
    if own is not None:
        return own.message, own.next_step
    if isinstance(error, BaseException):
        return f"{type(error).__name__}, see the log", _SEE_LOG
    return _LOST, _SEE_LOG
