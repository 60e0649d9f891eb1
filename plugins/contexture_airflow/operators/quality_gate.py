"""The task between preparing and sending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from contexture_airflow.operators.common import ReportLink

if TYPE_CHECKING:
    from airflow.sdk import Context


class QualityGateOperator(BaseOperator):
    """Approves the outbox, or rejects it and fails the run before anything is sent.

    A failed *warning* passes and is logged. A dry run ends here: what would be sent is in the log, and nothing is.

    **When red:** a critical expectation failed; the error names it, the report shows it. Correct the source or the
    publication's `quality`, then start a new run. The rejected outbox is never sent.

    Args:
        staged: what stage returned.
    """

    template_fields: Sequence[str] = ("staged",)
    operator_extra_links = (ReportLink(),)

    def __init__(self, *, staged: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.staged = staged

    def execute(self, context: Context) -> list[int]:
        """Returns the shards that have records to send."""
        from contexture_airflow.alerts.run_alerts import alerting_lost_topics
        from contexture_airflow.connections.settings import open_home, targets
        from contexture_airflow.run import StagedOutbox
        from contexture_airflow.run_events import open_run_events
        from contexture_airflow.steps.quality_gate import apply_verdict

        dry_run = bool(context["params"].get("dry_run", False))
        staged = StagedOutbox.from_xcom(self.staged)
        store = open_home().publication(staged.publication)
        publication = store.run(staged.run).order().publication
        alerting = alerting_lost_topics(store, publication, context, self.log)
        with alerting, open_run_events(store.home, self.log.warning) as events:
            events.run_prepared(staged.publication, staged.run, staged.outbox)
            return apply_verdict(
                store, staged, dry_run=dry_run, target_for=targets(self.log.info), report=self.log.info
            )
