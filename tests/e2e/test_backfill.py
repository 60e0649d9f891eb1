"""Past intervals go to topics of their own: by `contexture backfill`, by REST and by the form of an Airflow that runs.

One installation for all tests of this file. Three runs of the ordinary kind come first:

- in the first interval a first load, whose archive is gone by the time of the backfills, and a run with two changes;
- in the second interval a run with two changes.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builders.pages import block
from builders.terminal import Terminal
from contexture.kafka.reader import TopicRecord
from contexture.storage.conclusion import expire
from contexture.storage.state import StatePointer
from contexture_sandbox.airflow.client import DagRun
from e2e.backfill_form import begin_backfill
from e2e.browser import browser
from e2e.browser import missing as missing_browser
from e2e.buses import DAG, describe, drive, lines_by_bus, records
from e2e.installation import Installation, installation_below, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(shutil.which("curl") is None, reason="the documented commands need curl"),
]

PAGE = "how-to/backfill.md"
PATIENCE_SECONDS = 1500.0
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@dataclass
class Story:
    """What was seen of the backfills.

    Attributes:
        first, second: starts of the two intervals.
        changed: when the second run received what it sent.
        states: of the runs of each backfill, by interval.
    """

    platform: Installation
    terminal: Terminal
    first: datetime
    second: datetime
    changed: datetime
    before: list[TopicRecord]
    pointer: StatePointer
    dry: dict[str, Any]
    refused: dict[str, Any]
    begun_by_refused: int
    sent: dict[str, Any] = field(default_factory=dict)
    states: dict[str, dict[datetime, str]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The ordinary runs, what would be sent again, and the backfills; they run once for all tests."""
    with installation_below(tmp_path_factory.mktemp("backfill"), entities=0) as platform:
        drive(platform, one=1, two=2, three=3)
        describe(platform, schedule="null", on_startup="none")
        platform.stack.client.await_dags([DAG], seconds=PATIENCE_SECONDS)
        first, changed, second = ordinary_runs(platform)
        forget_the_first(platform)
        found = preview(platform, platform.terminal(tmp_path_factory.mktemp("terminal")), first, changed, second)
        by_command(found)
        by_rest(found)
        if not missing_browser():
            by_form(found, tmp_path_factory.mktemp("browser"))
        yield found


def ordinary_runs(platform: Installation) -> tuple[datetime, datetime, datetime]:
    """Three runs by hand, then the one that Airflow itself makes of the last interval once there is a schedule."""
    first = minute(run(platform))
    drive(platform, one=11, four=14)
    changed = run(platform)
    second = minute(changed) + MINUTE
    wait_for(second)
    drive(platform, one=21, two=22)
    end = minute(run(platform)) + MINUTE
    wait_for(end)
    assert end - first < HOUR, "this machine is too slow for intervals that are minutes of an hour"
    minutes = ",".join(str(minute) for minute in sorted(at.minute for at in (first, second, end)))
    describe(platform, schedule=f'"{minutes} * * * *"', on_startup="none")
    latest = platform.finished(DAG, prefix="scheduled__", number=1, seconds=PATIENCE_SECONDS)
    assert latest.state == "success"
    return first, changed, second


def run(platform: Installation) -> datetime:
    """One run by hand; gives when it received what it sent."""
    started = platform.stack.client.trigger(DAG)
    ended = platform.stack.client.await_run(DAG, started.run_id, seconds=PATIENCE_SECONDS)
    assert ended.state == "success"
    received = platform.published("buses")[-1].received_from
    assert received is not None
    return received.astimezone(UTC)


def forget_the_first(platform: Installation) -> None:
    """What retention does, as if the first run had been a day ago and the others had not."""
    first, *_ = [each for each in platform.storage.publication("buses").outboxes.all() if each.status == "concluded"]
    just_later = first.steps[-1].at + timedelta(days=1, milliseconds=1)
    assert expire(platform.storage.publication("buses"), archive_days=1, now=just_later) == [first.outbox]


def preview(platform: Installation, terminal: Terminal, first: datetime, changed: datetime, second: datetime) -> Story:
    """Returns what a dry run prints, and what a command prints that must not begin a backfill."""
    # The interval that ends where the first one begins starts later than an hour before the second one.
    dry = platform.contexture("backfill", "buses", *dates(second - HOUR + MINUTE, second), "--dry-run", "--json")
    assert dry.returncode == 1, dry.stderr
    refused = platform.contexture("backfill", "buses", *dates(first, second), "--topic-prefix", "again-", "--json")
    assert refused.returncode == 1, refused.stderr
    begun = platform.ask("GET", f"/api/v2/backfills?dag_id={DAG}").json()["total_entries"]
    pointer = platform.storage.publication("buses").state.pointer()
    printed = json.loads(dry.stdout), json.loads(refused.stdout)
    return Story(platform, terminal, first, second, changed, records(platform, "buses"), pointer, *printed, begun)


