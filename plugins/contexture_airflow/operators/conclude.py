"""The last task of a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context


class ConcludeOperator(BaseOperator):
    """Sees in the ledger that every record is in Kafka, then moves state and watermark on and updates the asset.

    Runs also when there was nothing to send. Concluding twice is harmless. After a dry run there is nothing to
    conclude, and the task is skipped.

    **When red:** a shard is not completely in Kafka. Clear its publish task, or start a new run.

    Args:
        staged: what stage returned.
        published: the asset that is updated.
    """

    template_fields: Sequence[str] = ("staged",)

    def __init__(self, *, staged: Any, published: Asset, **kwargs: Any) -> None:
        super().__init__(outlets=[published], **kwargs)
        self.staged = staged
        self.published = published

    def execute(self, context: Context) -> dict[str, Any]:
        """Returns the run's counts, which are also the extra of the asset event."""
        from contexture_airflow.alerts.run_alerts import alert_dead_letters, alert_incompleteness, alerting_lost_topics
        from contexture_airflow.connections.settings import open_home, targets
        from contexture_airflow.run import StagedOutbox
        from contexture_airflow.run_events import open_run_events
        from contexture_airflow.steps.conclude import conclude_run

        staged = StagedOutbox.from_xcom(self.staged)
        store = open_home().publication(staged.publication)
        publication = store.run(staged.run).order().publication
        alerting = alerting_lost_topics(store, publication, context, self.log)
        with alerting, open_run_events(store.home, self.log.warning) as events:
            counts = conclude_run(store, staged, targets(self.log.info), self.log.info, now=datetime.now(UTC))
            events.run_concluded(publication, staged.run, context["dag_run"].run_id, staged.outbox, counts)
        alert_dead_letters(store, publication, [staged.outbox], context, self.log)
        if counts is not None and counts["mode"] != "backfill":
            alert_incompleteness(store, publication, context, self.log)
        if counts is None:
            raise AirflowSkipException(f"outbox {staged.outbox} was not sent")
        context["outlet_events"][self.published].extra = counts
        return dict(counts)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Source and topics of the run; called by Airflow's OpenLineage provider, where it is installed."""
        from contexture_airflow.connections.settings import open_home
        from contexture_airflow.lineage import build_lineage
        from contexture_airflow.run import StagedOutbox

        staged = StagedOutbox.from_xcom(self.staged)
        return build_lineage(open_home().publication(staged.publication), [staged.outbox])

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Nothing: what is not concluded names no topics."""
        from contexture_airflow.lineage import no_lineage

        return no_lineage()
