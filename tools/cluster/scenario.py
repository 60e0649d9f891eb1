"""What happens to the cluster: everything is loaded, then sent again and again while parts of it are killed."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from contexture.errors import RetriableError
from contexture.kafka import ClientSettings
from contexture_sandbox.airflow.client import DagRun
from contexture_sandbox.context_broker.entities import changes
from contexture_sandbox.demo.console import DemoConsole, TaskWatch
from contexture_sandbox.demo.outage import LedgerWatch
from contexture_sandbox.demo.scenario import CHANGED_CODELIST, DELETED_DATAFLOW, PUBLICATIONS, prepare_publications
from contexture_sandbox.registry import seed_codelist
from tools.cluster.evidence import Kill
from tools.cluster.moments import await_found, executor_at_work, owner_of
from tools.cluster.platform import BROKERS, ClusterPlatform

ENTITIES = 900
STRUCTURES = 100
RUN_SECONDS = 900.0
SEND_SECONDS = 300.0
Result = TypeVar("Result")


def prepare(folder: Path) -> None:
    """Adapts the copies of the demo's publications: three copies of each topic, and a send that takes seconds."""
    prepare_publications(folder)
    for name in PUBLICATIONS:
        file = folder / f"{name}.yaml"
        file.write_text(
            re.sub(r"(?m)^topics:$", f"topics:\n  replication_factor: {BROKERS}", file.read_text(), count=1)
        )
    city = folder / "city.yaml"
    city.write_text(city.read_text().replace("batch_size: 10", "batch_size: 2"))


