"""The task that reads and prepares, in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import AirflowException

from contexture_airflow.settings import SPARK_CONNECTION, shuffle_partitions
from contexture_airflow.spark_class_data import JAVA_OPTIONS, java_options
from contexture_airflow.task_context import run_request

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.exceptions import TaskAwaitingInput

    from contexture.publications import Publication
    from contexture.storage.publication_store import PublicationStore
    from contexture.storage.shrink_report import ShrinkReport
    from contexture_airflow.run import RunPlan


def ask_about_shrinking(context: Context, publication: Publication, vanishing: ShrinkReport) -> TaskAwaitingInput:
    """Puts the question where Airflow shows what people have to do; gives what the task raises to wait for the answer.

    It waits in state `awaiting_input`, which holds no slot. Its `resume` is called with the answer, or with an
    error when none came in time.
    """
    from airflow.sdk.exceptions import TaskAwaitingInput
    from airflow.sdk.execution_time.hitl import upsert_hitl_detail

    from contexture_airflow.steps.shrink_approval import APPROVE, REJECT, compose_question

    reason = Param("", type="string", title="Reason", description="Stored with the run")
    upsert_hitl_detail(
        ti_id=context["task_instance"].id,
        options=[APPROVE, REJECT],
        subject=f"{publication.name}: {vanishing.count} of {vanishing.held} would be deleted",
        body=compose_question(publication, vanishing),
        params={"reason": reason.serialize()},
    )
    hours = publication.source.shrink_limit.answer_hours
    return TaskAwaitingInput(method_name="resume", timeout=timedelta(hours=hours))


class StagePublicationOperator(SparkSubmitOperator):
    """Pulls from the source and prepares the outbox, with the data quality report, in one submit to Spark.

    Secrets reach Spark by the environment alone, set while the task runs: they are in no argument, no rendered field
    and no log. A retry goes on after the last phase that left a manifest.

    Where `source.shrink_limit.beyond` is ask, it waits for a person (*Required actions*) before much is deleted.

    **When red:** the error says what the source, the data or the publication needs. Nothing was sent. Clear this task
    when it is corrected.

    Args:
        publication: the publication.
        plan: what settle returned.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "plan")

    def __init__(self, *, publication: Publication, plan: Any, **kwargs: Any) -> None:
        kwargs.setdefault("conn_id", SPARK_CONNECTION)
        kwargs.setdefault("name", f"contexture-{publication.name}")
        super().__init__(conf=spark_configuration(), durable=False, **kwargs)
        self.publication = publication
        self.plan = plan

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Returns the outbox: its id, sequence, number of records, shards with records, and report."""
        from contexture.errors import ConfigurationError
        from contexture_airflow.alerts.run_alerts import alert_question
        from contexture_airflow.connections.settings import open_home
        from contexture_airflow.run import RunPlan
        from contexture_airflow.steps.shrink_approval import find_shrink_question

        store, plan = open_home().publication(self.publication.name), RunPlan.from_xcom(self.plan)
        try:
            return self._staged(context, store, plan)
        except ConfigurationError as error:
            vanishing = find_shrink_question(store, self.publication, plan.run, error)
            if vanishing is None:
                raise
            self.log.warning("%s; the task waits for an answer, and frees its slot until then", error.message)
        waits = ask_about_shrinking(context, self.publication, vanishing)
        alert_question(store, self.publication, vanishing, context, self.log)
        raise waits

    def resume(self, context: Context, event: Any = None) -> dict[str, Any]:
        """The same, when a person has decided whether more may be deleted than the limit says."""
        from contexture_airflow.connections.settings import open_home
        from contexture_airflow.run import RunPlan
        from contexture_airflow.run_events import open_run_events
        from contexture_airflow.steps.shrink_approval import decide, decision_of_event

        store, run = open_home().publication(self.publication.name), RunPlan.from_xcom(self.plan).run
        decision = decision_of_event(event or {})
        self.log.info("%s", decision.clause)
        with open_run_events(store.home, self.log.warning) as events:
            decide(store, events.tables, run, context["dag_run"].run_id, decision)
        return self.execute(context)

    def _staged(self, context: Context, store: PublicationStore, plan: RunPlan) -> dict[str, Any]:
        from contexture_airflow.connections.settings import targets
        from contexture_airflow.run_events import record_source_read
        from contexture_airflow.steps.stage import place_order, read_staged_outbox

        request, decision = run_request(context), store.run(plan.run).shrink_decision()
        if decision is not None and decision.approved:
            request = request.model_copy(update={"confirm_shrink": True})
        order = place_order(store, self.publication, request, plan, targets(self.log.info))
        with TemporaryDirectory(prefix="contexture-") as scratch:
            self._prepare_submit(store.home.root, order.uri, Path(scratch))
            failure = self._submit_failure(context)
        with record_source_read(store.home, self.publication, order.run, self.log.warning):
            staged = read_staged_outbox(store, order, failure)
        if failure is not None:
            self.log.warning(
                "the Spark job had reported its result before its process failed: what it prepared is complete"
            )
        self.log.info("outbox %s, %s records, report %s", staged.outbox, staged.records, staged.report)
        return dict(staged.to_xcom())

    def _prepare_submit(self, home: str, order_uri: str, scratch: Path) -> None:
        from contexture_airflow.spark_submit import SparkSubmission

        source = self.publication.source
        submission = SparkSubmission.prepare(source.connection, str(self._conn_id), home, scratch, kind=source.kind)
        self.application = submission.application
        self.conf = {**(self.conf or {}), "spark.driver.extraJavaOptions": java_options()}
        self.application_args = ["--order", order_uri]
        self.env_vars = submission.environment
        self.py_files = submission.py_files

    def _submit_failure(self, context: Context) -> AirflowException | None:
        # A failed submit is always the same exception, whatever went wrong: the job's answer knows more.
        try:
            super().execute(context)
        except AirflowException as error:
            return error
        return None


def spark_configuration() -> dict[str, str]:
    """What every submit of ours needs; the connection and `spark-defaults.conf` say the rest."""
    return {
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        "spark.sql.shuffle.partitions": shuffle_partitions(),
    }
