"""What a live Airflow tells collectors outside: lineage by OpenLineage, metrics by StatsD and then by OpenTelemetry.

One installation for all tests of this file; its scheduler is started a second time for the other kind of metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.installation import installation
from e2e.told import CARS, FILES, OWN, SECRET, TOPIC, Story, lived, of_run, sum_of, told_to
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
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Runs of all kinds, told to collectors."""
    folder = tmp_path_factory.mktemp("told")
    publications = folder / "publications"
    publications.mkdir()
    for name, text in FILES.items():
        (publications / f"{name}.yaml").write_text(text)
    with LineageCollector() as lineage, StatsdServer() as statsd, OpenTelemetryCollector() as otel:
        variables = told_to(lineage, statsd)
        with installation(publications, folder / "home", entities=60, variables=variables) as platform:
            yield lived(platform, lineage, statsd, otel)


def test_every_task_of_a_run_is_told_from_its_start_to_its_end(story: Story) -> None:
    for run, dag_run in story.runs.items():
        told = [(event["run"]["runId"], event["eventType"]) for event in of_run(story.lineage, dag_run)]
        started = {identity for identity, kind in told if kind == "START"}
        assert sorted(told) == sorted((identity, kind) for identity in started for kind in ("START", "COMPLETE")), run
    tasks = [
        event["job"]["name"] for event in of_run(story.lineage, story.runs["full"]) if event["eventType"] == "START"
    ]
    assert sorted(tasks) == [
        CARS,
        *(f"{CARS}.{task}" for task in ("conclude", "publish", "publish", "quality_gate", "settle", "stage")),
    ]


def test_tasks_belong_to_their_run(story: Story) -> None:
    run, _ = story.events("full")
    for event in story.events("full", "conclude"):
        parent = event["run"]["facets"]["parent"]
        assert parent["run"]["runId"] == run["run"]["runId"]
        assert (parent["job"]["namespace"], parent["job"]["name"]) == ("default", CARS)


def test_the_end_of_the_last_task_names_the_source_and_the_topics(story: Story) -> None:
    assert story.sent.records == 15
    assert story.named("full") == {
        f"{CARS}.conclude": ([(story.broker, "vehicles/4wheels")], {(f"kafka://{story.kafka}", TOPIC): 15})
    }
    assert [event["eventType"] for event in story.events("full", "conclude") if event.get("outputs")] == ["COMPLETE"]


def test_events_of_contexture_itself_have_a_source_too(story: Story) -> None:
    [(inputs, outputs)] = story.named("events").values()
    assert inputs == [("contexture", "operations")]
    assert [name for _, name in outputs] == ["contexture.operations"]


def test_who_sends_nothing_names_nothing(story: Story) -> None:
    assert story.named("verified") == {}


def test_no_secret_of_a_connection_is_told(story: Story) -> None:
    assert SECRET not in json.dumps(story.lineage)


def test_the_metrics_are_those_of_the_reference(story: Story) -> None:
    kinds = {(each.name.removeprefix("airflow."), each.kind) for told in story.statsd.values() for each in told}
    listed = set(re.findall(r"^\| `(contexture\.\w+)` \| (\w+) \|", METRICS_PAGE.read_text(), re.MULTILINE))
    # Nothing failed here.
    assert kinds == listed - {("contexture.send_failures", "counter")}


def test_the_values_of_a_run_are_what_it_did(story: Story) -> None:
    told = story.statsd["full"]
    assert {name: sum_of(told, name) for name in COUNTED} == _counted(story)
    assert sum_of(told, "send_duration") > 0
    assert 0 < sum_of(told, "run_lag_seconds") < story.runs["full"].seconds + 60
    assert ("mode", "full") in next(each.tags for each in told if each.name == f"{OWN}runs_concluded")


def test_open_telemetry_gets_the_same(story: Story) -> None:
    told = story.open_telemetry
    assert story.are_deltas == {True}
    assert {name: sum_of(told, name) for name in COUNTED} == _counted(story)


def _counted(story: Story) -> dict[str, float]:
    sent = {"records_sent": story.sent.records, "bytes_sent": story.size, "transactions_sent": story.sent.transactions}
    counted = {"read": 15, "quarantined": 0, "upserts": 15, "deletes": 0, "dead_letters": 0, "runs_concluded": 1}
    return {**sent, **counted, "pending_outboxes": 0}
