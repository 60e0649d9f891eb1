"""Tells people that the topics of a publication are not what was sent, or could not be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

if TYPE_CHECKING:
    from airflow.sdk import Context


class VerificationNotifier(BaseNotifier):
    """Alerts the people of a publication that verifying its topics has failed for good.

    For `on_failure_callback` of `VerifyReplicaOperator`. The runs of the publication are another thing: nothing is
    noted of them.
    """

    def notify(self, context: Context) -> None:
        """Tells about the failed task of this context."""
        from contexture_airflow.notifiers.failure import failure_of
        from contexture_airflow.notifiers.telling import Audience, tell
        from contexture_airflow.steps.open import open_storage
        from contexture_airflow.steps.verifying import chosen

        given: Any = context
        try:
            publication, storage = chosen(given["task"].publication), open_storage()
            failure = failure_of(publication.name, context, storage)
            tell(failure, Audience.of(publication), storage, context, self.log)
        except Exception:
            # The task has failed already, and what is said about it must not hide why.
            self.log.exception("The failure could not be told to anybody")
