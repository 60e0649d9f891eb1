"""The first task of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from contexture_airflow.operators.common import defer_send_errors
from contexture_airflow.task_context import run_request

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    from contexture.publications import Publication


class SettleOperator(BaseOperator):
    """Finishes what earlier runs left approved, rejects what they left unjudged, and decides what this run does.

    **When red:** an outbox of an earlier run can not be sent. Correct what the error names and clear this task. To give
    the outbox up: `contexture outbox abandon ID --reason …`; the next run is then a full one.

    Args:
        publication: the publication.
    """

    def __init__(self, *, publication: Publication, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.publication = publication
        self._settled: tuple[str, ...] = ()

    def execute(self, context: Context) -> dict[str, Any]:
        """Returns the plan of the run."""
        return defer_send_errors(self, lambda: self._settle(context))

    def resume(self, context: Context, event: Any = None) -> dict[str, Any]:
        """The same, when the time of a late attempt has come."""
        return defer_send_errors(self, lambda: self._settle(context))

    def _settle(self, context: Context) -> dict[str, Any]:
        from contexture_airflow.alerts.run_alerts import alert_dead_letters, alert_incompleteness, alerting_lost_topics
        from contexture_airflow.connections.settings import open_home, targets
        from contexture_airflow.run_events import open_run_events
        from contexture_airflow.steps.settle import finish_open_transaction

        store = open_home().publication(self.publication.name)
        request, report = run_request(context), self.log.info
        alerting = alerting_lost_topics(store, self.publication, context, self.log)
        with alerting, open_run_events(store.home, self.log.warning) as events:
            plan = finish_open_transaction(store, self.publication, request, targets(report), report, events)
        self._settled = plan.settled
        alert_dead_letters(store, self.publication, plan.settled, context, self.log)
        if plan.settled:
            alert_incompleteness(store, self.publication, context, self.log)
        return dict(plan.to_xcom())

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Source and topics of what was finished; called by Airflow's OpenLineage provider, where it is installed."""
        from contexture_airflow.connections.settings import open_home
        from contexture_airflow.lineage import build_lineage

        return build_lineage(open_home().publication(self.publication.name), self._settled)
