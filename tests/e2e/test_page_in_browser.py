"""The Contexture page in a browser: each role logs in, each action goes through the scheduler, attacks stay text.

One installation and one browser for all tests of this file; with CONTEXTURE_SCREENSHOTS=docs/images it makes the
pictures of the documentation too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from urllib.parse import quote

import pytest

from builders.attempts import failed_send
from builders.outboxes import outbox, publication, records
from contexture_sandbox.airflow import Login
from contexture_sandbox.airflow.client import DagRun
from contexture_sandbox.context_broker.entities import SeedEntity
from e2e.browser import Browser, browser, missing
from e2e.installation import PATIENCE_SECONDS, Installation, cron_of_minutes, installation, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser"),
]

ATTACK = "\"><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
VIEWER, OPERATOR = Login("vera", role="viewer"), Login("olaf", role="op")
DAG = "publish_cars"
CARS = """\
name: cars
description: Cars of the 4wheels fleet, one topic per car
schedule: null
source:
  kind: ngsi
  connection: context_broker
  service: vehicles
  service_path: /4wheels
  types: [car]
  shrink_limit: {share: 0.0, count: 0}
resync: {on_startup: none, on_config_change: none}
quality: {max_quarantined_share: 1.0}
"""


@dataclass
class Story:
    """What was seen."""

    platform: Installation
    texts: dict[str, str] = field(default_factory=dict)
    titles: list[str] = field(default_factory=list)
    grounds: dict[str, str] = field(default_factory=dict)
    runs: dict[str, DagRun] = field(default_factory=dict)
    paused: list[bool] = field(default_factory=list)
    viewer: dict[str, int] = field(default_factory=dict)
    outboxes: dict[str, str] = field(default_factory=dict)
    owed: str | None = None


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A day of an operator; it runs once for all tests."""
    folder = tmp_path_factory.mktemp("page")
    publications = folder / "publications"
    publications.mkdir()
    (publications / "cars.yaml").write_text(CARS)
    with installation(publications, folder / "home", entities=60, others=(VIEWER, OPERATOR)) as platform:
        broken = {"id": f"car{ATTACK}", "type": "car", "speed": {"type": "Number", "value": "12"}}
        platform.stack.broker.load([SeedEntity("vehicles", "/4wheels", broken)])
        platform.stack.client.await_dags([DAG, "resynchronise"])
        with browser(platform.stack.settings.url, folder) as window:
            yield act_on_everything(Story(platform), window)


def act_on_everything(story: Story, window: Browser) -> Story:
    """Opens each page and performs each action once."""
    look_on(story, window)
    window.log_in(OPERATOR)
    story.runs["run"] = acted(story, window, "Run now", "first load")
    look_at_data(story, window)
    suspend_and_test(story, window)
    give_up_outboxes(story, window)
    remove_cars(story)
    story.runs["resynchronise"] = acted(story, window, "Resynchronise in full", "topics were lost")
    window.open("cars", "Quarantine")
    window.follow("Try again")
    window.picture("retry-quarantine")
    story.runs["retry-quarantine"] = confirmed(story, window, "the rule was too strict")
    story.runs["stopped"] = acted(story, window, "Run now", "are they really gone?")
    window.open("cars", "See them, and confirm")
    story.texts["shrink"] = window.text
    window.picture("confirm-shrink")
    story.runs["confirm-shrink"] = confirmed(story, window, "they were sold")
    look_back(story, window)
    follow_buttons(story, window)
    administer(story, window)
    return story


def look_on(story: Story, window: Browser) -> None:
    """What a viewer sees, and may not do."""
    window.log_in(VIEWER)
    story.texts["viewer's overview"] = window.text
    window.follow("cars")
    story.texts["viewer's page"] = window.text
    for action in ("run", "suspend", "abandon-outbox"):
        story.viewer[action] = window.post_from_airflow(f"publications/cars/actions/{action}?outbox=")


def look_at_data(story: Story, window: Browser) -> None:
    """The pages about what was read."""
    for part in ("Quarantine", "Samples", "Quality", "Topics"):
        window.open("cars", part)
        story.texts[part] = window.text
        story.titles.append(window.driver.title)
    window.follow("Compare with the brokers")
    story.texts["drift"] = window.await_text("the publication;")
    window.open("cars", "Transactions")
    window.find("input[name=outbox]").send_keys(story.platform.published("cars")[-1].outbox[:12])
    window.press("button", "Filter")
    story.texts["one outbox"] = window.await_text("Show all")


def suspend_and_test(story: Story, window: Browser) -> None:
    """Actions that start no run."""
    for action in ("Suspend", "Resume"):
        window.open("cars", action)
        window.confirm("maintenance")
        window.await_text(f"{action}: done.")
        story.paused.append(story.platform.ask("GET", f"/api/v2/dags/{DAG}").json()["is_paused"])
    for connection in ("context_broker", "kafka_default"):
        window.open("cars", f"Test {connection}")
        window.confirm("before the night")
        story.texts[connection] = window.await_text("The test has ended.")
    window.picture("test-connection")
    window.open("cars", "Verify the replica")
    window.confirm("weekly look")
    window.await_text("Verify the replica: done.")
    story.runs["verify"] = story.platform.finished("verify_replica", number=1)


