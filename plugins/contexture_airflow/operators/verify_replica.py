"""The task that reads a publication's topics back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from contexture_airflow.operators.common import VerificationLink

if TYPE_CHECKING:
    from airflow.sdk import Context


class VerifyReplicaOperator(BaseOperator):
    """Reads the topics of a publication back, as a read-committed consumer gets them, and compares them.

    With what state says was sent, or with what the source holds now.

    Up to the last committed transaction; what is being sent meanwhile is not judged. Nothing is written to Kafka. The
    outcome is in the operational tables and in a report with samples of identities.

    **When red:** the topics hold something else than what was sent. The error and the report say what, and what to do.
    Or the task could not look: then the error says why.

    Args:
        publication: name of the publication.
        against: `sent` or `source`.
    """

    template_fields: Sequence[str] = ("publication", "against")
    operator_extra_links = (VerificationLink(),)

    def __init__(self, *, publication: str, against: str = "sent", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.publication = publication
        self.against = against
        self.report_path: str | None = None

    def execute(self, context: Context) -> Mapping[str, Any]:
        """Returns what was found, as counts."""
        from contexture.operations.actions.verify import verify_and_report
        from contexture_airflow.connections.settings import open_home
        from contexture_airflow.metrics import count_verified
        from contexture_airflow.run_events import open_run_events
        from contexture_airflow.steps.verify import counts, find_publication, kafka_topics, source_view

        publication = find_publication(self.publication)
        store = open_home().publication(publication.name)
        with (
            open_run_events(store.home, self.log.warning) as events,
            source_view(publication, self.against) as source,
        ):
            topics = kafka_topics(publication)
            reported = verify_and_report(
                store, publication, topics, journal=events.tables, source=source, report=self.log.info
            )
        self.report_path = reported.uri
        count_verified(reported.found)
        reported.raise_differences()
        return counts(reported)
