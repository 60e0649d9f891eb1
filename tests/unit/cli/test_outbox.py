"""`contexture outbox`: what a person at night sees, and the way out."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.attempts import failed_send
from builders.layout import PublicationPaths
from builders.outboxes import outbox, publication, records
from contexture.monitoring import RunTables
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest, RegistryPart
from contexture.storage.schemas import QUARANTINE

CARS = publication()
SECRET_BODY = b'{"plate":"secret-plate"}'


@pytest.fixture
def storage(tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "ana")
    return Home(str(tmp_path))


def approved(storage: Home, sequence: int = 1, *, name: str = "abcd1234", **given: object) -> str:
    outbox(storage, CARS, sequence, [records("car1", "car2"), records("car3")], name=name, **given)
    storage.publication("vehicles").outboxes.set_status(name, "approved", reason="every critical expectation holds")
    return name


def quarantine(storage: Home, name: str, *ids: str, rule: str = "number-string") -> None:
    row = {
        "ordinal": 1,
        "operation": "upsert",
        "scope": "vehicles",
        "path": "/4wheels",
        "type": "car",
        "body": SECRET_BODY,
        "received_at": datetime(2026, 3, 1, tzinfo=UTC),
        "rule": rule,
        "severity": "error",
        "message": "speed is not a number",
    }
    rows = [row | {"id": each} for each in ids]
    with storage.write_atomically(f"{PublicationPaths('vehicles').quarantine(name)}/part-0.parquet") as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=QUARANTINE), path)


def registry_outbox(storage: Home, **given: object) -> None:
    """Makes the outbox abcd1234 one of a registry."""
    name = approved(storage)
    folder = PublicationPaths("vehicles")
    manifest = Manifest.model_validate_json(storage.read(folder.manifest(name)))
    storage.write(folder.manifest(name), manifest.model_copy(update=given).to_json())


def test_transactions_of_a_registry_are_shown_with_what_they_hold(storage, contexture):
    name = approved(storage)
    manifest = storage.publication("vehicles").outboxes.manifest(name)
    at = datetime(2026, 3, 1, 12, 5, tzinfo=UTC)
    parts = (
        RegistryPart(transaction=0, first_position=0, id=812, deletions=False, at=at),
        RegistryPart(transaction=1, first_position=1, id=812, deletions=True),
    )
    shard = manifest.shards[0].model_copy(update={"registry": parts})
    folder = PublicationPaths("vehicles")
    storage.write(folder.manifest(name), manifest.model_copy(update={"shards": (shard,)}).to_json())
    lines = contexture("outbox", "show", "abcd1234").out.splitlines()
    assert [line for line in lines if "registry" in line] == [
        "  registry transaction 812 of 2026-03-01 12:05:00 UTC: 1 record, additions and modifications",
        "  registry transaction 812: 1 record, tombstones",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"baseline": True}, "what the registry holds is recorded as the start; nothing is sent until it changes"),
        ({"flush": True}, "everything that the registry holds, in one transaction"),
    ],
)
def test_what_is_special_about_a_registry_s_outbox_is_shown(storage, contexture, given, said):
    registry_outbox(storage, **given)
    assert said in contexture("outbox", "show", "abcd1234").out.splitlines()


def test_how_to_send_all_after_a_baseline_is_shown(storage, contexture):
    registry_outbox(storage, baseline=True)
    storage.publication("vehicles").outboxes.set_status("abcd1234", "concluded", reason="0 records committed")
    assert contexture("outbox", "show", "abcd1234").out.splitlines()[-1].endswith("start publish_vehicles in mode full")


def test_the_list_shows_only_what_is_pending(storage, contexture):
    outbox(storage, CARS, 1, [records("car1")], name="first000")
    storage.publication("vehicles").outboxes.set_status("first000", "rejected", reason="dry run")
    approved(storage, 2, name="second00")

    shown = json.loads(contexture("outbox", "list", "--json").out)["outboxes"]

    assert [(line["outbox"], line["status"], line["records"], line["attempts"]) for line in shown] == [
        ("second00", "approved", 3, 0)
    ]


def test_the_whole_list_shows_all_ends_in_order(storage, contexture):
    outbox(storage, CARS, 1, [records("car1")], name="first000")
    storage.publication("vehicles").outboxes.set_status("first000", "rejected", reason="dry run")
    approved(storage, 2, name="second00")

    lines = contexture("outbox", "list", "vehicles", "--all").out.splitlines()

    assert lines[1].split()[:5] == ["first000", "vehicles", "1", "changes", "rejected"]
    assert lines[2].split()[:5] == ["second00", "vehicles", "2", "changes", "approved"]


def test_an_empty_list_says_so(storage, contexture):
    done = contexture("outbox", "list")
    assert (done.code, done.out) == (
        0,
        "no outbox is pending; --all also lists concluded, rejected and abandoned ones\n",
    )


def test_an_unknown_publication_is_named_with_those_there_are(storage, contexture):
    approved(storage)
    done = contexture("outbox", "list", "vehicle")
    assert done.code == 2
    assert f"publication vehicle has no files in {storage.root}. Next: choose among: vehicles" in done.err


def test_show_prints_history_counts_topics_and_what_to_do(storage, contexture):
    name = approved(storage)
    out = contexture("outbox", "show", name).out
    assert "publication vehicles, changes run 1, approved" in out
    assert "prepared: run run1" in out
    assert "approved: every critical expectation holds" in out
    assert "3 records (3 upserts, 0 deletes) in 2 transactions, 2 shards" in out
    assert "       3  cars" in out
    assert "start publish_vehicles: it sends this outbox first" in out
    assert f"contexture outbox abandon {name} --reason" in out


def test_show_prints_collisions_and_what_was_tried_again(storage, contexture):
    name = approved(storage)
    folder = PublicationPaths("vehicles")
    manifest = Manifest.model_validate_json(storage.read(folder.manifest(name)))
    found = manifest.model_copy(update={"retried": "outbox9", "skipped_newer": 4, "collisions": 2})
    storage.write(folder.manifest(name), found.to_json())
    out = contexture("outbox", "show", name).out
    assert "retries what outbox outbox9 quarantined; 4 left out, because the target holds newer ones" in out
    assert "2 events have a topic that another identity uses: the report shows which" in out


def test_show_prints_what_a_backfill_is_of_and_what_it_lacks(storage, contexture):
    name = approved(storage)
    folder = PublicationPaths("vehicles")
    manifest = Manifest.model_validate_json(storage.read(folder.manifest(name)))
    backfill = {"replayed_from": "archive", "topic_prefix": "again-", "skipped_newer": 4, "missing": ("run 2",)}
    storage.write(folder.manifest(name), manifest.model_copy(update=backfill).to_json())
    out = contexture("outbox", "show", name).out
    assert "sent again from the archive, to topics that begin with again-; 4 left out" in out
    assert "missing, and not replaced: run 2\n" in out


def test_show_counts_quarantine_by_rule_with_identities_and_never_bodies(storage, contexture):
    name = approved(storage)
    quarantine(storage, name, "car7", "car8", "car9", "car10")
    out = contexture("outbox", "show", name).out
    assert (
        "quarantine, number-string (error): 4, such as /4wheels car7 car; /4wheels car8 car; /4wheels car9 car" in out
    )
    assert "secret-plate" not in out + contexture("outbox", "show", name, "--json").out


def test_show_lists_twenty_topics_and_json_all(storage, contexture):
    rows = [(f"topic{number:02}", b"key", b"{}") for number in range(25)]
    outbox(storage, CARS, 1, [rows], name="many0000")
    out = contexture("outbox", "show", "many0000").out
    assert out.count("  topic") == 20
    assert "and 5 more; --json has all" in out
    assert len(json.loads(contexture("outbox", "show", "many0000", "--json").out)["topics"]) == 25


def test_show_names_the_failed_expectations(storage, contexture):
    outbox(storage, CARS, 1, [records("car1")], name="failed00", failed={"volume": "critical"})
    assert "expectation failed, critical: volume holds (found 7 of 9)" in contexture("outbox", "show", "failed00").out


def test_show_links_the_report_when_there_is_one(storage, contexture):
    name = approved(storage)
    assert "report none" in contexture("outbox", "show", name).out
    storage.write(f"vehicles/report/{name}/index.html", b"<html>")
    assert f"report {storage.root}/vehicles/report/{name}/index.html" in contexture("outbox", "show", name).out


def test_the_beginning_of_an_id_is_enough_when_only_one_begins_so(storage, contexture):
    approved(storage, 1, name="abcd1111")
    assert contexture("outbox", "show", "abcd").code == 0
    approved(storage, 2, name="abcd2222")
    done = contexture("outbox", "show", "abcd")
    assert done.code == 2
    assert "2 outboxes begin with abcd: abcd1111, abcd2222. Next: give more of the id" in done.err


def test_an_unknown_id_says_where_to_look(storage, contexture):
    done = contexture("outbox", "show", "ffffffff")
    assert done.code == 2
    assert f"there is no outbox ffffffff in {storage.root}" in done.err
    assert "CONTEXTURE_HOME" in done.err


def test_retry_forgets_failed_sends_and_says_how_to_start(storage, contexture):
    name = approved(storage)
    storage.publication("vehicles").attempts.keep(failed_send(name, attempt=10))
    done = contexture("outbox", "retry", name)
    assert done.code == 0
    assert "10 failed sends are cleared; now start publish_vehicles" in done.out
    assert storage.publication("vehicles").attempts.of_outbox(name) == ()


def test_retry_of_a_backfill_names_its_own_task_for_no_other_run_sends_it(storage, contexture):
    interval = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
    approved(storage, name="backfill", mode="backfill", interval=interval)
    assert contexture("outbox", "retry", "backfill").out == (
        "0 failed sends are cleared; now clear the publish task of its backfill in publish_vehicles: no other run "
        "sends it\n"
    )


@pytest.mark.parametrize("content", [b"", b"{}"])
def test_a_damaged_outbox_is_abandoned_as_its_error_says(storage, contexture, content):
    name = approved(storage)
    storage.write(PublicationPaths("vehicles").manifest(name), content)
    assert f"contexture outbox abandon {name} --reason" in contexture("outbox", "show", name).err
    done = contexture("outbox", "abandon", name, "--reason", "the disk was full")
    assert (done.code, done.out) == (0, f"outbox {name} is abandoned; the next run is full\n")
    assert (
        storage.publication("vehicles").state.pointer().full_run_due
        == f"outbox {name} was abandoned: the disk was full (ana)"
    )


def test_an_outbox_of_unknown_status_is_abandoned_as_its_error_says(storage, contexture):
    name = approved(storage)
    folder = PublicationPaths("vehicles")
    storage.write(folder.status(name), b"")
    message = contexture("outbox", "show", name).err
    assert f"copy its file in vehicles/pending/ over {folder.status(name)} and abandon the outbox" in message
    storage.copy(folder.pending_marker(1, name), folder.status(name))
    assert contexture("outbox", "abandon", name, "--reason", "the disk was full").code == 0


def test_the_state_of_sending_is_in_list_and_story(storage, contexture):
    name = approved(storage)
    storage.publication("vehicles").attempts.keep(failed_send(name, attempt=3))
    attempts = "attempt 3 of 11, next at 12:00:05Z"
    assert attempts in contexture("outbox", "list").out
    assert f"  shard 1: {attempts}: no broker. Next: wait\n" in contexture("outbox", "show", name).out
    line = json.loads(contexture("outbox", "list", "--json").out)["outboxes"][0]
    send = line["sends"][0]
    assert (line["attempts"], send["attempt"], send["allowed"], send["next_at"]) == (3, 3, 11, "2026-03-01T12:00:05Z")
    assert json.loads(contexture("outbox", "show", name, "--json").out)["sends"] == [send]


def test_retry_refuses_what_is_not_approved(storage, contexture):
    outbox(storage, CARS, 1, [records("car1")], name="prepared")
    done = contexture("outbox", "retry", "prepared")
    assert done.code == 2
    assert "outbox prepared is prepared, and only an approved one is sent" in done.err


@pytest.mark.parametrize("status", ["prepared", "approved"])
def test_abandon_ends_the_outbox_and_owes_a_full_run(storage, contexture, status):
    outbox(storage, CARS, 1, [records("car1")], name="stuck000")
    if status == "approved":
        storage.publication("vehicles").outboxes.set_status("stuck000", "approved", reason="good")
    done = contexture("outbox", "abandon", "stuck", "--reason", "topic is not ours", "--json")
    assert done.code == 0
    assert json.loads(done.out)["status"] == "abandoned"
    assert storage.publication("vehicles").outboxes.status("stuck000").steps[-1].reason == "topic is not ours (ana)"
    assert storage.publication("vehicles").outboxes.pending() == []
    owed = storage.publication("vehicles").state.pointer().full_run_due
    assert owed == "outbox stuck000 was abandoned: topic is not ours (ana)"


def test_what_was_done_is_kept_as_the_page_keeps_it(storage, contexture):
    tables = RunTables.of_home(storage.root)
    assert tables is not None
    tables.insert_run("vehicles", "run1", run_id="scheduled__1", mode="changes", sequence=1)
    name = approved(storage)
    contexture("outbox", "retry", name, "--reason", "the broker is back")
    contexture("outbox", "abandon", name, "--reason", "topic is not ours")
    abandoned, sent = tables.interventions("vehicles", limit=5)
    assert (sent.action, sent.who, sent.subject, sent.reason) == (
        *("Send the outbox again", "ana", name, "the broker is back"),
    )
    assert (abandoned.action, abandoned.outcome) == (
        *("Abandon the outbox", f"outbox {name} is abandoned; the next run is full"),
    )
    happened = [(each.type, json.loads(each.data).get("abandoned_by")) for each in tables.events_after(0, limit=10)]
    assert happened[-3:] == [
        ("contexture.operations.action.performed", None),
        ("contexture.operations.action.performed", None),
        ("contexture.operations.outbox.abandoned", "ana"),
    ]
    tables.close()


def test_abandoning_a_backfill_owes_nothing(storage, contexture):
    interval = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
    approved(storage, name="backfill", mode="backfill", interval=interval)
    assert "no full run is required" in contexture("outbox", "abandon", "backfill", "--reason", "wrong day").out
    assert storage.publication("vehicles").state.pointer().full_run_due is None


def test_what_is_concluded_can_not_be_abandoned_and_owes_nothing(storage, contexture):
    name = approved(storage)
    conclude(
        storage.publication("vehicles"),
        storage.publication("vehicles").outboxes.manifest(name),
        cluster="c",
        target="t",
    )
    done = contexture("outbox", "abandon", name, "--reason", "too late")
    assert done.code == 2
    assert f"outbox {name} is concluded and cannot become abandoned" in done.err
    assert storage.publication("vehicles").state.pointer().full_run_due is None


@pytest.mark.parametrize("arguments", [[], ["--reason", " "]])
def test_abandon_wants_a_reason(storage, contexture, arguments):
    name = approved(storage)
    done = contexture("outbox", "abandon", name, *arguments)
    assert done.code == 2
    assert "--reason" in done.err
    assert storage.publication("vehicles").outboxes.status(name).status == "approved"