def give_up_outboxes(story: Story, window: Browser) -> None:
    """An outbox whose sends were used up is sent again, and given up as that helps nothing."""
    window.open("cars")
    window.picture("publication")
    storage, name = story.platform.storage, "unsendable"
    outbox(storage, publication(name="cars"), 90, [records("a", topic="not/legal")], name=name)
    storage.publication("cars").outboxes.set_status(name, "approved", reason="every critical expectation holds")
    storage.publication("cars").attempts.keep(
        failed_send(name, shard=0, state="stopped", next_at=None, message="refused")
    )
    window.open("cars")
    window.follow("Send again")
    story.runs["retry-outbox"] = confirmed(story, window, "the topic may be there now")
    story.outboxes["sent again"] = storage.publication("cars").outboxes.status(name).status
    window.open("cars", "Abandon")
    window.confirm("its topic can never be")
    window.await_text("Abandon the outbox: done.")
    step = storage.publication("cars").outboxes.status(name).steps[-1]
    story.outboxes["abandoned"] = f"{step.status}: {step.reason}"
    story.owed = storage.publication("cars").state.pointer().full_run_due


def remove_cars(story: Story) -> None:
    """Two cars are gone from the source."""
    gone = [{"id": f"car{number}", "type": "car"} for number in (1, 2)]
    story.platform.stack.broker.load([SeedEntity("vehicles", "/4wheels", each, delete=True) for each in gone])


def look_back(story: Story, window: Browser) -> None:
    """Reads the pages after all actions, and the overview in a light and in a dark theme."""
    window.open("cars")
    story.texts["page"] = window.text
    window.open()
    story.texts["overview"] = window.text
    for theme in ("light", "dark"):
        story.grounds[theme] = window.theme(theme)
        window.picture(f"overview-{theme}")
    window.open("cars", "Quality")
    window.picture("quality-dark")
    window.theme("light")


def follow_buttons(story: Story, window: Browser) -> None:
    """The buttons on tasks of a run, of a backfill from the archive, and of a verification."""
    story.runs["backfill"] = backfill_of_first_minute(story.platform)
    for name, task, button, shown in (
        ("run", "quality_gate", "Data quality report", "Data Docs of Great Expectations"),
        ("backfill", "quality_gate", "Data quality report", "Sent again from the archive"),
        ("verify", "verify/mapped/0", "Verification report", "cars"),
    ):
        run = story.runs[name]
        window.open_airflow(f"dags/{run.dag_id}/runs/{quote(run.run_id)}/tasks/{task}/details")
        window.press("a", button)
        window.await_address("/contexture/publications/cars/")
        story.texts[f"report of {name}"] = window.await_text(shown)


def backfill_of_first_minute(platform: Installation) -> DagRun:
    """Sends the first minute of the archive again, by a schedule that the publication gets for it."""
    first = platform.published("cars")[0].received_from
    assert first is not None
    file = platform.publications / "cars.yaml"
    file.write_text(file.read_text().replace("schedule: null", f'schedule: "{cron_of_minutes(first, 3)}"'))
    at = f"{first.astimezone(UTC):%Y-%m-%dT%H:%M}:00.000Z"
    body = {
        "dag_id": DAG,
        "from_date": at,
        "to_date": at,
        "max_active_runs": 1,
        "reprocess_behavior": "completed",
        "run_backwards": False,
    }
    # Refused until Airflow has read the file with the schedule.
    until(
        lambda: platform.ask("POST", "/api/v2/backfills", body).status_code == 200 or None, "backfill", PATIENCE_SECONDS
    )
    return platform.finished(DAG, prefix="backfill__", number=1)


def administer(story: Story, window: Browser) -> None:
    """The installation's own user acts like an operator."""
    window.log_in(story.platform.stack.settings.login)
    window.open("cars", "Suspend")
    window.confirm("closed for the winter")
    story.texts["admin's page"] = window.await_text("Suspend: done.")
    story.paused.append(story.platform.ask("GET", f"/api/v2/dags/{DAG}").json()["is_paused"])


def acted(story: Story, window: Browser, action: str, reason: str) -> DagRun:
    """Does something on the publication's page that starts a run; gives the run when it has ended."""
    window.open("cars", action)
    return confirmed(story, window, reason)


def confirmed(story: Story, window: Browser, reason: str) -> DagRun:
    """Confirms something that starts a run of the publication; gives that when it has ended."""
    client, before = story.platform.stack.client, {run.run_id for run in story.platform.runs(DAG)}
    window.confirm(reason)
    window.await_text(": done.")
    new = until(
        lambda: next((run for run in story.platform.runs(DAG) if run.run_id not in before), None),
        "run",
        PATIENCE_SECONDS,
    )
    return client.await_run(DAG, new.run_id, seconds=PATIENCE_SECONDS)


