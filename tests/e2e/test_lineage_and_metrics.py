"""What a live Airflow sends to collectors outside: lineage by OpenLineage, metrics by StatsD and then by OpenTelemetry.

One installation for all tests of this file; its scheduler is started a second time for the other kind of metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.installation import installation
from e2e.observed_runs import (
    CARS,
    FILES,
    OWN,
    SECRET,
    TOPIC,
    ObservedRuns,
    collector_variables,
    observe_runs,
    of_run,
    sum_of,
)
from fakes.collectors import LineageCollector, OpenTelemetryCollector, StatsdServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600)]

METRICS_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
COUNTED = (
    "records_sent",
    "bytes_sent",
    "transactions_sent",
    "read",
    "quarantined",
    "upserts",
    "deletes",
    "dead_letters",
    "runs_concluded",
    "pending_outboxes",
)


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedRuns]:
    """Runs of all kinds, sent to collectors."""
    folder = tmp_path_factory.mktemp("observed")
    publications = folder / "publications"
    publications.mkdir()
    for name, text in FILES.items():
        (publications / f"{name}.yaml").write_text(text)
    with LineageCollector() as lineage, StatsdServer() as statsd, OpenTelemetryCollector() as otel:
        variables = collector_variables(lineage, statsd)
        with installation(publications, folder / "home", entities=60, variables=variables) as platform:
            yield observe_runs(platform, lineage, statsd, otel)


def test_lineage_has_every_task_of_a_run_from_its_start_to_its_end(observed: ObservedRuns) -> None:
    for run, dag_run in observed.runs.items():
        events = [(event["run"]["runId"], event["eventType"]) for event in of_run(observed.lineage, dag_run)]
        started = {identity for identity, kind in events if kind == "START"}
        assert sorted(events) == sorted((identity, kind) for identity in started for kind in ("START", "COMPLETE")), run
    tasks = [
        event["job"]["name"]
        for event in of_run(observed.lineage, observed.runs["full"])
        if event["eventType"] == "START"
    ]
    assert sorted(tasks) == [
        CARS,
        *(f"{CARS}.{task}" for task in ("conclude", "publish", "publish", "quality_gate", "settle", "stage")),
    ]


def test_tasks_belong_to_their_run(observed: ObservedRuns) -> None:
    run, _ = observed.events("full")
    for event in observed.events("full", "conclude"):
        parent = event["run"]["facets"]["parent"]
        assert parent["run"]["runId"] == run["run"]["runId"]
        assert (parent["job"]["namespace"], parent["job"]["name"]) == ("default", CARS)


def test_the_end_of_the_last_task_names_the_source_and_the_topics(observed: ObservedRuns) -> None:
    assert observed.sent.records == 15
    assert observed.named("full") == {
        f"{CARS}.conclude": ([(observed.broker, "vehicles/4wheels")], {(f"kafka://{observed.kafka}", TOPIC): 15})
    }
    assert [event["eventType"] for event in observed.events("full", "conclude") if event.get("outputs")] == ["COMPLETE"]


def test_events_of_contexture_itself_have_a_source_too(observed: ObservedRuns) -> None:
    [(inputs, outputs)] = observed.named("events").values()
    assert inputs == [("contexture", "operations")]
    assert [name for _, name in outputs] == ["contexture.operations"]


def test_who_sends_nothing_names_nothing(observed: ObservedRuns) -> None:
    assert observed.named("verified") == {}


def test_lineage_has_no_secret_of_a_connection(observed: ObservedRuns) -> None:
    assert SECRET not in json.dumps(observed.lineage)


def test_the_metrics_are_those_of_the_reference(observed: ObservedRuns) -> None:
    kinds = {(each.name.removeprefix("airflow."), each.kind) for values in observed.statsd.values() for each in values}
    listed = set(re.findall(r"^\| `(contexture\.\w+)` \| (\w+) \|", METRICS_PAGE.read_text(), re.MULTILINE))
    # Nothing failed here.
    assert kinds == listed - {("contexture.send_failures", "counter")}


def test_the_values_of_a_run_are_what_it_did(observed: ObservedRuns) -> None:
    values = observed.statsd["full"]
    assert {name: sum_of(values, name) for name in COUNTED} == _counted(observed)
    assert sum_of(values, "send_duration") > 0
    assert 0 < sum_of(values, "run_lag_seconds") < observed.runs["full"].seconds + 60
    assert ("mode", "full") in next(each.tags for each in values if each.name == f"{OWN}runs_concluded")


def test_open_telemetry_gets_the_same(observed: ObservedRuns) -> None:
    values = observed.open_telemetry
    assert observed.are_deltas == {True}
    assert {name: sum_of(values, name) for name in COUNTED} == _counted(observed)


def _counted(observed: ObservedRuns) -> dict[str, float]:
    sent = {
        "records_sent": observed.sent.records,
        "bytes_sent": observed.size,
        "transactions_sent": observed.sent.transactions,
    }
    counted = {"read": 15, "quarantined": 0, "upserts": 15, "deletes": 0, "dead_letters": 0, "runs_concluded": 1}
    return {**sent, **counted, "pending_outboxes": 0}
