"""The task that prepares Contexture's own events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from contexture_airflow.task_context import run_request

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.publications import Publication


class StageOperationsOperator(BaseOperator):
    """Prepares the outbox with what Contexture itself did since the last run, from the operational tables.

    It needs no Spark. A retry prepares the same outbox again.

    **When red:** the database of the operational tables doesn't answer, or there is none. Nothing was sent. Clear this
    task when it is corrected.

    Args:
        publication: the publication.
        plan: what settle returned.
    """

    template_fields: Sequence[str] = ("plan",)

    def __init__(self, *, publication: Publication, plan: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.publication = publication
        self.plan = plan

    def execute(self, context: Context) -> dict[str, Any]:
        """Returns the outbox: its id, sequence, number of records and shards with records."""
        from contexture_airflow.connections.settings import open_home, targets
        from contexture_airflow.run import RunPlan
        from contexture_airflow.steps.stage import place_order
        from contexture_airflow.steps.stage_operations import stage_operations

        store, request = open_home().publication(self.publication.name), run_request(context)
        plan, report = RunPlan.from_xcom(self.plan), self.log.info
        order = place_order(store, self.publication, request, plan, targets(report))
        return dict(stage_operations(store, request, order, report).to_xcom())