class ClusterScenario:
    """The steps on one running cluster.

    Attributes:
        kills: what was killed, in order.
        runs: every run that was waited for, as it ended.
    """

    def __init__(self, platform: ClusterPlatform, console: DemoConsole) -> None:
        self.platform = platform
        self.console = console
        self.kills: list[Kill] = []
        self.runs: list[DagRun] = []
        self._watch = TaskWatch(console, platform.client)

    def run(self) -> None:
        """Runs all steps, in order."""
        self.first_load()
        self.without_a_broker()
        self.without_a_worker()
        self.changes()
        self.verification()

    def first_load(self) -> None:
        """Everything that exists is loaded, while a Spark executor dies."""
        self.console.step(
            1,
            "Everything is loaded by two Spark workers, and one executor is killed",
            "Spark does its tasks again in a new executor; nothing of the half-done ones is used.",
        )
        client = self.platform.client
        client.await_dags([*(f"publish_{name}" for name in PUBLICATIONS), "resynchronise"])
        started = [self._awaited(f"publish_{name}") for name in PUBLICATIONS]
        self._during(self._kill_executor, lambda: self._finish(*started))

    def without_a_broker(self) -> None:
        """Everything again, while the broker that leads the ledger's partition dies."""
        self.console.step(
            2,
            "Everything again, and a Kafka broker is killed in mid-send",
            "Two of three brokers continue: each record waits for two copies. The run ends without the third.",
        )
        watch = LedgerWatch(self.platform.kafka_settings(), "city")
        self._during(lambda: self._kill_broker(watch), lambda: self._run("city", "without a broker", mode="full"))
        self.platform.kafka.start()
        await_found(self._all_in_sync, "cluster whose partitions are all in sync")
        self.console.line("the broker is back, and all copies are in sync")

    def without_a_worker(self) -> None:
        """Everything again, while the Celery worker that sends dies."""
        self.console.step(
            3,
            "Everything again, and a Celery worker is killed in mid-send",
            "Airflow notices after 30 s without a heartbeat; the other worker sends what is left, from the ledger on.",
        )
        watch = LedgerWatch(self.platform.kafka_settings(), "city")
        self._during(lambda: self._kill_worker(watch), lambda: self._run("city", "without a worker", mode="full"))
        self.platform.start_worker(self.kills[-1].part)
        self.console.line(f"{self.kills[-1].part} is back")

    def changes(self) -> None:
        """What changes in the sources is published as ever."""
        self.console.step(4, "The sources change", "A cluster that has seen all this does its work as before.")
        loaded = self.platform.broker.load(changes(ENTITIES))
        self.console.line(f"{loaded.changed} entities changed, {loaded.created} new, {loaded.deleted} deleted")
        self._run("vehicles", "the source changed")
        self.platform.registry.submit(seed_codelist(CHANGED_CODELIST, codes=2))
        self.platform.registry.delete([DELETED_DATAFLOW])
        self._run("structures", "the registry changed")

    def verification(self) -> None:
        """The DAG that reads all topics back finds them equal to the state."""
        self.console.step(5, "verify_replica reads the topics back", "It fails where they differ from the state.")
        run = self.platform.client.trigger("verify_replica", {"publications": list(PUBLICATIONS), "reason": "cluster"})
        self._finish(run)

    def _kill_executor(self) -> None:
        workers = [worker.pid for worker in self.platform.spark.workers]
        executor = await_found(lambda: executor_at_work(workers), "executor that runs a task", RUN_SECONDS)
        # Not ours, but a child of a worker that is: it is found anew each time, just before.
        os.kill(executor, signal.SIGKILL)
        self._killed(Kill("spark executor", str(executor), "a task was running in it"))

    def _kill_broker(self, watch: LedgerWatch) -> None:
        seen = watch.await_first_transaction(timeout_seconds=SEND_SECONDS)
        leader = _leader(self.platform.kafka_settings(), "contexture.ledger.city", seen.shard)
        self.platform.kafka.kill(leader - 1)
        self._killed(Kill("kafka broker", str(leader), f"{seen.position} records of shard {seen.shard} were committed"))

    def _kill_worker(self, watch: LedgerWatch) -> None:
        seen = watch.await_first_transaction(timeout_seconds=SEND_SECONDS)
        name = await_found(self._sending_worker, "Celery worker that sends", seconds=30)
        self.platform.workers.kill(name)
        self._killed(Kill("celery worker", name, f"{seen.position} records of shard {seen.shard} were committed"))

    def _sending_worker(self) -> str | None:
        run = self.platform.client.runs("publish_city")[-1]
        roots = {name: process.pid for name, process in self.platform.workers.running.items()}
        sending = (
            task.process
            for task in self.platform.client.tasks(run.dag_id, run.run_id)
            if task.task_id == "publish" and task.state == "running" and task.process
        )
        return next((name for process in sending if (name := owner_of(process, roots))), None)

    def _all_in_sync(self) -> bool | None:
        partitions = _partitions(self.platform.kafka_settings())
        return True if all(len(partition.isrs) == BROKERS for partition in partitions) else None

    def _killed(self, kill: Kill) -> None:
        self.kills.append(kill)
        self.console.line(f"[bold]{kill.kind} {kill.part} was killed[/bold]: {kill.moment}")

    def _during(self, deed: Callable[[], None], work: Callable[[], Result]) -> Result:
        """Does a deed beside some work; what went wrong with the deed counts too."""
        problems: list[Exception] = []

        def noted() -> None:
            try:
                deed()
            except Exception as error:
                problems.append(error)
                self.console.line(f"error: {error}", style="red")

        beside = threading.Thread(target=noted, daemon=True)
        beside.start()
        result = work()
        beside.join(timeout=SEND_SECONDS)
        if problems:
            raise problems[0]
        return result

    def _run(self, publication: str, reason: str, **params: object) -> None:
        self._finish(self.platform.client.trigger(f"publish_{publication}", {"reason": reason, **params}))

    def _awaited(self, dag_id: str) -> DagRun:
        def first() -> DagRun | None:
            failed = self.platform.airflow.failed()
            if failed:
                raise RetriableError(f"Airflow's {failed}", next_step="read the lines above")
            return next(iter(self.platform.client.runs(dag_id)), None)

        return await_found(first, f"run of {dag_id}", seconds=RUN_SECONDS)

    def _finish(self, *runs: DagRun) -> None:
        def watch_all(_: DagRun) -> None:
            self.platform.workers.failed()
            for run in runs:
                self._watch(run)

        for run in runs:
            done = self.platform.client.await_run(run.dag_id, run.run_id, seconds=RUN_SECONDS, watch=watch_all)
            self.runs.append(done)
            self.console.line(f"{run.dag_id}: {done.state} in {done.seconds:.1f} s")


def _partitions(settings: ClientSettings) -> list[Any]:
    from confluent_kafka.admin import AdminClient

    topics = AdminClient(settings.admin()).list_topics(timeout=30).topics.values()
    return [partition for topic in topics for partition in topic.partitions.values()]


def _leader(settings: ClientSettings, topic: str, partition: int) -> int:
    from confluent_kafka.admin import AdminClient

    return int(AdminClient(settings.admin()).list_topics(topic, timeout=30).topics[topic].partitions[partition].leader)
