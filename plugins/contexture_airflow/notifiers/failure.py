"""Tells people, and the operational tables, that a run has failed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseNotifier, conf

from contexture.errors import ContextureError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.operations.failure_mail import Failure
    from contexture.outbox.storage import Storage

MAIL_CONNECTION = "contexture_mail"
"""Airflow connection of type `smtp` that mails are sent by."""

MAIL_VARIABLE = "CONTEXTURE_MAIL_TO"
"""Environment variable with addresses, separated by commas, for publications that name none."""

_ONE_FAILURE = timedelta(hours=1)
_LOST = "the task ended without an error of its own: it was killed, or its machine was lost"
_SEE_LOG = "read the log of the task, then clear it or start a new run: both go on where sending stopped"


class FailureNotifier(BaseNotifier):
    """Mails that a task of a publication's run has failed for good, once for each run and hour.

    For `on_failure_callback` of tasks. A failure that Airflow will retry, or that `batch_ttl` still covers, mails
    nothing. The mail goes by the connection `contexture_mail`, to the publication's `notify.mail`, else to
    `CONTEXTURE_MAIL_TO`; with neither, only the operational tables are told. A mail that can't be sent is logged.

    Args:
        publication: name of the publication.
        mail: addresses.
    """

    def __init__(self, publication: str, mail: Sequence[str] = ()) -> None:
        super().__init__()
        self.publication = publication
        self.mail = tuple(mail)

    def notify(self, context: Context) -> None:
        """Tells about the failed task of this context."""
        from contexture_airflow.steps.noting import note_failure, open_journal
        from contexture_airflow.steps.open import open_storage

        try:
            storage = open_storage()
            failure = self._failure(context, storage)
            with open_journal(storage, self.log.warning) as journal:
                note_failure(journal, failure)
            self._send(failure, storage)
        except Exception:
            # The run has failed already, and what is said about it must not hide why.
            self.log.exception("The failure could not be told to anybody")

    def recipients(self) -> tuple[str, ...]:
        """Who gets the mail."""
        given = os.environ.get(MAIL_VARIABLE, "")
        return self.mail or tuple(part.strip() for part in given.split(",") if part.strip())

    def _send(self, failure: Failure, storage: Storage) -> None:
        from airflow.providers.smtp.hooks.smtp import SmtpHook

        from contexture.operations.failure_mail import compose
        from contexture.outbox.layout import PublicationFolder, run_name

        to = self.recipients()
        if not to:
            self.log.info("No mail: neither notify.mail nor %s names anybody", MAIL_VARIABLE)
            return
        marker = PublicationFolder(failure.publication).mailed(run_name(failure.run_id))
        if _is_recent(storage, marker, failure.at):
            self.log.info("This run was mailed about already")
            return
        mail = compose(failure)
        with SmtpHook(smtp_conn_id=MAIL_CONNECTION) as server:
            sender = server.from_email or "contexture@localhost"
            server.send_email_smtp(to=list(to), subject=mail.subject, html_content=mail.html, from_email=sender)
        storage.write(marker, failure.at.isoformat().encode())
        self.log.info("Mailed about the failure to %d addresses", len(to))

    def _failure(self, context: Context, storage: Storage) -> Failure:
        from contexture.operations.failure_mail import Failure, pending_sends

        given: Any = context
        instance, run_id = given["ti"], given["dag_run"].run_id
        happened, next_step = told(given.get("exception"))
        shard = instance.map_index
        base = conf.get("api", "base_url", fallback="http://localhost:8080/").rstrip("/")
        return Failure(
            publication=self.publication,
            run_id=run_id,
            task=instance.task_id if shard is None or shard < 0 else f"{instance.task_id}[{shard}]",
            at=datetime.now(UTC),
            happened=happened,
            next_step=next_step,
            run_url=f"{base}/dags/{instance.dag_id}/runs/{quote(run_id)}",
            log_url=str(getattr(instance, "log_url", "") or ""),
            pending=pending_sends(storage, self.publication),
        )


def _is_recent(storage: Storage, marker: str, now: datetime) -> bool:
    """Whether the run was mailed about within the hour: its shards fail one after the other, for the same reason."""
    if not storage.exists(marker):
        return False
    return now - datetime.fromisoformat(storage.read(marker).decode()) < _ONE_FAILURE


def told(error: object) -> tuple[str, str]:
    """What happened and what to do, from the error of a task.

    Errors of ours are fit for people and hold no data; of others only the kind is told: their text may hold anything.
    """
    found = error
    while isinstance(found, BaseException) and not isinstance(found, ContextureError) and found.__cause__ is not None:
        found = found.__cause__
    if isinstance(found, ContextureError):
        return found.message, found.next_step
    if isinstance(error, BaseException):
        return f"{type(error).__name__}, see the log", _SEE_LOG
    return _LOST, _SEE_LOG
