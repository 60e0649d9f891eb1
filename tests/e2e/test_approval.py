"""A run whose source has shrunk beyond its limit waits in a live Airflow until a person answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from contexture.kafka import read_committed
from contexture.monitoring import RunTables
from contexture_sandbox.airflow.client import DagRun
from e2e.installation import PATIENCE_SECONDS, Installation, installation_below, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(2400)]

ENTITIES = 60
LEFT = 2
CARS = """\
name: cars
schedule: null
source:
  {kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car],
   shrink_limit: {share: 0.1, count: 1, beyond: ask, answer_hours: 1}}
topics: {naming: fixed, topics: [cars]}
resync: {on_startup: none}
"""
HEADERS = {"Fiware-Service": "vehicles", "Fiware-ServicePath": "/4wheels"}


@dataclass
class Story:
    """What was seen of the run that waits."""

    platform: Installation
    loaded: int
    question: dict[str, Any]
    slots_while_waiting: int
    status: dict[str, Any]
    answered: int
    ended: DagRun


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Most cars go; the second run that misses them asks."""
    with installation_below(tmp_path_factory.mktemp("approval"), entities=ENTITIES, cars=CARS) as platform:
        platform.stack.client.await_dags(["publish_cars"])
        loaded = len(live(platform)) if run(platform) else 0
        remove_cars(platform)
        run(platform)
        yield asked(platform, loaded)


def asked(platform: Installation, loaded: int) -> Story:
    """Starts the run that asks, and answers as Airflow's page does."""
    client = platform.stack.client
    waiting = client.trigger("publish_cars")
    path = f"/api/v2/dags/publish_cars/dagRuns/{waiting.run_id}/taskInstances/stage/-1/hitlDetails"
    question = until(lambda: _found(platform, path), "question", PATIENCE_SECONDS)
    until(lambda: _waits(platform, waiting), "waiting task", PATIENCE_SECONDS)
    pools = platform.ask("GET", "/api/v2/pools").json()["pools"]
    slots = sum(pool["occupied_slots"] for pool in pools)
    status = platform.ask("GET", "/contexture/api/status/cars").json()
    body = {"chosen_options": ["Approve"], "params_input": {"reason": "they were sold"}}
    answered = platform.ask("PATCH", path, body).status_code
    ended = client.await_run(waiting.dag_id, waiting.run_id, seconds=PATIENCE_SECONDS)
    return Story(platform, loaded, question, slots, status, answered, ended)


def _found(platform: Installation, path: str) -> dict[str, Any] | None:
    answer = platform.ask("GET", path)
    return dict(answer.json()) if answer.status_code == httpx.codes.OK else None


def _waits(platform: Installation, run: DagRun) -> bool | None:
    tasks = platform.stack.client.tasks(run.dag_id, run.run_id)
    return True if any(task.task_id == "stage" and task.state == "awaiting_input" for task in tasks) else None


def run(platform: Installation) -> bool:
    started = platform.stack.client.trigger("publish_cars")
    ended = platform.stack.client.await_run(started.dag_id, started.run_id, seconds=PATIENCE_SECONDS)
    assert ended.state == "success"
    return True


def remove_cars(platform: Installation) -> None:
    url = f"{platform.stack.broker.url}/v2/entities"
    names = [each["id"] for each in httpx.get(url, headers=HEADERS, params={"type": "car", "limit": 1000}).json()]
    for name in names[LEFT:]:
        httpx.delete(f"{url}/{name}", headers=HEADERS).raise_for_status()


def live(platform: Installation) -> set[bytes]:
    """The keys that a consumer holds a value of."""
    newest = {record.key: record.value for record in read_committed(platform.stack.kafka_settings(), ["cars"])}
    return {key for key, value in newest.items() if key is not None and value is not None}


def test_the_question_says_what_would_be_deleted(story: Story) -> None:
    gone = story.loaded - LEFT
    assert story.question["subject"] == f"cars: {gone} of {story.loaded} would be deleted"
    assert story.question["options"] == ["Approve", "Reject"]
    assert '    ["vehicles","/4wheels",' in story.question["body"]


def test_while_it_waits_it_holds_no_slot(story: Story) -> None:
    assert story.slots_while_waiting == 0


def test_while_it_waits_its_status_says_so(story: Story) -> None:
    assert (story.status["health"], story.status["running"]) == ("waiting for approval", False)
    assert f"{story.loaded - LEFT} of {story.loaded} identities would be deleted" in story.status["reason"]


def test_an_approval_lets_the_run_delete_them(story: Story) -> None:
    assert (story.answered, story.ended.state) == (200, "success")
    assert len(live(story.platform)) == LEFT
    assert story.platform.published("cars")[-1].deletes == story.loaded - LEFT


def test_who_decided_and_why_is_kept(story: Story) -> None:
    store = RunTables.of_home(story.platform.storage.root)
    assert store is not None
    (row,) = store.interventions("cars", limit=5)
    assert row.who == story.platform.stack.settings.login.user
    assert (row.action, row.reason) == ("answer about shrinking", "they were sold")
    assert (row.outcome, row.run_id) == ("approved: the run continues", story.ended.run_id)