def by_command(story: Story) -> None:
    """Both intervals, the first without what is missing of it."""
    options = ("--topic-prefix", "again-", "--incomplete", "send", "--json")
    done = story.platform.contexture("backfill", "buses", *dates(story.first, story.second), *options)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    story.sent = json.loads(done.stdout)
    await_backfill(story, "command", story.sent["backfill"])


def by_rest(story: Story) -> None:
    """First without sending anything, then to other topics; both take over what the command has run."""
    dry = {"dry_run": True, "replay_incomplete": "send"}
    await_backfill(story, "dry run", begun_by_rest(story, story.first, story.first, dry))
    prefix = {"topic_prefix": "rest-"}
    await_backfill(story, "rest", begun_by_rest(story, story.first, story.second, prefix))


def by_form(story: Story, folder: Path) -> None:
    """The second interval, by a person who fills in the form of Airflow's own page."""
    platform, before = story.platform, begun(story.platform)
    with browser(platform.stack.settings.url, folder) as window:
        window.log_in(platform.stack.settings.login)
        begin_backfill(window, DAG, story.second, story.second, topic_prefix="form-")
        new = until(lambda: begun(platform) - before or None, "backfill of the form", PATIENCE_SECONDS)
    (backfill,) = new
    await_backfill(story, "form", backfill)


def begun(platform: Installation) -> set[int]:
    """The backfills that there are."""
    return {each["id"] for each in platform.ask("GET", f"/api/v2/backfills?dag_id={DAG}").json()["backfills"]}


def begun_by_rest(story: Story, first: datetime, last: datetime, conf: dict[str, Any]) -> int:
    """As the how-to has it, once Airflow has closed the backfill before it; gives its id."""
    script = of_the_story(story, block(PAGE, "curl -X POST"), first, last)
    assert '"dag_run_conf": {}' in script
    answer = story.terminal.run(script.replace('"dag_run_conf": {}', f'"dag_run_conf": {json.dumps(conf)}')).stdout
    return int(json.loads(answer)["id"])


def of_the_story(story: Story, script: str, first: datetime, last: datetime) -> str:
    """A page's script with the story's DAG and dates."""
    at = {"2026-11-20T08:00": first, "2026-11-20T09:00": last}
    for documented, moment in at.items():
        script = script.replace(documented, f"{moment:%Y-%m-%dT%H:%M}")
    return script.replace("publish_city", DAG)


def await_backfill(story: Story, name: str, backfill: int) -> None:
    """Waits until Airflow has closed it, and keeps the states and logs of its runs."""
    platform = story.platform

    def closed() -> bool | None:
        return True if platform.ask("GET", f"/api/v2/backfills/{backfill}").json()["completed_at"] else None

    until(closed, f"end of the backfill of {name}", PATIENCE_SECONDS)
    story.states[name] = {}
    for start, each in backfilled(platform).items():
        story.states[name][start] = each.state
        for task in ("stage", "quality_gate"):
            story.logs[f"{name} {task} {start:%H:%M}"] = platform.last_log(each, task)


def backfilled(platform: Installation) -> dict[datetime, DagRun]:
    """The runs that are backfills now, by the start of their intervals."""
    items = platform.ask("GET", f"/api/v2/dags/{DAG}/dagRuns?limit=100").json()["dag_runs"]
    starts = {item["dag_run_id"]: item["data_interval_start"] for item in items if item["run_type"] == "backfill"}
    found = [each for each in platform.runs(DAG) if each.run_id in starts]
    return {datetime.fromisoformat(starts[each.run_id]).astimezone(UTC): each for each in found}


def dates(first: datetime, last: datetime) -> tuple[str, ...]:
    return ("--from", f"{first:%Y-%m-%dT%H:%M}", "--to", f"{last:%Y-%m-%dT%H:%M}")


def minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def wait_for(moment: datetime) -> None:
    time.sleep(max(0.0, (moment - datetime.now(UTC)).total_seconds() + 1))


def outcomes(printed: dict[str, Any]) -> list[tuple[str, int, int, dict[str, int]]]:
    return [(each["outcome"], each["runs"], each["records"], each["topics"]) for each in printed["intervals"]]


def missing(story: Story) -> str:
    return f"run 1, received before {story.changed:%Y-%m-%d %H:%M:%S}"


