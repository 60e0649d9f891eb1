"""The platform of `cluster/` with counts: of PostgreSQL's statements, of the object store's requests."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path

from contexture.java.runtime import Java
from contexture.operations import pools
from contexture_sandbox.processes import ChildProcess
from contexture_sandbox.stack import Progress, StackOptions
from tools.bench.engines.counted_store import CountedStore
from tools.cluster.platform import BROKERS, ClusterPlatform
from tools.cluster.postgres import PostgresServer

ALWAYS = "worker-1"
STAGES_AT_ONCE = 2
_STATEMENTS = {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.max": "10000"}


class CountedPlatform(ClusterPlatform):
    """Twenty servers as for `make cluster-test`; two stages run beside each other, on an executor each."""

    store: CountedStore

    def __init__(self, options: StackOptions, progress: Progress) -> None:
        super().__init__(options, progress)
        self._names = (f"worker-{number}" for number in count(3))

    @property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """Process ids of the servers of each part."""
        return {
            "Celery workers, tasks and Spark's drivers in them": _of(self.workers.running.values()),
            "Spark's workers and executors": _of(self.spark.workers),
            "Airflow's API server": self.airflow.process_ids[:1],
            "Airflow's scheduler": self.airflow.process_ids[1:2],
            "Airflow's DAG processor": self.airflow.process_ids[2:3],
            "Airflow's triggerer": self.airflow.process_ids[3:4],
            "PostgreSQL": (self.postgres.process.pid,),
            "Redis": (self.redis.process.pid,),
            "the three Kafka brokers": self.kafka.process_ids,
            "the test's S3 server": (self.store.process.pid,),
        }

    def set_workers(self, number: int) -> None:
        """Lets one Celery worker or two take tasks."""
        running = self.workers.running
        for name in [name for name in running if name != ALWAYS][number - 1 :]:
            running.pop(name).terminate()
        while len(running) < number:
            # A log of its own: it is ready when its log says so.
            self.start_worker(next(self._names))

    def _new_postgres(self, log: Path) -> PostgresServer:
        return PostgresServer(log, _STATEMENTS)

    def _new_store(self, log: Path) -> CountedStore:
        return CountedStore(log, self._progress)

    def _start_engines(self, runtime: Java) -> None:
        super()._start_engines(runtime)
        with (self.spark.folders.configuration / "spark-defaults.conf").open("a") as defaults:
            defaults.write("spark.cores.max 1\n")

    def _before_schedule(self) -> None:
        _, text = pools.POOLS[pools.SPARK]
        self.client.make_pools([(pools.SPARK, STAGES_AT_ONCE, text)])
        super()._before_schedule()


def write_publications(folder: Path, number: int) -> list[str]:
    """Small publications of the same cars, each to a topic of its own; their names."""
    folder.mkdir(parents=True)
    names = [f"small-{each}" for each in range(1, number + 1)]
    for name in names:
        (folder / f"{name}.yaml").write_text(_PUBLICATION.format(name=name, copies=BROKERS))
    return names


def _of(processes: Iterable[ChildProcess]) -> tuple[int, ...]:
    return tuple(process.pid for process in processes)


_PUBLICATION = """name: {name}
description: A small publication
schedule: null
source:
  kind: ngsi
  connection: context_broker
  service: vehicles
  service_path: /4wheels
  types: [car]
  mode: changes
topics:
  naming: fixed
  topics: [{name}]
  keep: latest
  replication_factor: {copies}
message:
  format: ngsiv2
  key: identity
publish:
  connection: kafka_default
  shards: 1
resync:
  on_startup: none
  on_config_change: none
"""
