"""`contexture backfill`: what it shows before anything is started, and what it asks of Airflow."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from contexture.cli.backfill import print_text
from contexture.errors import ConfigurationError, RetriableError
from contexture.operations.actions.backfill import planned, start
from contexture.operations.airflow_client import AirflowClient, AirflowCredentials
from contexture.storage.home import Home
from contexture.storage.orders import ReplayOptions

FILE = """
name: vehicles
schedule: "0 * * * *"
source: {kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels}
topics: {keep: KEEP}
"""
HOUR = timedelta(hours=1)
RANGE = ("--from", "2026-03-01T12:00", "--to", "2026-03-01T13:00")
DRY_RUN = "/api/v2/backfills/dry_run"
Command = Callable[..., Any]


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "publications").mkdir()
    keep(tmp_path, "history")
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    for name in ("URL", "TOKEN", "USER", "PASSWORD"):
        monkeypatch.delenv(f"CONTEXTURE_AIRFLOW_{name}", raising=False)
    return Home(str(tmp_path / "home"))


def keep(folder: Path, how: str, text: str = FILE) -> None:
    (folder / "publications" / "vehicles.yaml").write_text(text.replace("KEEP", how))


def archived(storage: Home, sequence: int, received: datetime, *names: str) -> None:
    manifest = outbox(storage, publication(), sequence, [records(*names), records("van", topic="vans")])
    manifest = manifest.model_copy(update={"received_from": received, "received_to": received})
    storage.write(PublicationPaths("vehicles").manifest(manifest.outbox), manifest.to_json())
    for step in ("approved", "concluded"):
        storage.publication("vehicles").outboxes.set_status(manifest.outbox, step, reason="sent")


def test_a_dry_run_shows_each_interval_by_topic(contexture: Command, storage: Home) -> None:
    archived(storage, 1, NOON, "a", "b")
    archived(storage, 2, NOON + HOUR / 2, "c")
    archived(storage, 3, NOON + HOUR, "d")

    done = contexture("backfill", "vehicles", *RANGE, "--dry-run")

    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "2026-03-01 12:00 to 2026-03-01 13:00: archive, 2 runs, 5 records\n"
        "  cars: 3\n"
        "  vans: 2\n"
        "2026-03-01 13:00 to 2026-03-01 14:00: archive, 1 runs, 2 records\n"
        "  cars: 1\n"
        "  vans: 1\n"
    )


def test_what_is_missing_is_listed_and_refused(contexture: Command, storage: Home) -> None:
    archived(storage, 1, NOON, "a")
    archived(storage, 3, NOON + HOUR / 2, "c")

    done = contexture("backfill", "vehicles", *RANGE)

    assert done.code == 1
    assert done.out == (
        "2026-03-01 12:00 to 2026-03-01 13:00: refused, because it is incomplete\n  missing: run 2, received between "
        "2026-03-01 12:00:00 and 2026-03-01 12:30:00\n2026-03-01 13:00 to 2026-03-01 14:00: nothing of it is "
        "archived\n"
    )


def test_an_interval_that_is_not_finished_is_shown_and_nothing_is_started(contexture: Command, storage: Home) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    archived(storage, 1, hour - HOUR, "a")
    archived(storage, 2, hour, "b")
    dates = (f"{hour - HOUR:%Y-%m-%dT%H:%M}", f"{hour + HOUR:%Y-%m-%dT%H:%M}")

    done = contexture("backfill", "vehicles", "--from", dates[0], "--to", dates[1])

    assert (done.code, done.err) == (1, "")
    window = f"{hour + HOUR:%Y-%m-%d %H:%M} to {hour + 2 * HOUR:%Y-%m-%d %H:%M}"
    assert done.out.splitlines()[-1] == f"{window}: not finished yet, and Airflow leaves it out"
    assert "started" not in done.out


def test_json_has_the_whole_of_it(contexture: Command, storage: Home, tmp_path: Path) -> None:
    keep(tmp_path, "latest")
    archived(storage, 1, NOON, "a")
    archived(storage, 3, NOON + HOUR / 2, "c")

    done = contexture(
        *("backfill", "vehicles", "--from", "2026-03-01T12:00", "--to", "2026-03-01T12:00", "--dry-run", "--json"),
        *("--incomplete", "send", "--outdated", "send"),
    )

    assert done.code == 1
    assert json.loads(done.out) == {
        "publication": "vehicles",
        "replica": True,
        "options": {"replay_from": "auto", "incomplete": "send", "outdated": "send", "topic_prefix": ""},
        "intervals": [
            {
                "start": "2026-03-01T12:00:00Z",
                "end": "2026-03-01T13:00:00Z",
                "outcome": "partial_archive",
                "runs": 2,
                "records": 4,
                "topics": {"cars": 2, "vans": 2},
                "missing": ["run 2, received between 2026-03-01 12:00:00 and 2026-03-01 12:30:00"],
            }
        ],
        "overwrites": True,
        "backfill": None,
    }


def test_topics_are_named_with_their_prefix_and_nothing_is_overwritten_there(
    contexture: Command, storage: Home, tmp_path: Path
) -> None:
    keep(tmp_path, "latest")
    archived(storage, 1, NOON, "a")
    dates = ("--from", "2026-03-01T12:00", "--to", "2026-03-01T12:00")

    done = contexture("backfill", "vehicles", *dates, "--dry-run", "--topic-prefix", "again-", "--json")

    found = json.loads(done.out)
    assert (done.code, found["overwrites"]) == (0, False)
    assert found["intervals"][0]["topics"] == {"again-cars": 1, "again-vans": 1}


def test_replicas_are_warned_of(contexture: Command, storage: Home, tmp_path: Path) -> None:
    keep(tmp_path, "latest")
    archived(storage, 1, NOON, "a")
    dates = ("--from", "2026-03-01T12:00", "--to", "2026-03-01T12:00", "--dry-run")

    assert "records are left out where the target holds newer ones" in contexture("backfill", "vehicles", *dates).out
    over = contexture("backfill", "vehicles", *dates, "--outdated", "send").out
    assert "warning: on compacted topics, old values will replace newer ones" in over


@pytest.mark.parametrize(
    ("source", "options", "code", "says"),
    [
        ("api: ngsi-ld, context: 'https://example.org/c.jsonld'", (), 0, "requested from the source"),
        ("api: ngsi-ld, context: 'https://example.org/c.jsonld'", ("--replay-from", "archive"), 1, "nothing of it"),
        ("api: ngsiv2", ("--replay-from", "source"), 1, "refused"),
    ],
)
def test_what_a_source_keeps_is_left_to_the_runs(
    contexture: Command, storage: Home, tmp_path: Path, source: str, options: tuple[str, ...], code: int, says: str
) -> None:
    keep(tmp_path, "history", FILE.replace("kind: ngsi", f"kind: ngsi, {source}") + "message: {format: ngsiv2}\n")

    done = contexture("backfill", "vehicles", *RANGE, "--dry-run", *options)

    assert (done.code, says in done.out) == (code, True), done


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("lorries", *RANGE), "there is no publication 'lorries' in"),
        (("vehicles", "--from", "2026-03-01T12:10", "--to", "2026-03-01T12:50"), "no interval of vehicles"),
        (("vehicles", *RANGE, "--topic-prefix", "a/b"), "no topic can begin with 'a/b'"),
        (("vehicles", "--from", "yesterday", "--to", "today"), "Invalid value"),
    ],
)
def test_what_can_not_be_planned_says_why(
    contexture: Command, storage: Home, arguments: tuple[str, ...], says: str
) -> None:
    done = contexture("backfill", *arguments, "--dry-run")
    assert (done.code, says in done.err) == (2, True), done.err


def test_without_a_schedule_there_is_no_interval(contexture: Command, storage: Home, tmp_path: Path) -> None:
    keep(tmp_path, "history", FILE.replace('"0 * * * *"', "null"))
    done = contexture("backfill", "vehicles", *RANGE, "--dry-run")
    assert (done.code, "publication vehicles has no schedule" in done.err) == (2, True)


def test_without_dry_run_airflow_is_asked(contexture: Command, storage: Home) -> None:
    archived(storage, 1, NOON, "a")
    done = contexture("backfill", "vehicles", "--from", "2026-03-01T12:00", "--to", "2026-03-01T12:00")
    assert (done.code, "CONTEXTURE_AIRFLOW_URL is not the address of Airflow" in done.err) == (2, True)


def answering(answers: dict[str, Any]) -> AirflowClient:
    """An Airflow with an answer for each path."""
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=answers[request.url.path]))
    return AirflowClient(AirflowCredentials(url="http://airflow:8080", token="t"), transport)


def test_an_interval_whose_run_has_not_ended_is_shown_and_nothing_is_started(
    storage: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    archived(storage, 1, NOON, "a")
    archived(storage, 2, NOON + HOUR, "b")
    plan = planned("vehicles", NOON, NOON + HOUR, ReplayOptions())

    known, started = start(plan, answering({DRY_RUN: {"backfills": [{"logical_date": "2026-03-01T12:00:00Z"}]}}))

    assert (plan.can_start, known.can_start, started) == (True, False, None)
    print_text(known, started)
    assert capsys.readouterr().out.splitlines()[::3] == [
        "2026-03-01 12:00 to 2026-03-01 13:00: archive, 1 runs, 2 records",
        "2026-03-01 13:00 to 2026-03-01 14:00: its run has not ended, and Airflow leaves it out: wait until it ends, "
        "then start the backfill again",
    ]


def test_a_backfill_that_leaves_nothing_out_is_started(storage: Home) -> None:
    archived(storage, 1, NOON, "a")
    archived(storage, 2, NOON + HOUR, "b")
    plan = planned("vehicles", NOON, NOON + HOUR, ReplayOptions())
    both = [{"logical_date": "2026-03-01T12:00:00Z"}, {"logical_date": "2026-03-01T13:00:00Z"}]

    found = start(plan, answering({DRY_RUN: {"backfills": both}, "/api/v2/backfills": {"id": 7}}))

    assert found == (plan, 7)


def test_airflow_is_asked_for_what_its_page_asks_for() -> None:
    asked: list[tuple[str, str, object]] = []

    def api(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, request.url.path, json.loads(request.content)))
        return httpx.Response(200, json={"id": 7})

    access = AirflowCredentials(url="http://airflow:8080", token="t")
    conf = {"replay_from": "auto", "topic_prefix": None}
    found = AirflowClient(access, httpx.MockTransport(api)).backfill("publish_vehicles", NOON, NOON + HOUR, conf)

    assert found == 7
    body = {
        "dag_id": "publish_vehicles",
        "from_date": "2026-03-01T12:00:00+00:00",
        "to_date": "2026-03-01T13:00:00+00:00",
        "dag_run_conf": conf,
        "run_backwards": False,
        "reprocess_behavior": "completed",
        "max_active_runs": 1,
        "run_on_latest_version": True,
    }
    assert asked == [("POST", "/api/v2/backfills", body)]


def test_a_backfill_is_asked_for_again_where_airflow_s_database_was_locked() -> None:
    answers = iter(
        [
            httpx.Response(503, json={"detail": "Database is locked."}),
            httpx.Response(503, json={"detail": "Database is locked."}),
            httpx.Response(200, json={"id": 7}),
        ]
    )
    access = AirflowCredentials(url="http://airflow:8080", token="t")
    airflow = AirflowClient(access, httpx.MockTransport(lambda request: next(answers)), first_wait_seconds=0.001)

    assert airflow.backfill("publish_vehicles", NOON, NOON, {}) == 7
    assert list(answers) == []


def test_a_database_that_stays_locked_is_reported_in_airflow_s_words() -> None:
    asked: list[str] = []

    def locked(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(503, json={"detail": "Database is locked. Please use PostgreSQL or MySQL."})

    access = AirflowCredentials(url="http://airflow:8080", token="t")
    airflow = AirflowClient(access, httpx.MockTransport(locked), first_wait_seconds=0.001)

    with pytest.raises(
        RetriableError, match=r"responded with 503 to POST /api/v2/backfills: Database is locked\. Please"
    ):
        airflow.backfill("publish_vehicles", NOON, NOON, {})
    assert asked == ["/api/v2/backfills"] * 5


def test_another_backfill_of_the_dag_is_reported() -> None:
    busy = AirflowClient(
        AirflowCredentials(url="http://airflow:8080", token="t"),
        httpx.MockTransport(lambda request: httpx.Response(409, json={})),
    )
    with pytest.raises(ConfigurationError, match="busy with another backfill of publish_vehicles"):
        busy.backfill("publish_vehicles", NOON, NOON, {})
