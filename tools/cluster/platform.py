"""Everything together: the sandbox's sources and Airflow, on the engines of a cluster."""

from __future__ import annotations

from pathlib import Path

from contexture.java.runtime import Java
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.stack import Stack
from tools.cluster.celery import CeleryWorkers
from tools.cluster.object_store import ObjectStore
from tools.cluster.postgres import PostgresServer
from tools.cluster.redis import RedisServer
from tools.cluster.spark import SparkFolders, SparkStandalone

CELERY_WORKERS = ("worker-1", "worker-2")
BROKERS = 3
MIN_IN_SYNC = 2
# A task whose worker is gone is given up after this; Airflow's own five minutes are long for a test.
HEARTBEAT_TIMEOUT_SECONDS = 30


class ClusterPlatform(Stack):
    """The sandbox's platform with PostgreSQL, Redis, Celery workers, Spark standalone and three brokers, its home on an
    object store; a context manager that leaves nothing behind."""

    postgres: PostgresServer
    redis: RedisServer
    store: ObjectStore
    spark: SparkStandalone
    workers: CeleryWorkers

    def start_worker(self, name: str) -> None:
        """Starts one more Celery worker and waits until it takes tasks."""
        self.workers.start(name, self.airflow.environment)
        self.workers.await_ready(name)

    def _new_kafka(self) -> EmbeddedKafka:
        settings = {"min.insync.replicas": str(MIN_IN_SYNC)}
        return EmbeddedKafka(BROKERS, broker_config=settings, heap="384m", progress=self._progress)

    def _new_postgres(self, log: Path) -> PostgresServer:
        return PostgresServer(log)

    def _new_store(self, log: Path) -> ObjectStore:
        return ObjectStore(log, self._progress)

    def _start_engines(self, runtime: Java) -> None:
        logs = self.folder / "services"
        self._progress("starting PostgreSQL")
        self.postgres = self._stack.enter_context(self._new_postgres(logs / "postgres.log"))
        self._progress("starting Redis")
        self.redis = self._stack.enter_context(RedisServer(self.folder / "redis", logs / "redis.log"))
        self._progress("starting an S3 server")
        self.store = self._stack.enter_context(self._new_store(logs / "object-store.log"))
        self._progress("starting Spark's master and workers")
        folder = self.folder / "spark"
        folders = SparkFolders(logs, folder / "work", folder / "scratch", folder / "conf")
        self.spark = self._stack.enter_context(SparkStandalone(folders, runtime, self.store.variables))

    def _engine_variables(self) -> dict[str, str]:
        return {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": self.postgres.url("airflow"),
            "AIRFLOW__CELERY__RESULT_BACKEND": self.postgres.url("airflow", "db+postgresql+psycopg2"),
            "AIRFLOW__CELERY__BROKER_URL": self.redis.url,
            "AIRFLOW__CELERY__SYNC_PARALLELISM": "1",
            "AIRFLOW__CELERY__WORKER_PREFETCH_MULTIPLIER": "1",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_TIMEOUT_SECONDS),
            "CONTEXTURE_DATABASE": self.postgres.url("operations"),
            "CONTEXTURE_HOME": self.store.home,
            "SPARK_CONF_DIR": str(self.spark.folders.configuration),
            **self.store.variables,
        }

    def _spark_connection(self) -> dict[str, object]:
        return self.spark.connection

    def _before_schedule(self) -> None:
        super()._before_schedule()
        self._progress("starting two Celery workers")
        self.workers = self._stack.enter_context(CeleryWorkers(self.folder / "services", self.folder / "celery"))
        for name in CELERY_WORKERS:
            self.workers.start(name, self.airflow.environment)
        for name in CELERY_WORKERS:
            self.workers.await_ready(name)
