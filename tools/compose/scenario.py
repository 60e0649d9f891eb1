"""What is done with the started services: load, publish, kill, read back, stop and start again."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import httpx
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from contexture.errors import RetriableError
from contexture.operations.airflow_client import AirflowClient, AirflowCredentials
from contexture_sandbox.demo.plain_reader import PlainRecord, read_topics
from tools.compose.project import ComposeProject

ENTITIES = 200
MANY = 20_000
_BULK = 500
_RUN_SECONDS = 900
_TREES = re.compile(rb'"id":"(tree\d+)"')
_VEHICLES = {"Fiware-Service": "vehicles", "Fiware-ServicePath": "/4wheels"}
_CITY = {"Fiware-Service": "city", "Fiware-ServicePath": "/parks"}


@dataclass(slots=True)
class Findings:
    """What was measured, and what was wrong."""

    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class ComposeScenario:
    """The steps, in order; each adds to the findings."""

    def __init__(self, project: ComposeProject, findings: Findings, progress: Callable[[str], None]) -> None:
        self._project = project
        self._findings = findings
        self._progress = progress

    def timed(self, name: str, act: Callable[[], object]) -> None:
        """Does a step, and notes how long it took."""
        self._progress(name)
        began = time.monotonic()
        act()
        self._findings.seconds[name] = round(time.monotonic() - began, 1)
        self._progress(f"{name}: {self._findings.seconds[name]} s")

    def check(self, holds: bool, problem: str) -> None:
        """Notes a problem unless something holds."""
        if not holds:
            self._findings.problems.append(problem)
            self._progress(f"wrong: {problem}")

    def first_look(self) -> None:
        """Without any entity, no run fails."""
        for dag in ("publish_vehicles", "publish_city"):
            self.check(self.run(dag) == "success", f"{dag} failed while Orion was empty")

    def load(self, count: int = ENTITIES, speed: int = 1) -> None:
        """Puts cars into Orion by its own API."""
        self._load([_car(number, speed) for number in range(count)], _VEHICLES)

    def publish_and_read(self, count: int = ENTITIES, speed: int = 1) -> None:
        """A run by REST sends each car once, with its value, to topics with three copies."""
        self.check(self.run("publish_vehicles") == "success", "publish_vehicles failed")
        records = self.read("vehicles")
        newest = {record.topic: json.loads(record.value or b"{}") for record in records}
        self.check(len(newest) == count, f"{len(newest)} topics of cars instead of {count}")
        values = {each.get("speed", {}).get("value") for each in newest.values()}
        self.check(values == {speed}, f"cars have the speeds {sorted(map(str, values))[:5]} instead of {speed}")
        topics = AdminClient({"bootstrap.servers": self._project.brokers}).list_topics(timeout=30).topics
        copies = {len(topics[topic].partitions[0].replicas) for topic in newest}
        self.check(copies == {3}, f"topics have {sorted(copies)} copies")
        self._findings.facts["records of cars"] = len(records)

    def restart_spark_in_mid_stage(self) -> None:
        """A worker of Spark is restarted while a stage runs, and the run ends well."""
        self.load(speed=2)
        run = self._client().trigger("publish_vehicles", {})
        self._await(lambda: self._task_state("publish_vehicles", run, "stage") == "running", "the stage")
        time.sleep(8)
        worker = self._project.containers("spark-worker")[0]
        _docker("restart", "--time", "1", worker)
        self.check(self._end_of("publish_vehicles", run) == "success", "a run failed whose Spark worker was restarted")
        newest = {record.topic: json.loads(record.value or b"{}") for record in self.read("vehicles")}
        self.check({each["speed"]["value"] for each in newest.values()} == {2}, "an update was not published")

    def kill_sender_and_leader(self) -> None:
        """A Celery worker and the leader of the ledger are killed while records are sent; each line arrives once."""
        self._load([_tree(number) for number in range(MANY)], _CITY)
        run = self._client().trigger("publish_city", {})
        self._await(lambda: self._sent("city") > 0, "the first record of the city")
        sent = self._sent("city")
        leader = self._leader("contexture.ledger.city")
        for name in (f"kafka-{leader}", "airflow-worker"):
            _docker("kill", self._project.containers(name)[0])
        self._findings.facts["records of the city at the kill"] = sent
        time.sleep(5)
        self._project.compose("up", "--detach", f"kafka-{leader}", "airflow-worker")
        self.check(self._end_of("publish_city", run) == "success", "the run failed whose sender was killed")
        ids = [each for record in self.read("city") for each in _TREES.findall(record.value or b"")]
        self.check(len(ids) == len(set(ids)) == MANY, f"{len(ids)} lines of {len(set(ids))} trees, not {MANY}")

    def stop_and_start(self) -> None:
        """What was stored outlasts `down` and `up`: a run has nothing to send."""
        before = len(self.read("vehicles"))
        self._project.compose("down", "--timeout", "60")
        self._project.up()
        self.load(speed=2)
        self.check(self.run("publish_vehicles") == "success", "the run after down and up failed")
        after = len(self.read("vehicles"))
        self.check(after == before, f"{after - before} records were sent again after down and up")

    def measure(self) -> None:
        """Notes the memory and the processor time at rest of all containers."""
        listed = [each["Name"] for each in self._project.services() if each["State"] == "running"]
        lines = _docker("stats", "--no-stream", "--format", "{{.MemUsage}}\t{{.CPUPerc}}", *listed).splitlines()
        rows = [line.split("\t") for line in lines]
        self._findings.facts["containers"] = len(rows)
        self._findings.facts["memory in MiB"] = round(sum(_mebibytes(row[0].split("/")[0].strip()) for row in rows))

    def run(self, dag: str) -> str:
        """Starts a run by REST, and waits for its end; returns its state."""
        return self._end_of(dag, self._client().trigger(dag, {}))

    def read(self, service: str) -> list[PlainRecord]:
        """Reads all topics of a service with a plain consumer."""
        brokers: dict[str, str | int | float | bool] = {"bootstrap.servers": self._project.brokers}
        topics = [name for name in AdminClient(brokers).list_topics(timeout=30).topics if name.startswith(service)]
        return list(read_topics(brokers, topics)) if topics else []

    def _load(self, entities: list[dict[str, Any]], headers: dict[str, str]) -> None:
        url = f"{self._project.url('ORION_PORT')}/v2/op/update"
        for first in range(0, len(entities), _BULK):
            body = {"actionType": "append", "entities": entities[first : first + _BULK]}
            httpx.post(url, json=body, headers=headers, timeout=120).raise_for_status()

    def _client(self) -> AirflowClient:
        values = self._project.environment
        url, user = self._project.url("AIRFLOW_PORT"), values["AIRFLOW_UI_USER"]
        return AirflowClient(AirflowCredentials(url, user=user, password=values["AIRFLOW_UI_PASSWORD"]))

    def _end_of(self, dag: str, run: str) -> str:
        def state() -> str | None:
            found = self._client().request("GET", f"/api/v2/dags/{dag}/dagRuns/{run}", dag).json()["state"]
            return str(found) if found in {"success", "failed"} else None

        return str(self._await(state, f"the end of {dag}"))

    def _task_state(self, dag: str, run: str, task: str) -> str | None:
        answer = self._client().request("GET", f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances", dag).json()
        return next((each["state"] for each in answer["task_instances"] if each["task_id"] == task), None)

    def _await(self, look: Callable[[], object], what: str) -> object:
        deadline = time.monotonic() + _RUN_SECONDS
        while time.monotonic() < deadline:
            try:
                if found := look():
                    return found
            except (RetriableError, httpx.HTTPError):
                pass
            time.sleep(0.2)
        raise RetriableError(f"{what} did not come in {_RUN_SECONDS} s", next_step="read the logs of the services")

    def _sent(self, service: str) -> int:
        """Counts the records in the topics of a service, those of open transactions included."""
        with closing(Consumer({"bootstrap.servers": self._project.brokers, "group.id": "unused"})) as consumer:
            topics = [name for name in consumer.list_topics(timeout=30).topics if name.startswith(service)]
            return sum(consumer.get_watermark_offsets(TopicPartition(name, 0), 10)[1] for name in topics)

    def _leader(self, topic: str) -> int:
        listed = AdminClient({"bootstrap.servers": self._project.brokers}).list_topics(topic, timeout=30)
        return int(listed.topics[topic].partitions[0].leader)


def _car(number: int, speed: int) -> dict[str, Any]:
    return {"id": f"car{number}", "type": "car", "speed": {"type": "Number", "value": speed}}


def _tree(number: int) -> dict[str, Any]:
    return {"id": f"tree{number:05d}", "type": "tree", "height": {"type": "Number", "value": number}}


def _docker(*words: str) -> str:
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=True, timeout=120).stdout


def _mebibytes(text: str) -> float:
    units = {"GiB": 1024.0, "MiB": 1.0, "KiB": 1 / 1024, "B": 1 / 1024 / 1024}
    unit = next(each for each in units if text.endswith(each))
    return float(text.removesuffix(unit)) * units[unit]
