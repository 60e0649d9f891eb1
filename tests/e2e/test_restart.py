"""What happens to publications whose files change while everything is stopped, and to intervals sent again later.

One installation for all tests of this file: started, stopped, edited, started again on the same data.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contexture.kafka import read_committed
from contexture.storage.manifests import Manifest
from contexture_sandbox.airflow.client import DagRun
from contexture_sandbox.demo.comparison import Comparison, compare
from e2e.installation import PATIENCE_SECONDS, Installation, cron_of_minutes, installation_below, until, write

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

ENTITIES = 60
RESYNC = "resync__"
CARS = """\
name: cars
source: {kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car]}
topics: {data_model: dm-by-service-path}
resync: {on_startup: pending, on_config_change: full}
"""
HISTORY = """\
name: history
schedule: null
source: {kind: ngsi, connection: context_broker, service: city, service_path: /lighting, detect_deletions: false}
topics: {data_model: dm-by-service-path, keep: history}
resync: {on_startup: none, on_config_change: full}
"""
SILENT = """\
name: NAME
source: {kind: ngsi, connection: context_broker, service: city, service_path: /mobility}
resync: {on_startup: none, on_config_change: full}
"""
ADDED = """\
name: added
source: {kind: ngsi, connection: context_broker, service: vehicles, service_path: /2wheels}
topics: {data_model: dm-by-service-path}
resync: {on_startup: full}
"""

FRESH = """\
name: fresh
schedule: "0 0 1 1 *"
source: {kind: ngsi, connection: context_broker, service: city, service_path: /mobility}
topics: {data_model: dm-by-service-path}
resync: {on_startup: full}
"""
"""The last interval of its schedule is over, so Airflow starts a run beside the one of the start."""


@dataclass
class Story:
    """What was seen of two starts."""

    platform: Installation
    first_load: datetime
    resynchronised: DagRun
    cars: list[DagRun] = field(default_factory=list)
    cars_settled: str = ""
    requested_changes: list[list[str]] = field(default_factory=list)
    added: DagRun | None = None
    fresh: list[DagRun] = field(default_factory=list)
    replayed: DagRun | None = None
    refused: DagRun | None = None
    refused_stage: str = ""
    comparisons: dict[str, Comparison] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Two starts of one installation; they run once for all tests."""
    folder = tmp_path_factory.mktemp("restart")
    files = {"cars": CARS, "history": HISTORY} | {name: SILENT.replace("NAME", name) for name in ("removed", "broken")}
    with installation_below(folder, entities=ENTITIES, **files) as platform:
        first_start(platform)
        platform.stop()
        first_load = platform.published("history")[0].received_from
        assert first_load is not None
        edit(platform.publications, first_load)
        platform.start()
        yield second_start(platform, first_load)


def first_start(platform: Installation) -> None:
    """Loads cars by their start-up policy and history by hand."""
    platform.stack.client.await_dags(["publish_cars", "publish_history", "resynchronise"])
    run = platform.stack.client.trigger("publish_history")
    assert platform.finished("publish_cars", number=1).state == "success"
    assert platform.stack.client.await_run(run.dag_id, run.run_id, seconds=PATIENCE_SECONDS).state == "success"


def edit(publications: Path, first_load: datetime) -> None:
    """What is done to the files while nothing runs."""
    write(publications, cars=CARS.replace("dm-by-service-path", "dm-by-service"), added=ADDED, fresh=FRESH)
    # With a schedule alone nothing is sent again. The minute of the first load is over when Airflow looks, and not the
    # latest, which it would run by itself.
    time.sleep(max(0.0, (minute(first_load) + timedelta(minutes=2) - datetime.now(UTC)).total_seconds()))
    write(publications, history=HISTORY.replace("null", f'"{cron_of_minutes(first_load, 3)}"'))
    write(publications, broken="name: broken\nsource: {kind: ngsi, conection: context_broker}\n")
    (publications / "removed.yaml").unlink()


