"""What the pages say to type about outboxes, quarantines, reports and runs, typed beside a small home."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta

import pytest

from builders.layout import PublicationPaths
from builders.outboxes import outbox, publication, records
from builders.pages import block
from builders.quarantines import refused
from builders.terminal import Terminal
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus
from contexture.storage.home import Home
from fakes.airflow_rest import airflow_rest

STUCK, REPORT = "how-to/stuck-outbox.md", "how-to/report-data-quality.md"
VEHICLES = """
name: NAME
schedule: "0 * * * *"
source: {kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car]}
"""
RUN = "scheduled__2026-11-22T02:00:00+00:00"
HOUR = timedelta(hours=1)
RECEIVED = datetime(2026, 11, 20, 8, 30, tzinfo=UTC)


@pytest.fixture
def storage(terminal: Terminal) -> Home:
    """A home in which an outbox of vehicles waits to be sent, and has refused two cars."""
    (terminal.folder / "publications" / "vehicles.yaml").write_text(VEHICLES.replace("NAME", "vehicles"))
    storage = Home(terminal.variables["CONTEXTURE_HOME"])
    outbox(storage, publication(), 1, [records("car1", "car2")], name="abcd1234")
    storage.publication("vehicles").outboxes.set_status(
        "abcd1234", "approved", reason="every critical expectation holds"
    )
    refused(storage, "abcd1234", {"number-string": 2, "bool-string": 1})
    return storage


def test_a_person_at_night_sees_what_waits_and_what_to_do(terminal, storage):
    failed = TransactionRow(
        "vehicles", "abcd1234", 0, 0, TransactionStatus.BROKER_ERROR, 2, 90, 0, None, "no broker", RECEIVED
    )
    RunTables.of_home(storage.root).set_transaction(failed)
    listed, shown, refused_by_brokers, examined = block(STUCK, "contexture outbox list").strip().splitlines()
    assert "abcd1234" in terminal.run(listed).stdout
    assert "start publish_vehicles: it sends this outbox first" in terminal.run(shown.replace("ID", "abcd")).stdout
    assert terminal.run(refused_by_brokers).stdout.splitlines()[-1].endswith("no broker")
    # What it finds of the machine is the machine's affair.
    found = json.loads(terminal.run(f"{examined.partition('#')[0]} --json || true").stdout)
    assert {"storage", "publications", "formats"} <= {point["name"] for point in found["points"]}


@pytest.mark.usefixtures("storage")
def test_an_outbox_is_given_up_with_a_reason(terminal):
    terminal.run(block(STUCK, "contexture outbox abandon").replace("ID", "abcd"))
    assert terminal.json("contexture outbox list --all")["outboxes"][0]["status"] == "abandoned"


@pytest.mark.usefixtures("storage")
def test_a_quarantine_is_tried_again_by_rule(terminal):
    script = block("how-to/find-a-missing-entity.md", "contexture quarantine retry").replace("ID", "abcd")
    *words, conf = shlex.split(terminal.run(script).stdout.splitlines()[-1])
    assert words == ["airflow", "dags", "trigger", "publish_vehicles", "--conf"]
    assert json.loads(conf) == {
        "retry_quarantine": "abcd1234",
        "retry_rules": ["number-string"],
        "reason": "rule relaxed",
    }


def test_reports_of_many_runs_of_a_month_and_of_one(terminal, storage):
    outbox(storage, publication(), 2, [records("car1")], run=RUN)
    terminal.run(block(REPORT, "--last 100 --out vehicles.html"))
    terminal.run(block(REPORT, "--out november.html"))
    assert "Data quality of 2 runs" in (terminal.folder / "vehicles.html").read_text()
    assert len(json.loads((terminal.folder / "vehicles.json").read_text())["runs"]) == 2
    assert {"november.html", "run.html"} <= {path.name for path in terminal.folder.iterdir()}


def test_a_backfill_is_looked_at_before_it_is_started(terminal):
    (terminal.folder / "publications" / "city.yaml").write_text(VEHICLES.replace("NAME", "city"))
    for number, received in enumerate((RECEIVED, RECEIVED + HOUR), start=1):
        archived(Home(terminal.variables["CONTEXTURE_HOME"]), number, received)
    done = terminal.run(block("how-to/backfill.md", "contexture backfill city"))
    assert done.stdout.splitlines()[:4] == [
        "2026-11-20 08:00 to 2026-11-20 09:00: archive, 1 runs, 2 records",
        "  cars: 2",
        "2026-11-20 09:00 to 2026-11-20 10:00: archive, 1 runs, 2 records",
        "  cars: 2",
    ]


def archived(storage: Home, number: int, received: datetime) -> None:
    """A concluded run of the city that received two cars then."""
    made = outbox(storage, publication(name="city"), number, [records("a", "b")])
    manifest = made.model_copy(update={"received_from": received, "received_to": received})
    storage.write(PublicationPaths("city").manifest(manifest.outbox), manifest.to_json())
    for step in ("approved", "concluded"):
        storage.publication("city").outboxes.set_status(manifest.outbox, step, reason="sent")


def test_full_runs_are_asked_of_airflow(terminal):
    with airflow_rest() as airflow:
        terminal.variables |= airflow.variables
        terminal.run(block("how-to/recover.md", "contexture resync"))
        terminal.run(block("how-to/publish-structures.md", "contexture resync"))
        terminal.run(block("how-to/receive-notifications.md", "contexture resync"))
    path = "/api/v2/dags/resynchronise/dagRuns"
    assert [(where, body["conf"]) for where, body in airflow.started] == [
        (path, {"publications": ["vehicles"], "mode": "full", "reason": "storage was lost"}),
        (path, {"publications": ["structures"], "mode": "full", "reason": "a new consumer"}),
        (path, {"publications": ["vehicles"], "mode": "full", "reason": "nightly comparison"}),
    ]