def note(story: Story, run: DagRun) -> tuple[str, str]:
    """Who started a run, and why, as Airflow has it."""
    details = story.platform.ask("GET", f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}").json()
    return details["triggering_user_name"], details["note"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("run", "Approved"), ("backfill", "Archived records"), ("verify", "Topics and state are equal")],
)
def test_buttons_on_tasks_lead_to_the_reports(story: Story, name: str, shown: str) -> None:
    assert story.runs[name].state == "success"
    assert shown in story.texts[f"report of {name}"]


def test_a_viewer_reads_and_is_offered_nothing_to_do(story: Story) -> None:
    assert "cars" in story.texts["viewer's overview"]
    assert "never run" in story.texts["viewer's page"]
    assert "Run now" not in story.texts["viewer's page"]


def test_a_viewer_who_asks_all_the_same_is_refused(story: Story) -> None:
    assert story.viewer == {"run": 403, "suspend": 403, "abandon-outbox": 404}


def test_run_now_is_a_run_in_the_user_s_name_with_the_reason(story: Story) -> None:
    assert story.runs["run"].state == "success"
    assert note(story, story.runs["run"]) == ("olaf", "first load")


def test_airflow_starts_no_second_run_of_a_form_that_is_sent_twice(story: Story) -> None:
    again = {"dag_run_id": story.runs["run"].run_id, "logical_date": None}
    assert story.platform.ask("POST", f"/api/v2/dags/{DAG}/dagRuns", again).status_code == 409


def test_a_full_resynchronisation_is_a_full_run(story: Story) -> None:
    assert story.runs["resynchronise"].state == "success"
    path = f"/api/v2/dags/{DAG}/dagRuns/{story.runs['resynchronise'].run_id}"
    assert story.platform.ask("GET", path).json()["conf"] == {"mode": "full", "reason": "topics were lost"}


def test_quarantined_events_are_tried_again(story: Story) -> None:
    assert story.runs["retry-quarantine"].state == "success"
    assert note(story, story.runs["retry-quarantine"]) == ("olaf", "the rule was too strict")


def test_missing_entities_are_deleted_once_an_operator_has_seen_and_confirmed_them(story: Story) -> None:
    assert story.runs["stopped"].state == "failed"
    assert "2 of " in story.texts["shrink"]
    for car in ("car1", "car2"):
        assert f'"{car}"' in story.texts["shrink"]
    assert story.runs["confirm-shrink"].state == "success"
    assert [each.deletes for each in story.platform.published("cars") if each.deletes] == [2]


def test_suspending_and_resuming_pause_the_dag(story: Story) -> None:
    assert story.paused == [True, False, True]


def test_an_admin_acts_in_their_own_name(story: Story) -> None:
    [line] = [line for line in story.texts["admin's page"].splitlines() if "closed for the winter" in line]
    assert " admin " in line


@pytest.mark.parametrize("connection", ["context_broker", "kafka_default"])
def test_connections_work_step_by_step(story: Story, connection: str) -> None:
    assert "works" in story.texts[connection]
    assert "failed" not in story.texts[connection]


def test_the_replica_is_verified(story: Story) -> None:
    assert story.runs["verify"].state == "success"


def test_an_outbox_that_can_not_be_sent_is_tried_again_then_given_up(story: Story) -> None:
    assert story.runs["retry-outbox"].state == "failed"
    assert story.outboxes == {
        "sent again": "approved",
        "abandoned": "abandoned: its topic can never be (olaf)",
    }
    assert story.owed == "outbox unsendable was abandoned: its topic can never be (olaf)"


def test_an_attack_in_an_entity_s_id_stays_text(story: Story) -> None:
    assert ATTACK in story.texts["Quarantine"]
    assert "taken" not in story.titles


def test_names_batches_topics_and_quality_are_shown(story: Story) -> None:
    assert "car1" in story.texts["Samples"]
    assert "Batches" in story.texts["Samples"]
    assert "0 settings differ" in story.texts["drift"]
    assert "Events read" in story.texts["Quality"]


def test_transactions_are_found_by_the_beginning_of_their_outbox(story: Story) -> None:
    outbox = story.platform.published("cars")[0].outbox[:12]
    assert outbox in story.texts["one outbox"]
    assert "No transaction" not in story.texts["one outbox"]


def test_performed_actions_are_on_the_page_with_user_and_reason(story: Story) -> None:
    for reason in ("first load", "topics were lost", "they were sold", "its topic can never be"):
        assert reason in story.texts["page"]
    assert "olaf" in story.texts["page"]


def test_light_and_dark_follow_the_system(story: Story) -> None:
    assert story.grounds == {"light": "rgb(252, 252, 251)", "dark": "rgb(22, 24, 27)"}


@pytest.mark.skipif("CONTEXTURE_SCREENSHOTS" not in os.environ, reason="pictures are made when a folder is given")
def test_the_pictures_are_there(story: Story) -> None:
    found = {path.stem for path in Path(os.environ["CONTEXTURE_SCREENSHOTS"]).glob("*.png")}
    assert found >= {
        "overview-light",
        "overview-dark",
        "publication",
        "confirm-shrink",
        "test-connection",
        "quality-dark",
    }