def second_start(platform: Installation, first_load: datetime) -> Story:
    """Watches what the start does by itself, then sends two intervals again."""
    story = Story(platform, first_load, platform.finished("resynchronise", number=2))
    story.cars = [platform.finished("publish_cars", number=number) for number in (1, 2)]
    story.requested_changes = [
        [change["publication"] for change in event["extra"]["payload"]["config_changed"]]
        for event in platform.asset_events("resync_requested")
    ]
    story.cars_settled = platform.log(story.cars[1], "settle")
    story.added = platform.finished("publish_added", number=1)
    story.fresh = [platform.finished("publish_fresh", number=number) for number in (1, 2)]
    # Now, when no run writes to the database: SQLite refuses a writer whose reading is older than another's writing.
    backfill_by_command_line(platform, minute(first_load))
    story.replayed = platform.finished("publish_history", prefix="backfill__", number=1)
    # The minute after it has a run already, one that read the source in another minute.
    scheduled = platform.finished("publish_history", prefix="scheduled__", number=1)
    backfill_as_the_ui_does(platform, minute(first_load) + timedelta(minutes=1))
    story.refused = until(
        lambda: as_backfill(platform, scheduled), "end of the scheduled run as a backfill", PATIENCE_SECONDS
    )
    story.refused_stage = platform.log(story.refused, "stage", try_number=2)
    for name in ("cars", "added", "history"):
        story.comparisons[name] = compare(platform.storage, name, platform.stack.kafka.client_settings())
    return story


def backfill_by_command_line(platform: Installation, at: datetime) -> None:
    """As the how-to has it, until Airflow takes it.

    Airflow's command line reads, then writes, in one transaction. Where the scheduler writes to the same SQLite file in
    between, SQLite refuses the write at once, however long the client would wait: on a slow machine most attempts end
    so. A busy test is no reason to leave it untested: it is tried for as long as anything else here.
    """
    day = f"{at:%Y-%m-%dT%H:%M}"
    words = ("--dag-id", "publish_history", "--from-date", day, "--to-date", day)
    command = ("create", *words, "--reprocess-behavior", "completed", "--max-active-runs", "1")

    def created() -> bool | None:
        try:
            platform.airflow("backfill", *command)
        except AssertionError as refused:
            if "Another backfill is running" in str(refused):
                # What an attempt has begun, and could not remove when its runs were refused.
                cancel_backfills(platform)
            elif "database is locked" not in str(refused):
                raise
            return None
        return True

    until(created, "backfill by the command line: SQLite was locked at each attempt", PATIENCE_SECONDS)


def cancel_backfills(platform: Installation) -> None:
    """Cancels the backfills that are under way."""
    for each in platform.ask("GET", "/api/v2/backfills?dag_id=publish_history").json()["backfills"]:
        if each["completed_at"] is None:
            platform.ask("PUT", f"/api/v2/backfills/{each['id']}/cancel")


def backfill_as_the_ui_does(platform: Installation, at: datetime) -> None:
    """The request of Airflow's page, once the backfill before it is over."""
    body = {
        "dag_id": "publish_history",
        "dag_run_conf": None,
        "from_date": f"{at:%Y-%m-%dT%H:%M}:00.000Z",
        "to_date": f"{at:%Y-%m-%dT%H:%M}:00.000Z",
        "max_active_runs": 1,
        "reprocess_behavior": "completed",
        "run_backwards": False,
        "run_on_latest_version": True,
    }

    def accepted() -> bool | None:
        answer = platform.ask("POST", "/api/v2/backfills", body)
        # 409: Airflow takes one backfill of a DAG at a time, and closes it some time after its last run. 503: its
        # scheduler had locked SQLite.
        assert answer.status_code in {200, 409, 503}, answer.text
        return True if answer.status_code == 200 else None

    until(accepted, "second backfill", PATIENCE_SECONDS)


def as_backfill(platform: Installation, known: DagRun) -> DagRun | None:
    """A run that Airflow has made a backfill of, when that has come to its end."""
    run = platform.stack.client.run(known.dag_id, known.run_id)
    return run if run.run_type == "backfill" and run.finished else None