def marks(received: list[TopicRecord]) -> dict[tuple[bytes | None, bytes | None], bytes | None]:
    return {(record.key, record.value): dict(record.headers).get("contexture-backfill") for record in received}


def test_a_dry_run_lists_each_interval_and_what_it_lacks(story: Story) -> None:
    assert outcomes(story.dry) == [
        ("nothing", 0, 0, {}),
        ("refused", 1, 0, {}),
        ("archive", 1, 2, {"buses": 2}),
    ]
    assert [each["missing"] for each in story.dry["intervals"]] == [[missing(story)], [missing(story)], []]
    assert story.dry["backfill"] is None


def test_an_interval_that_is_there_in_part_is_not_begun_unless_that_is_enough(story: Story) -> None:
    assert outcomes(story.refused) == [("refused", 1, 0, {}), ("archive", 1, 2, {"again-buses": 2})]
    assert (story.refused["backfill"], story.begun_by_refused) == (None, 0)


def test_the_command_sends_what_there_is_to_the_topics_of_its_prefix(story: Story) -> None:
    assert outcomes(story.sent) == [
        ("partial_archive", 1, 2, {"again-buses": 2}),
        ("archive", 1, 2, {"again-buses": 2}),
    ]
    assert story.states["command"] == {story.first: "success", story.second: "success"}
    assert lines_by_bus(records(story.platform, "again-buses")) == {"one": [11, 21], "two": [22], "four": [14]}


def test_its_records_are_those_of_then_with_the_interval_as_their_mark(story: Story) -> None:
    again = records(story.platform, "again-buses")
    then = {(record.key, record.value): record.timestamp_ms for record in story.before}
    assert {(record.key, record.value): record.timestamp_ms for record in again}.items() <= then.items()
    intervals = {story.first.isoformat().encode(): 2, story.second.isoformat().encode(): 2}
    marked = list(marks(again).values())
    assert {mark: marked.count(mark) for mark in marked} == intervals


def test_a_run_logs_how_far_it_is_and_what_is_not_made_up(story: Story) -> None:
    assert "run 2 is replayed, 1 of 1" in story.logs[f"command stage {story.first:%H:%M}"]
    gate = story.logs[f"command quality_gate {story.first:%H:%M}"]
    assert "to topics that begin with again-" in gate
    assert f"missing, and not replaced: {missing(story)}" in gate


def test_a_dry_run_by_airflow_logs_what_a_replica_would_get_and_sends_nothing(story: Story) -> None:
    assert story.states["dry run"][story.first] == "success"
    gate = story.logs[f"dry run quality_gate {story.first:%H:%M}"]
    # Bus one has a newer line; and no prefix is left of the backfill whose run this one takes over.
    assert "1 records are left out, because the target holds something newer" in gate
    assert "dry run: 1 records would go to 1 topics" in gate
    assert "  buses: 1" in gate
    assert "to topics that begin with" not in gate


def test_a_backfill_by_rest_sends_whole_intervals_and_lists_what_others_lack(story: Story) -> None:
    assert story.states["rest"] == {story.first: "failed", story.second: "success"}
    stage = story.logs[f"rest stage {story.first:%H:%M}"]
    assert f"buses lacks {missing(story)}" in stage
    assert lines_by_bus(records(story.platform, "rest-buses")) == {"one": [21], "two": [22]}


def test_airflow_s_command_line_knows_the_intervals_of_the_same_backfill(story: Story) -> None:
    script = of_the_story(story, block(PAGE, "airflow backfill create"), story.first, story.second)
    listed = story.terminal.run(f"{script.strip()} --dry-run").stdout.partition("Runs to be attempted:")[2]
    assert [f"{moment:%Y-%m-%d %H:%M}" in listed for moment in (story.first, story.second)] == [True, True]


@pytest.mark.skipif(bool(missing_browser()), reason=missing_browser() or "there is a browser")
def test_a_backfill_by_airflow_s_form_sends_what_was_typed_into_it(story: Story) -> None:
    assert story.states["form"][story.second] == "success"
    assert "to topics that begin with form-" in story.logs[f"form quality_gate {story.second:%H:%M}"]
    again = records(story.platform, "form-buses")
    assert lines_by_bus(again) == {"one": [21], "two": [22]}
    assert set(marks(again).values()) == {story.second.isoformat().encode()}


def test_topics_and_state_of_ordinary_runs_are_left_alone(story: Story) -> None:
    now = records(story.platform, "buses")
    assert now == story.before
    assert lines_by_bus(now) == {"one": [1, 11, 21], "two": [2, 22], "three": [3], "four": [14]}
    assert set(marks(now).values()) == {None}
    assert story.platform.storage.publication("buses").state.pointer() == story.pointer
