"""Runs of a live Airflow, and what collectors outside of it received."""

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
from fakes.collectors import LineageCollector, MetricValue, OpenTelemetryCollector, StatsdServer

WAIT_SECONDS = 1500.0
CARS = "publish_cars"
FILES = {
    # Their connections are in Airflow's database, as most are: lineage has to find them there.
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
SECRET = "token-that-no-event-may-hold"
RUNS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("full", CARS, {"mode": "full"}),
    ("events", "publish_events", {}),
    ("verified", "verify_replica", {"publications": ["cars"]}),
)
OWN = "airflow.contexture."


@dataclass
class ObservedRuns:
    """Some runs, their outcome, and what the collectors received about them."""

    broker: str
    kafka: str
    runs: dict[str, DagRun]
    sent: Manifest
    size: int
    lineage: list[dict[str, Any]]
    statsd: dict[str, list[MetricValue]]
    open_telemetry: list[MetricValue]
    are_deltas: set[bool]

    def events(self, run: str, task: str | None = None) -> list[dict[str, Any]]:
        """Returns the events of a task of a run, in order; of the run itself without a task."""
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


def collector_variables(lineage: LineageCollector, statsd: StatsdServer) -> dict[str, str]:
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


def observe_runs(
    platform: Installation, lineage: LineageCollector, statsd: StatsdServer, otel: OpenTelemetryCollector
) -> ObservedRuns:
    """Makes the runs in order, the last one with the other kind of metrics."""
    servers = add_connections(platform)
    platform.stack.client.await_dags([dag for _, dag, _ in RUNS], seconds=WAIT_SECONDS)
    runs: dict[str, DagRun] = {}
    metrics: dict[str, list[MetricValue]] = {}
    for name, dag, conf in RUNS:
        before = len(statsd.values)
        runs[name] = finish_run(platform, lineage, dag, conf)
        statsd.catch_up()
        metrics[name] = _own(statsd.values[before:])
    [sent] = platform.published("cars")
    values = [*read_committed(platform.stack.kafka_settings(), [TOPIC])]
    platform.stack.airflow.kill("scheduler")
    platform.stack.airflow.start_again("scheduler", **_by_open_telemetry(otel))
    runs["again"] = finish_run(platform, lineage, CARS, {"mode": "full"})
    # A process sends its metrics when it ends, after its task has ended.
    until(
        lambda: {"run_lag_seconds", "send_duration"} <= {each.name.removeprefix(OWN) for each in otel.values} or None,
        "metrics",
        WAIT_SECONDS,
    )
    until(lambda: sum_of(otel.values, "records_sent") >= sent.records or None, "metrics of all shards", WAIT_SECONDS)
    return ObservedRuns(
        broker=platform.stack.broker.url,
        kafka=servers,
        runs=runs,
        sent=sent,
        size=sum(len(record.key or b"") + len(record.value or b"") for record in values),
        lineage=list(lineage.events),
        statsd=metrics,
        open_telemetry=_own(otel.values),
        are_deltas=set(otel.are_deltas),
    )


def add_connections(platform: Installation) -> str:
    """Puts connections into Airflow's database; returns Kafka's address."""
    address = httpx.URL(platform.stack.broker.url)
    extra = platform.stack.kafka.client_settings()
    headers = json.dumps({"headers": {"X-Auth-Token": SECRET}})
    broker = {"conn_type": "http", "schema": "http", "host": address.host, "port": address.port, "extra": headers}
    kafka = {"conn_type": "kafka", "extra": json.dumps(extra)}
    for name, fields in (("broker_in_database", broker), ("kafka_in_database", kafka)):
        answer = platform.ask("POST", "/api/v2/connections", {"connection_id": name, **fields})
        assert answer.status_code == httpx.codes.CREATED, answer.text
    return str(extra["bootstrap.servers"])


def finish_run(platform: Installation, lineage: LineageCollector, dag: str, conf: dict[str, object]) -> DagRun:
    """Makes a run by hand; returns it when the lineage has the end of all that it began."""
    client = platform.stack.client
    started = client.trigger(dag, conf)
    run = client.await_run(dag, started.run_id, seconds=WAIT_SECONDS)
    assert run.state == "success"
    # A task ends before the event of its end is sent, and the scheduler sends that of the run at any later time.
    until(lambda: _is_complete(of_run(lineage.events, run)) or None, f"end of {dag} in the lineage", WAIT_SECONDS)
    return run


def _is_complete(events: Iterable[dict[str, Any]]) -> bool:
    kinds_by_run: dict[str, set[str]] = defaultdict(set)
    for event in list(events):
        kinds_by_run[event["run"]["runId"]].add(event["eventType"])
    of_tasks = {event["job"]["name"] for event in events if "." in event["job"]["name"]}
    ends = [kinds == {"START", "COMPLETE"} for kinds in kinds_by_run.values()]
    return bool(of_tasks) and len({event["job"]["name"] for event in events}) > len(of_tasks) and all(ends)


def _own(values: Iterable[MetricValue]) -> list[MetricValue]:
    return [each for each in values if each.name.startswith(OWN)]


def sum_of(values: Iterable[MetricValue], name: str, publication: str = "cars") -> float:
    """Returns the sum of the values of a metric of a publication."""
    own = [each for each in values if each.name == OWN + name and dict(each.tags)["publication"] == publication]
    return sum(each.value for each in own)
