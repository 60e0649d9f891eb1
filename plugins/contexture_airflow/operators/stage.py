"""The task that reads and prepares, in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException

from contexture.sandbox.class_data import JAVA_OPTIONS, java_options
from contexture_airflow.context import run_request
from contexture_airflow.settings import SPARK_CONNECTION, shuffle_partitions

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.publications import Publication


class StagePublicationOperator(SparkSubmitOperator):
    """Pulls from the source and prepares the outbox, with the data quality report, in one submit to Spark.

    Secrets reach Spark by the environment alone, set while the task runs: they are in no argument, no rendered field
    and no log. A retry goes on after the last phase that left a manifest.

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
        from contexture_airflow.steps.noting import source_noted
        from contexture_airflow.steps.open import open_storage, targets
        from contexture_airflow.steps.run import RunPlan
        from contexture_airflow.steps.staging import answer, place_order

        storage = open_storage()
        order = place_order(
            storage, self.publication, run_request(context), RunPlan.received(self.plan), targets(self.log.info)
        )
        with TemporaryDirectory(prefix="contexture-") as scratch:
            self._prepare_submit(storage.root, order.uri, Path(scratch))
            failure = self._submit_failure(context)
        with source_noted(storage, self.publication, order.run, self.log.warning):
            staged = answer(storage, order, failure)
        self.log.info("outbox %s, %s records, report %s", staged.outbox, staged.records, staged.report)
        return dict(staged.handed())

    def _prepare_submit(self, home: str, order_uri: str, scratch: Path) -> None:
        from contexture_airflow.submission import Submission

        source = self.publication.source
        submission = Submission.prepared(source.connection, str(self._conn_id), home, scratch, kind=source.kind)
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
