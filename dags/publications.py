"""### Keeps the Kafka topics of one publication equal to what its source holds

**Input**: the context broker or registry behind `source.connection`. **Output**: the topics of the publication, the
asset `published_<name>`, and a data quality report (a button on `quality_gate`).

- **settle** finishes what an earlier run left approved, then decides mode and number of this run. *Red*: an earlier
  outbox can not be sent. Correct what the error names and clear, or `contexture outbox abandon` it.
- **stage** reads the source and prepares the outbox, in Spark. *Red*: nothing was sent. Correct what the error names,
  then clear.
- **quality_gate** approves the outbox, or rejects it before anything is sent. *Red*: see the report. Correct source or
  rules, then start a new run.
- **publish** sends each shard exactly once, from the ledger's position. *Red*: clear it, or start a new run: both go
  on where it stopped.
- **conclude** moves state and watermark on, and updates the asset. *Red*: clear the publish task that it names.

A failed run does no harm to the next one. Started by hand, the form offers a full run, a dry run, and more; Airflow's
backfill sends the archive of past intervals again, or else what the source keeps of them: the history of an NGSI-LD
broker, the log of a registry.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable, get_parsing_context

from contexture.operations import pools
from contexture.publications import Publication
from contexture_airflow.alerts.delivery import Audience
from contexture_airflow.alerts.notifiers import FailureNotifier, deadline
from contexture_airflow.assets import published
from contexture_airflow.catalogue import publications
from contexture_airflow.dag_defaults import default_args, run_params, runbook
from contexture_airflow.operators.conclude import ConcludeOperator
from contexture_airflow.operators.publish import PublishOutboxOperator
from contexture_airflow.operators.quality_gate import QualityGateOperator
from contexture_airflow.operators.settle import SettleOperator
from contexture_airflow.operators.stage import StagePublicationOperator
from contexture_airflow.operators.stage_operations import StageOperationsOperator
from contexture_airflow.settings import publication_dag_id

START = datetime(2025, 1, 1, tzinfo=UTC)


def publish(publication: Publication) -> DAG:
    """The DAG of one publication."""
    with DAG(
        dag_id=publication_dag_id(publication.name), schedule=_timetable(publication.schedule), **_settings(publication)
    ) as dag:
        settle = SettleOperator(
            **_task("settle", SettleOperator, pools.BROKER), **_sender_limits(publication), publication=publication
        )
        stage = _stage(publication, settle.output)
        quality_gate = QualityGateOperator(
            **_task("quality_gate", QualityGateOperator, pools.BROKER), staged=stage.output
        )
        shards = _publish(publication, staged=stage.output, shards=quality_gate.output)
        conclude = ConcludeOperator(
            **_task("conclude", ConcludeOperator, pools.BROKER),
            staged=stage.output,
            published=published(publication.name),
            trigger_rule="none_failed",
        )
        settle >> stage >> quality_gate >> shards >> conclude
    return dag


def _stage(publication: Publication, plan: Any) -> BaseOperator:
    """What the source holds is prepared in Spark; what Contexture itself did is a few rows of a database."""
    if not publication.source.has_content:
        own = _task("stage", StageOperationsOperator, pools.SOURCE)
        return StageOperationsOperator(**own, publication=publication, plan=plan)
    task = _task("stage", StagePublicationOperator, pools.SPARK)
    return StagePublicationOperator(**task, publication=publication, plan=plan)


def _publish(publication: Publication, *, staged: Any, shards: Any) -> Any:
    """One task for each shard that has something to send."""
    return PublishOutboxOperator.partial(
        **_task("publish", PublishOutboxOperator, pools.BROKER),
        **_sender_limits(publication),
        staged=staged,
        map_index_template="shard {{ task.shard }}",
    ).expand(shard=shards)


def _timetable(schedule: str | None) -> CronDataIntervalTimetable | None:
    return CronDataIntervalTimetable(schedule, timezone="UTC") if schedule else None


def _settings(publication: Publication) -> dict[str, Any]:
    audience = Audience.of(publication)
    notifier = FailureNotifier(publication.name, audience.mail, audience.notifiers)
    return {
        "description": publication.description or f"Publishes {publication.name}",
        "doc_md": __doc__,
        "start_date": START,
        "catchup": False,
        "max_active_runs": 1,
        "params": run_params(),
        "tags": {"contexture", "publication", publication.source.kind},
        "deadline": deadline(publication),
        "default_args": default_args() | {"on_failure_callback": notifier},
    }


def _task(task_id: str, operator: type, pool: str) -> dict[str, Any]:
    return {"task_id": task_id, "doc_md": runbook(operator), "pool": pool}


def _sender_limits(publication: Publication) -> dict[str, Any]:
    # Sends that are tried for ever (batch_ttl: -1) must not be ended by the clock of their task.
    return {"execution_timeout": None} if publication.batches.batch_ttl == -1 else {}


for publication in publications(get_parsing_context().dag_id):
    globals()[publication_dag_id(publication.name)] = publish(publication)
