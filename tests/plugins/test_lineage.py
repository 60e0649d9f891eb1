"""Lineage from source to topics: taken by Airflow's OpenLineage provider, sent to a collector over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.providers.openlineage")

from airflow.providers.common.compat.sdk import TaskInstanceState  # noqa: E402
from airflow.providers.openlineage.extractors import ExtractorManager, OperatorLineage  # noqa: E402
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter  # noqa: E402
from airflow.sdk import Asset, BaseOperator  # noqa: E402

from builders.fake_target import FakeTarget  # noqa: E402
from builders.outboxes import NOON, Record, outbox, publication, records  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture.storage.outboxes import Status  # noqa: E402
from contexture_airflow.connections import settings as opening  # noqa: E402
from contexture_airflow.lineage import MOST_TOPICS, kafka_namespace, source_name  # noqa: E402
from contexture_airflow.operators.conclude import ConcludeOperator  # noqa: E402
from contexture_airflow.operators.settle import SettleOperator  # noqa: E402
from fakes.collectors import LineageCollector  # noqa: E402

SetConnection = Callable[..., None]
STAGED = {"publication": "vehicles", "run": "run1", "outbox": "outbox1", "sequence": 1, "records": 3, "shards": [0]}


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_connection: SetConnection) -> Home:
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    broker = {"host": "orion.example.org", "port": 1026, "login": "me", "password": "s3cret"}
    set_connection("context_broker", conn_type="http", schema="http", **broker)
    set_connection("kafka_default", conn_type="kafka", extra={"bootstrap.servers": "b.example.org:9093,a.example.org"})
    return Home(str(tmp_path / "home"))


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[LineageCollector]:
    with LineageCollector() as started:
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", started.transport)
        yield started


def concluded(storage: Home, sequence: int, shards: Sequence[Sequence[Record]], **changes: Any) -> None:
    """An outbox that is in Kafka."""
    manifest = outbox(storage, publication(**changes), sequence, shards)
    for status in ("approved", "concluded"):
        storage.publication(manifest.publication).outboxes.set_status(manifest.outbox, status, reason="test")


def extracted(
    state: TaskInstanceState = TaskInstanceState.SUCCESS, task: BaseOperator | None = None
) -> OperatorLineage:
    """What the provider takes from a task, by default from the last one of a run."""
    task = task or ConcludeOperator(task_id="conclude", staged=STAGED, published=Asset("published"))
    run: Any = SimpleNamespace(run_id="run", dag_id="publish_vehicles")
    task_instance: Any = SimpleNamespace(task_id=task.task_id, dag_id="publish_vehicles", run_id="run")
    return ExtractorManager().extract_metadata(run, task, state, task_instance)


def topics(lineage: OperatorLineage) -> list[tuple[str, int]]:
    """The topics that are named, with their numbers of records."""
    return [(each.name, each.outputFacets["outputStatistics"].rowCount) for each in lineage.outputs]


def test_a_collector_receives_the_source_and_the_topics(storage: Home, collector: LineageCollector) -> None:
    concluded(storage, 1, [[*records("a", "b"), *records("c", topic="vans")]])

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

    [event] = collector.events
    assert [(each["namespace"], each["name"]) for each in event["inputs"]] == [
        ("http://orion.example.org:1026", "vehicles/4wheels")
    ]
    assert [
        (each["namespace"], each["name"], each["outputFacets"]["outputStatistics"]["rowCount"])
        for each in event["outputs"]
    ] == [("kafka://a.example.org:9092", "cars", 2), ("kafka://a.example.org:9092", "vans", 1)]
    assert "s3cret" not in json.dumps(event)


def test_a_run_that_failed_names_no_topics(storage: Home) -> None:
    concluded(storage, 1, [records("a")])

    assert extracted(TaskInstanceState.FAILED).outputs == []


def test_a_run_that_sent_nothing_names_no_topics(storage: Home) -> None:
    concluded(storage, 1, [[]])

    assert (extracted().inputs, extracted().outputs) == ([], [])


@pytest.mark.parametrize("status", ["rejected", "abandoned"])
def test_a_dry_run_or_one_that_was_overtaken_names_no_topics(storage: Home, status: Status) -> None:
    outbox(storage, publication(), 1, [records("a")])
    storage.publication("vehicles").outboxes.set_status("outbox1", status, reason="test")

    # Its last task is skipped, and the provider asks a skipped task as it does one that went well.
    assert (extracted(TaskInstanceState.SKIPPED).inputs, extracted(TaskInstanceState.SKIPPED).outputs) == ([], [])


def test_the_provider_finds_nothing_to_complain_about(storage: Home, caplog: pytest.LogCaptureFixture) -> None:
    concluded(storage, 1, [[]])

    extracted()
    extracted(TaskInstanceState.FAILED)

    assert [record.message for record in caplog.records if "openlineage" in record.name.lower()] == []


def test_the_run_that_finished_what_another_left_names_its_topics(
    storage: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "targets", lambda report: FakeTarget())
    for sequence, rows in ((1, records("a", "b")), (2, [*records("c"), *records("d", topic="vans")])):
        outbox(storage, publication(), sequence, [rows])
        storage.publication("vehicles").outboxes.set_status(f"outbox{sequence}", "approved", reason="test")
    outbox(storage, publication(), 3, [records("e", topic="never")])
    task = SettleOperator(task_id="settle", publication=publication())

    assert topics(extracted(TaskInstanceState.RUNNING, task)) == []
    run: Any = SimpleNamespace(run_id="later", run_type="manual", data_interval_start=NOON, data_interval_end=NOON)
    task.execute({"params": {"mode": "auto"}, "dag_run": run})

    assert topics(extracted(task=task)) == [("cars", 3), ("vans", 1)]
    assert [each.name for each in extracted(task=task).inputs] == ["vehicles/4wheels"]


def test_no_more_topics_than_an_event_can_carry_are_named(storage: Home) -> None:
    rows = [record for number in range(MOST_TOPICS + 9) for record in records("a", topic=f"topic{number:04}")]
    concluded(storage, 1, [[*rows, *records("b", topic="topic0505")]])

    outputs = extracted().outputs

    assert len(outputs) == MOST_TOPICS
    assert outputs[0].name == "topic0505", "the one with most records comes first"


def test_what_contexture_itself_did_is_a_source_of_its_own() -> None:
    events = publication(name="operations", source={"kind": "operations"}, topics={"topics": ["events"]}, batches={})

    assert source_name(events) == ("contexture", "operations")


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