def minute(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(second=0, microsecond=0)


def full_outboxes(story: Story, publication: str) -> list[Manifest]:
    return [manifest for manifest in story.platform.published(publication) if manifest.mode == "full"]


def test_a_publication_that_was_changed_while_everything_was_stopped_is_sent_again_in_full(story: Story) -> None:
    first, second = story.cars
    assert (first.state, second.state) == ("success", "success")
    assert second.run_id.startswith(f"{RESYNC}asset_triggered__")
    assert "full run 2: the publication has changed" in story.cars_settled
    before, after = full_outboxes(story, "cars")
    assert after.fingerprint != before.fingerprint
    assert after.records == before.records > 0


def test_each_start_requests_one_resync_and_the_second_names_the_change(story: Story) -> None:
    assert story.requested_changes == [[], ["cars"]]


def test_it_is_sent_again_once(story: Story) -> None:
    assert len(story.platform.runs("publish_cars")) == 2


def test_a_publication_whose_schedule_alone_was_edited_is_not_resynchronised(story: Story) -> None:
    assert story.platform.runs("publish_history", RESYNC) == []
    assert len(full_outboxes(story, "history")) == 1


def test_a_file_that_was_added_is_loaded_by_its_start_up_policy(story: Story) -> None:
    assert story.added is not None
    assert story.added.run_id.startswith(RESYNC)
    assert story.added.state == "success"
    (loaded,) = full_outboxes(story, "added")
    assert loaded.records > 0


def test_a_publication_that_its_schedule_and_the_start_both_run_is_loaded_once(story: Story) -> None:
    assert {run.run_id.split("__")[0] for run in story.fresh} == {"scheduled", "resync"}
    assert {run.state for run in story.fresh} == {"success"}
    loaded, again = story.platform.published("fresh")
    assert (loaded.mode, loaded.records > 0) == ("full", True)
    assert (again.mode, again.records) == ("changes", 0)


def test_a_file_that_was_removed_starts_nothing(story: Story) -> None:
    assert story.resynchronised.state == "success"
    assert story.platform.runs("publish_removed") == []


def test_a_file_that_was_broken_is_shown_with_its_line_and_starts_nothing(story: Story) -> None:
    (error,) = story.platform.import_errors()
    assert "broken.yaml:2" in error
    assert "conection" in error
    assert "connection" in error
    assert story.platform.runs("publish_broken") == []


def test_what_was_sent_over_both_starts_is_in_kafka_once(story: Story) -> None:
    assert {name: found.equal for name, found in story.comparisons.items()} == {
        "cars": True,
        "added": True,
        "history": True,
    }


def test_an_archived_interval_is_sent_again_by_airflows_command_line(story: Story) -> None:
    assert story.replayed is not None
    assert (story.replayed.run_type, story.replayed.state) == ("backfill", "success")
    first, *_ = story.platform.published("history")
    (replay,) = [manifest for manifest in story.platform.published("history") if manifest.mode == "backfill"]
    assert replay.records == first.records > 0
    marks = Counter(
        dict(record.headers).get("contexture-backfill")
        for record in read_committed(story.platform.stack.kafka_settings(), topics_of(story, first))
    )
    assert marks[minute(story.first_load).isoformat().encode()] == first.records


def test_an_interval_without_archive_fails_says_so_and_sends_nothing(story: Story) -> None:
    assert story.refused is not None
    assert (story.refused.run_type, story.refused.state) == ("backfill", "failed")
    assert "nothing of history is archived between" in story.refused_stage
    assert "to send what the source holds now, run the publication in mode full instead" in story.refused_stage
    assert len([manifest for manifest in story.platform.published("history") if manifest.mode == "backfill"]) == 1


def topics_of(story: Story, manifest: Manifest) -> set[str]:

    return set(story.platform.storage.publication(manifest.publication).outbox(manifest.outbox).topic_counts())
