"""Runs of a live Airflow that tells collectors outside of them, and what these got."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx

from contexture.kafka import read_committed
from contexture.storage.manifests import Manifest
from contexture_sandbox.airflow.client import DagRun
from e2e.installation import Installation, until
from fakes.collectors import LineageCollector, OpenTelemetryCollector, StatsdServer, Told

PATIENCE_SECONDS = 1500.0
CARS = "publish_cars"
FILES = {
    # Their connections are in Airflow's database, as most are: whoever tells of them has to find them there.
    "cars": """\
name: cars
schedule: null
source: {kind: ngsi, connection: broker_in_database, service: vehicles, service_path: /4wheels, types: [car]}
topics: {data_model: dm-by-service-path}
publish: {connection: kafka_in_database, shards: 2}
resync: {on_startup: none}
""",
    "events": """\
name: events
schedule: null
source: {kind: operations}
topics: {topics: [contexture.operations]}
resync: {on_startup: none}
""",
}
TOPIC = "vehiclesxffffx002f4wheels"
SECRET = "token-that-nobody-is-told"
RUNS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("full", CARS, {"mode": "full"}),
    ("events", "publish_events", {}),
    ("verified", "verify_replica", {"publications": ["cars"]}),
)
OWN = "airflow.contexture."


@dataclass
class Story:
    """What was told of some runs, and what became of them."""

    broker: str
    kafka: str
    runs: dict[str, DagRun]
    sent: Manifest
    size: int
    lineage: list[dict[str, Any]]
    statsd: dict[str, list[Told]]
    open_telemetry: list[Told]
    are_deltas: set[bool]

    def events(self, run: str, task: str | None = None) -> list[dict[str, Any]]:
        """What was told of a task of a run, in order; of the run itself without a task."""
        dag_run = self.runs[run]
        job = dag_run.dag_id if task is None else f"{dag_run.dag_id}.{task}"
        return [event for event in of_run(self.lineage, dag_run) if event["job"]["name"] == job]

    def named(self, run: str) -> dict[str, tuple[list[tuple[str, str]], dict[tuple[str, str], int]]]:
        """The jobs of a run that named sources, and topics with their numbers of records."""
        return {
            event["job"]["name"]: (
                _names(event["inputs"]),
                dict(zip(_names(event["outputs"]), _counts(event), strict=True)),
            )
            for event in of_run(self.lineage, self.runs[run])
            if event.get("inputs") or event.get("outputs")
        }


def _names(datasets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["namespace"], each["name"]) for each in datasets]


def _counts(event: dict[str, Any]) -> list[int]:
    return [each["outputFacets"]["outputStatistics"]["rowCount"] for each in event["outputs"]]


def of_run(events: Iterable[dict[str, Any]], run: DagRun) -> list[dict[str, Any]]:
    return [event for event in events if _run_id(event) == run.run_id]


def _run_id(event: dict[str, Any]) -> str:
    """Airflow's id of the run that an event is about."""
    facets = event["run"]["facets"]
    return str((facets.get("airflow") or facets["airflowDagRun"])["dagRun"]["run_id"])


def told_to(lineage: LineageCollector, statsd: StatsdServer) -> dict[str, str]:
    return {
        "AIRFLOW__OPENLINEAGE__TRANSPORT": lineage.transport,
        # A busy machine may take longer than ten seconds for an event, and than twenty for what comes behind a task.
        "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "300",
        "AIRFLOW__CORE__TASK_SUCCESS_OVERTIME": "600",
        "AIRFLOW__METRICS__STATSD_ON": "True",
        "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
        "AIRFLOW__METRICS__STATSD_PORT": str(statsd.port),
        "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
    }


def _by_open_telemetry(collector: OpenTelemetryCollector) -> dict[str, str]:
    """As the reference has it."""
    return {
        "AIRFLOW__METRICS__STATSD_ON": "False",
        "AIRFLOW__METRICS__OTEL_ON": "True",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta",
    }


