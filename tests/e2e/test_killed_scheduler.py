"""The scheduler is killed with all its tasks (`kill -9`) while two of them send, and started again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from contexture.storage.manifests import Manifest
from contexture_sandbox.airflow.client import DagRun, TaskInstance
from contexture_sandbox.demo.comparison import Comparison, compare
from contexture_sandbox.demo.outage import LedgerWatch, Seen
from e2e.installation import Installation, installation_below

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600)]

DAG = "publish_city"
ENTITIES = 900
PATIENCE_SECONDS = 1500.0
SHIPPED = Path(__file__).parents[2] / "include" / "publications" / "city.yaml"
# Airflow waits five minutes for a task that no longer says that it lives; a test need not.
NOTICED_EARLIER = {"AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30"}


@dataclass
class Story:
    """What was seen of a run whose scheduler was killed."""

    seen: Seen
    run: DagRun
    tasks: list[TaskInstance]
    sent: list[Manifest]
    comparison: Comparison


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A first load, then a full run whose scheduler ends when the first transaction is committed."""
    # Two entities in a transaction: a send that takes seconds.
    city = re.sub(r"(?m)^schedule:.*$", "schedule: null", SHIPPED.read_text())
    city = city.replace("batch_size: 10", "batch_size: 2")
    with installation_below(tmp_path_factory.mktemp("killed-scheduler"), entities=ENTITIES, city=city) as platform:
        client = platform.stack.client
        client.await_dags([DAG], seconds=PATIENCE_SECONDS)
        first = client.trigger(DAG, {"mode": "full"})
        assert client.await_run(DAG, first.run_id, seconds=PATIENCE_SECONDS).state == "success"
        watch = LedgerWatch(platform.stack.kafka_settings(), "city")
        yield killed(platform, watch)


def killed(platform: Installation, watch: LedgerWatch) -> Story:
    """Kills a full run in mid-send, together with the scheduler that started it."""
    client = platform.stack.client
    run = client.trigger(DAG, {"mode": "full"})
    seen = watch.await_first_transaction(timeout_seconds=PATIENCE_SECONDS)
    platform.stack.airflow.kill("scheduler")
    platform.stack.airflow.start_again("scheduler", **NOTICED_EARLIER)
    ended = client.await_run(DAG, run.run_id, seconds=PATIENCE_SECONDS)
    tasks = client.tasks(DAG, run.run_id)
    found = compare(platform.storage, "city", platform.stack.kafka.client_settings())
    return Story(seen, ended, tasks, platform.published("city"), found)


def test_it_was_killed_in_mid_send(story: Story) -> None:
    *_, interrupted = story.sent
    assert story.seen.outbox == interrupted.outbox
    assert 0 < story.seen.position < interrupted.records


def test_the_run_comes_to_its_end_by_itself(story: Story) -> None:
    assert story.run.state == "success"
    assert {task.state for task in story.tasks} == {"success"}


def test_every_record_is_in_kafka_once(story: Story) -> None:
    assert (story.comparison.equal, story.comparison.different) == (True, 0)
    # A run of the start-up may lie between: it finds no change.
    assert [manifest.records for manifest in story.sent if manifest.records] == [739, 739]
