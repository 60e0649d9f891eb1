"""A DAG with the tasks of a publication, in which nothing happens but one submit of an empty job to Spark.

It is what Airflow and Spark cost by themselves: the peer of a whole run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, BaseOperator, Context

from contexture.operations import pools
from contexture_airflow.dag_defaults import default_args
from contexture_airflow.operators.stage import spark_configuration
from contexture_airflow.settings import SPARK_CONNECTION
from tools import bench

SHARDS = [0, 1]
EMPTY_JOB = Path(bench.__file__).with_name("empty_job.py")


class EmptyOperator(BaseOperator):
    """Returns what it was given."""

    def __init__(self, *, answer: Any = None, shard: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.answer = answer
        self.shard = shard

    def execute(self, context: Context) -> Any:
        """The answer."""
        return self.answer


with DAG(dag_id="bench_empty_shape", schedule=None, default_args=default_args(), max_active_runs=1):
    settle = EmptyOperator(task_id="settle", pool=pools.BROKER)
    stage = SparkSubmitOperator(
        task_id="stage",
        application=str(EMPTY_JOB),
        conn_id=SPARK_CONNECTION,
        conf=spark_configuration(),
        durable=False,
        pool=pools.SPARK,
    )
    quality_gate = EmptyOperator(task_id="quality_gate", answer=SHARDS, pool=pools.BROKER)
    publish = EmptyOperator.partial(task_id="publish", pool=pools.BROKER).expand(shard=quality_gate.output)
    conclude = EmptyOperator(task_id="conclude", pool=pools.BROKER, trigger_rule="none_failed")
    settle >> stage >> quality_gate >> publish >> conclude