def lived(
    platform: Installation, lineage: LineageCollector, statsd: StatsdServer, otel: OpenTelemetryCollector
) -> Story:
    """One run after the other, the last one with the other kind of metrics."""
    servers = add_connections(platform)
    platform.stack.client.await_dags([dag for _, dag, _ in RUNS], seconds=PATIENCE_SECONDS)
    runs: dict[str, DagRun] = {}
    told: dict[str, list[Told]] = {}
    for name, dag, conf in RUNS:
        before = len(statsd.told)
        runs[name] = ended(platform, lineage, dag, conf)
        statsd.catch_up()
        told[name] = _own(statsd.told[before:])
    [sent] = platform.published("cars")
    values = [*read_committed(platform.stack.kafka_settings(), [TOPIC])]
    platform.stack.airflow.kill("scheduler")
    platform.stack.airflow.start_again("scheduler", **_by_open_telemetry(otel))
    runs["again"] = ended(platform, lineage, CARS, {"mode": "full"})
    # A process tells when it ends, which is after its task has.
    until(
        lambda: {"run_lag_seconds", "send_duration"} <= {each.name.removeprefix(OWN) for each in otel.told} or None,
        "metrics",
        PATIENCE_SECONDS,
    )
    until(lambda: sum_of(otel.told, "records_sent") >= sent.records or None, "metrics of all shards", PATIENCE_SECONDS)
    return Story(
        broker=platform.stack.broker.url,
        kafka=servers,
        runs=runs,
        sent=sent,
        size=sum(len(record.key or b"") + len(record.value or b"") for record in values),
        lineage=list(lineage.events),
        statsd=told,
        open_telemetry=_own(otel.told),
        are_deltas=set(otel.are_deltas),
    )


def add_connections(platform: Installation) -> str:
    """Puts connections into Airflow's database; gives Kafka's address."""
    address = httpx.URL(platform.stack.broker.url)
    extra = platform.stack.kafka.client_settings()
    headers = json.dumps({"headers": {"X-Auth-Token": SECRET}})
    broker = {"conn_type": "http", "schema": "http", "host": address.host, "port": address.port, "extra": headers}
    kafka = {"conn_type": "kafka", "extra": json.dumps(extra)}
    for name, fields in (("broker_in_database", broker), ("kafka_in_database", kafka)):
        answer = platform.ask("POST", "/api/v2/connections", {"connection_id": name, **fields})
        assert answer.status_code == httpx.codes.CREATED, answer.text
    return str(extra["bootstrap.servers"])


def ended(platform: Installation, lineage: LineageCollector, dag: str, conf: dict[str, object]) -> DagRun:
    """A run by hand, when all that it began to tell of has come to its end."""
    client = platform.stack.client
    started = client.trigger(dag, conf)
    run = client.await_run(dag, started.run_id, seconds=PATIENCE_SECONDS)
    assert run.state == "success"
    # A task is over before its end is told, and the scheduler tells of the run whenever it comes to it.
    until(lambda: _is_all_told(of_run(lineage.events, run)) or None, f"end of {dag} in the lineage", PATIENCE_SECONDS)
    return run


def _is_all_told(events: Iterable[dict[str, Any]]) -> bool:
    told: dict[str, set[str]] = defaultdict(set)
    for event in list(events):
        told[event["run"]["runId"]].add(event["eventType"])
    of_tasks = {event["job"]["name"] for event in events if "." in event["job"]["name"]}
    ends = [kinds == {"START", "COMPLETE"} for kinds in told.values()]
    return bool(of_tasks) and len({event["job"]["name"] for event in events}) > len(of_tasks) and all(ends)


def _own(told: Iterable[Told]) -> list[Told]:
    return [each for each in told if each.name.startswith(OWN)]


def sum_of(told: Iterable[Told], name: str, publication: str = "cars") -> float:
    """What the values of a metric of a publication come to."""
    own = [each for each in told if each.name == OWN + name and dict(each.tags)["publication"] == publication]
    return sum(each.value for each in own)
