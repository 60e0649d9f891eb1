"""Lineage from source to topics: taken by Airflow's OpenLineage provider, told to a collector over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.providers.openlineage")

from airflow.providers.common.compat.sdk import TaskInstanceState  # noqa: E402
from airflow.providers.openlineage.extractors import ExtractorManager, OperatorLineage  # noqa: E402
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter  # noqa: E402
from airflow.sdk import Asset  # noqa: E402

from builders.outboxes import outbox, publication, records  # noqa: E402
from contexture.outbox.storage import Storage  # noqa: E402
from contexture_airflow.lineage import MOST_TOPICS, kafka_namespace, source_name  # noqa: E402
from contexture_airflow.operators.conclude import ConcludeOperator  # noqa: E402

SetConnection = Callable[..., None]
STAGED = {"publication": "vehicles", "run": "run1", "outbox": "outbox1", "sequence": 1, "records": 3, "shards": [0]}


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_connection: SetConnection) -> Storage:
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    broker = {"host": "orion.example.org", "port": 1026, "login": "me", "password": "s3cret"}
    set_connection("context_broker", conn_type="http", schema="http", **broker)
    set_connection("kafka_default", conn_type="kafka", extra={"bootstrap.servers": "b.example.org:9093,a.example.org"})
    return Storage(str(tmp_path / "home"))


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The events that a collector of lineage received."""
    events: list[dict[str, Any]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silent."""

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        transport = {"type": "http", "url": f"http://127.0.0.1:{server.server_port}"}
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
        yield events
        server.shutdown()
        thread.join()


def extracted(state: TaskInstanceState = TaskInstanceState.SUCCESS) -> OperatorLineage:
    """What the provider takes from the last task of a run."""
    task = ConcludeOperator(task_id="conclude", staged=STAGED, published=Asset("published"))
    run: Any = SimpleNamespace(run_id="run", dag_id="publish_vehicles")
    task_instance: Any = SimpleNamespace(task_id="conclude", dag_id="publish_vehicles", run_id="run")
    return ExtractorManager().extract_metadata(run, task, state, task_instance)


def test_a_collector_receives_the_source_and_the_topics(storage: Storage, collected: list[dict[str, Any]]) -> None:
    outbox(storage, publication(), 1, [[*records("a", "b"), *records("c", topic="vans")]])

    lineage = extracted()
    OpenLineageAdapter().complete_task(
        run_id="01890000-0000-7000-8000-000000000000",
        job_name="publish_vehicles.conclude",
        end_time="2026-03-01T12:00:00Z",
        task=lineage,
        nominal_start_time=None,
        nominal_end_time=None,
        owners=[],
        tags=[],
        job_description=None,
    )

    [event] = collected
    assert [(each["namespace"], each["name"]) for each in event["inputs"]] == [
        ("http://orion.example.org:1026", "vehicles/4wheels")
    ]
    assert [
        (each["namespace"], each["name"], each["outputFacets"]["outputStatistics"]["rowCount"])
        for each in event["outputs"]
    ] == [("kafka://a.example.org:9092", "cars", 2), ("kafka://a.example.org:9092", "vans", 1)]
    assert "s3cret" not in json.dumps(event)


def test_a_run_that_failed_tells_of_no_topics(storage: Storage) -> None:
    outbox(storage, publication(), 1, [records("a")])

    assert extracted(TaskInstanceState.FAILED).outputs == []


def test_a_run_that_sent_nothing_tells_of_no_topics(storage: Storage) -> None:
    outbox(storage, publication(), 1, [[]])

    assert extracted().outputs == []


def test_no_more_topics_than_an_event_can_carry_are_told(storage: Storage) -> None:
    rows = [record for number in range(MOST_TOPICS + 9) for record in records("a", topic=f"topic{number:04}")]
    outbox(storage, publication(), 1, [[*rows, *records("b", topic="topic0505")]])

    outputs = extracted().outputs

    assert len(outputs) == MOST_TOPICS
    assert outputs[0].name == "topic0505", "the one with most records comes first"


def test_a_registry_is_named_by_its_address(set_connection: SetConnection) -> None:
    set_connection("registry", conn_type="https", schema="https", host="registry.example.org/FusionRegistry")
    structures = publication(
        source={"kind": "sdmx", "connection": "registry", "select": ["*=BIS:*(*)"]},
        topics={"naming": "fixed", "topics": ["FOO"]},
    )

    assert source_name(structures) == ("https://registry.example.org", "FusionRegistry/structure")


@pytest.mark.parametrize(
    ("servers", "namespace"),
    [
        ("kafka:9092", "kafka://kafka:9092"),
        ("b:1, a:2", "kafka://a:2"),
        ("SASL_SSL://kafka:9093", "kafka://kafka:9093"),
        ("kafka", "kafka://kafka:9092"),
    ],
)
def test_a_cluster_is_named_by_its_first_broker(servers: str, namespace: str) -> None:
    assert kafka_namespace(servers) == namespace
