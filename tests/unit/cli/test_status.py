"""`contexture status`: one look at everything, for people and for monitoring."""

from __future__ import annotations

import json

import pytest

from builders.attempts import failed_send
from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus
from contexture.storage.conclusion import conclude
from contexture.storage.delivery import DeadLetterIndex
from contexture.storage.home import Home
from contexture.storage.inbox_writer import InboxWriter
from contexture.storage.incompleteness import Incompleteness
from contexture.storage.known_topics import LostTopics
from contexture.storage.shrink_report import ShrinkReport
from contexture.storage.state import StatePointer

FILE = "name: {name}\nsource: {{kind: ngsi, connection: context_broker, service: a, service_path: /b}}\n"


@pytest.fixture
def storage(tmp_path, monkeypatch):
    home, folder = tmp_path / "home", tmp_path / "publications"
    home.mkdir()
    folder.mkdir()
    (folder / "vehicles.yaml").write_text(FILE.format(name="vehicles"))
    (folder / "bikes.yaml").write_text(FILE.format(name="bikes"))
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    monkeypatch.setenv("CONTEXTURE_HOME", str(home))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(folder))
    return Home(str(home))


def concluded(storage: Home) -> None:
    manifest = outbox(storage, publication(), 1, [records("car1", "car2")], name="first000")
    storage.publication("vehicles").outboxes.set_status("first000", "approved", reason="good")
    conclude(storage.publication(manifest.publication), manifest, cluster="c", target="t")


def test_a_publication_that_never_ran_is_listed(storage, contexture):
    done = contexture("status")
    assert done.code == 0
    assert done.out == "bikes\n  no run has concluded yet\nvehicles\n  no run has concluded yet\n"


def test_the_last_concluded_run_is_shown(storage, contexture):
    concluded(storage)
    lines = contexture("status").out.splitlines()
    assert lines[3].startswith("  last concluded: changes run 1 at 20")
    assert lines[3].endswith(" UTC, 0 quarantined")
    assert lines[4] == "  target holds 0 identities, watermark 2026-03-01T12:00:00.000Z"


def test_what_failed_to_be_sent_is_reported_and_gives_exit_code_1(storage, contexture):
    concluded(storage)
    outbox(storage, publication(), 2, [records("car1")], name="second00")
    outboxes = storage.publication("vehicles").outboxes
    outboxes.set_status("second00", "approved", reason="good")
    assert contexture("status").code == 0
    storage.publication("vehicles").attempts.keep(failed_send("second00", attempt=3))
    done = contexture("status")
    assert done.code == 1
    assert done.out.splitlines()[-2:] == [
        "  pending: outbox second00 (run 2), approved, 3 failed sends",
        "    shard 1: attempt 3 of 11, next at 12:00:05Z: no broker. Next: wait",
    ]
    (pending,) = json.loads(contexture("status", "--json").out)["publications"][1]["pending"]
    assert (pending["attempts"], pending["sends"][0]["attempt"], pending["sends"][0]["allowed"]) == (3, 3, 11)


@pytest.mark.parametrize(("runs", "code"), [(2, 0), (3, 1)])
def test_deletions_that_are_not_detected_run_after_run_need_a_person(storage, contexture, runs, code):
    unseen = Incompleteness(since=NOON, runs=runs, why="the walk is short", next_step="read again")
    pointer = StatePointer(sequence=1, outbox="first000", concluded_at=NOON, incomplete=unseen)
    storage.publication("vehicles").state.commit(pointer)
    done = contexture("status")
    assert done.code == code
    line = "  deletions not detected since 2026-03-01 12:00:00 UTC, 3 runs: the walk is short. Next: read again"
    assert (line in done.out.splitlines()) == bool(code)


def test_a_removed_topic_needs_a_person_until_a_full_run_has_filled_it(storage, contexture):
    lost = LostTopics(noticed_at=NOON, topics=("cars",), count=1)
    pointer = StatePointer(
        sequence=1, outbox="first000", concluded_at=NOON, full_run_due=lost.sentence, lost_topics=lost
    )
    storage.publication("vehicles").state.commit(pointer)
    done = contexture("status")
    assert done.code == 1
    line = "  the next run is full: cars was removed from Kafka, noticed at 2026-03-01 12:00:00 UTC"
    assert line in done.out.splitlines()
    storage.publication("vehicles").state.commit(pointer.model_copy(update={"full_run_due": None, "lost_topics": None}))
    assert contexture("status").code == 0


def test_a_shard_that_was_sent_in_the_end_needs_no_person(storage, contexture):
    outbox(storage, publication(), 1, [records("car1")], name="first000")
    storage.publication("vehicles").attempts.keep(failed_send("first000", state="sent", next_at=None))
    assert contexture("status").code == 0


def test_a_last_run_that_failed_needs_a_person_though_nothing_waits_to_be_sent(storage, contexture):
    concluded(storage)
    store = RunTables.of_home(storage.root)
    assert store is not None
    store.insert_run("vehicles", "run2", run_id="manual__2", mode="changes", sequence=2)
    assert contexture("status").code == 0
    store.set_run_failed("vehicles", "manual__2", task="quality_gate", message="critical expectations failed")
    assert contexture("status", "vehicles").code == 1
    assert contexture("status", "bikes").code == 0
    store.insert_run("vehicles", "run3", run_id="manual__3", mode="changes", sequence=3)
    store.set_run_succeeded("vehicles", "run3")
    assert contexture("status").code == 0


def test_a_backfill_that_went_well_hides_no_run_that_failed(storage, contexture):
    store = RunTables.of_home(storage.root)
    assert store is not None
    store.set_run_failed("vehicles", "scheduled__1", task="stage", message="no broker")
    store.insert_run("vehicles", "again", run_id="backfill__1", mode="backfill", sequence=1)
    store.set_run_succeeded("vehicles", "again")
    done = contexture("status", "vehicles")
    assert (done.code, "latest run scheduled__1: failed since" in done.out) == (1, True)
    assert "in stage: no broker" in done.out


def test_a_run_that_waits_for_an_answer_is_reported_and_needs_a_person(storage, contexture, tmp_path):
    concluded(storage)
    asking = FILE.format(name="vehicles").replace("service: a", "service: a, shrink_limit: {beyond: ask}")
    (tmp_path / "publications" / "vehicles.yaml").write_text(asking)
    store = RunTables.of_home(storage.root)
    assert store is not None
    store.insert_run("vehicles", "run2", run_id="manual__2", mode="full", sequence=2)
    storage.publication("vehicles").run("run2").write_shrink_report(
        ShrinkReport.of(["car1"], count=90, held=100, limit=20)
    )
    done = contexture("status", "vehicles")
    assert done.code == 1
    line = "  waiting for approval: 90 of 100 identities would be deleted, once a person approves"
    assert line in done.out.splitlines()


def test_notifications_that_wait_are_counted(storage, contexture):
    writer = InboxWriter(storage.publication("bikes").open_inbox_folder(), clock_ns=lambda: 1_700_000_000_000_000_000)
    for _ in range(2):
        writer.submit({}, b"{}").result()
    writer.close()
    lines = contexture("status").out.splitlines()
    assert lines[:3] == [
        "bikes",
        "  no run has concluded yet",
        "  inbox: 2 files of notifications wait, the oldest since 2023-11-14 22:13:20 UTC",
    ]
    bikes, vehicles = json.loads(contexture("status", "--json").out)["publications"]
    assert (bikes["waiting"], vehicles["waiting"]) == ({"files": 2, "since": "2023-11-14T22:13:20Z"}, None)


def test_a_registry_of_which_nothing_was_sent_yet_is_shown(storage, contexture):
    concluded(storage)
    manifest = storage.publication("vehicles").outboxes.manifest("first000")
    path = PublicationPaths("vehicles").manifest("first000")
    storage.write(path, manifest.model_copy(update={"baseline": True}).to_json())
    assert "nothing was sent; the registry held" in contexture("status").out


def test_a_required_full_run_is_shown(storage, contexture):
    concluded(storage)
    outbox(storage, publication(), 2, [records("car1")], name="second00")
    contexture("outbox", "abandon", "second00", "--reason", "not ours")
    assert "the next run is full: outbox second00 was abandoned: not ours" in contexture("status").out


def test_files_without_a_publication_are_marked(storage, contexture, monkeypatch, tmp_path):
    concluded(storage)
    (tmp_path / "publications" / "vehicles.yaml").unlink()
    assert "vehicles (no valid publication file)" in contexture("status").out.splitlines()


def test_json_has_every_field(storage, contexture):
    concluded(storage)
    found = json.loads(contexture("status", "--json").out)
    assert found["home"] == storage.root
    bikes, vehicles = found["publications"]
    assert (bikes["publication"], bikes["configured"], bikes["outbox"], bikes["pending"]) == ("bikes", True, None, [])
    assert (vehicles["outbox"], vehicles["sequence"], vehicles["mode"], vehicles["quarantined"]) == (
        "first000",
        1,
        "changes",
        0,
    )


def test_one_publication_is_shown_alone_with_what_monitoring_asks_for(storage, contexture):
    concluded(storage)
    (vehicles,) = json.loads(contexture("status", "vehicles", "--json").out)["publications"]
    assert {name: vehicles["status"][name] for name in ("running", "health", "attempt", "next_try_at")} == {
        "running": True,
        "health": "idle",
        "attempt": None,
        "next_try_at": None,
    }
    assert vehicles["status"]["suspended"] is None
    assert contexture("status", "vehicles").out.splitlines()[0] == "vehicles"


def test_a_publication_that_is_not_there_is_reported(storage, contexture):
    done = contexture("status", "trains")
    assert done.code == 2
    assert "there is no publication trains. Next: name one of bikes, vehicles" in done.err


def test_an_empty_home_says_where_it_looked(contexture, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "nowhere"))
    done = contexture("status")
    assert (done.code, done.out) == (
        0,
        f"no publication in {tmp_path / 'nothing'}; set CONTEXTURE_HOME as Airflow has it\n",
    )


def test_the_operational_tables_add_the_latest_run_and_the_transactions(storage, contexture):
    concluded(storage)
    store = RunTables.of_home(storage.root)
    assert store is not None
    store.insert_run("vehicles", "run2", run_id="manual__2", mode="full", sequence=2)
    store.set_run_failed("vehicles", "manual__2", task="publish", message="no broker")
    for number, status in enumerate((TransactionStatus.SENT, TransactionStatus.BROKER_ERROR)):
        row = TransactionRow("vehicles", "second00", 0, number, status, 5, 500, 5, 4711, None, NOON)
        store.set_transaction(row)
    lines = contexture("status").out.splitlines()
    assert any(line.startswith("  latest run manual__2: failed since 2") for line in lines)
    assert any(line.endswith(" UTC in publish: no broker") for line in lines)
    assert "  transactions: 1 sent, 1 broker error; 5 records sent, the last at 2026-03-01 12:00:00 UTC" in lines
    bikes, vehicles = json.loads(contexture("status", "--json").out)["publications"]
    assert bikes["operations"] is None
    operations = vehicles["operations"]
    assert (operations["last_run"]["state"], operations["transactions"], operations["last_source_transaction"]) == (
        "failed",
        {"sent": 1, "broker_error": 1},
        4711,
    )


def test_looking_makes_no_tables(storage, contexture):
    contexture("status")
    assert storage.files("") == []


def test_tables_that_are_away_are_reported_and_the_rest_is_shown(storage, contexture, monkeypatch):
    concluded(storage)
    storage.write("operations.sqlite", b"this is no database, but it is long enough to be taken for one" * 20)
    done = contexture("status")
    assert done.code == 0
    assert "last concluded: changes run 1" in done.out
    assert done.err.startswith("without the operational tables: the operational tables in sqlite:///")
    document = json.loads(contexture("status", "--json").out)
    assert "do not respond (DatabaseError)" in document["operational_tables_problem"]
    assert [each["operations"] for each in document["publications"]] == [None, None]


def test_damage_of_one_publication_is_reported_with_the_way_out_and_hides_none_of_the_others(storage, contexture):
    concluded(storage)
    outbox(storage, publication(name="bikes"), 1, [records("bike1")], name="bikes000")
    storage.write("bikes/state/CURRENT", b"{")
    done = contexture("status")
    assert done.code == 1
    assert done.out.splitlines()[:3] == [
        "bikes",
        "  stopped: bikes/state/CURRENT cannot be read as StatePointer. Next: restore the file from a backup, or see "
        "the how-to on recovering; report this if nothing has damaged the storage",
        "vehicles",
    ]
    assert "target holds" in done.out
    bikes, vehicles = json.loads(contexture("status", "--json").out)["publications"]
    assert (bikes["damaged"], bikes["status"]["running"], vehicles["damaged"]) == (True, False, False)


def test_a_damaged_manifest_of_the_last_outbox_hides_only_what_it_says(storage, contexture):
    concluded(storage)
    storage.write("vehicles/outbox/first000/manifest.json", b"{")
    done = contexture("status")
    assert done.code == 0
    assert "last concluded: run 1 at 20" in done.out
    assert "no longer stored" in done.out


def test_records_that_can_never_be_sent_are_counted(storage, contexture, tmp_path):
    concluded(storage)
    assert "dead letters" not in contexture("status").out
    manifest = storage.publication("vehicles").outboxes.manifest("first000")
    storage.publication(manifest.publication).outbox(manifest.outbox).write_dead_letters(
        DeadLetterIndex(shards={0: (1,)})
    )
    assert "  dead letters in a topic that the publication no longer names: 1 of the last concluded run" in (
        contexture("status").out.splitlines()
    )
    file = tmp_path / "publications" / "vehicles.yaml"
    file.write_text(FILE.format(name="vehicles") + "publish: {on_failure: dead-letter}\n")
    store = RunTables.of_home(storage.root)
    row = TransactionRow("vehicles", "first000", 0, 0, TransactionStatus.SENT, 2, 50, 2, None, None, NOON)
    store.set_transaction(row, dead_letters=1)
    line = (
        "  dead letters in contexture.dead-letter.vehicles: 1 of the last concluded run, 1 of all stored runs, the "
        "last at 2026-03-01 12:00:00 UTC"
    )
    done = contexture("status")
    assert (done.code, line in done.out.splitlines()) == (0, True)
    store.insert_run("vehicles", "run2", run_id="manual__2", mode="full", sequence=2)
    store.set_run_succeeded("vehicles", "run2")
    assert f"{line}; a full run has retried them since" in contexture("status").out.splitlines()
    (vehicles,) = json.loads(contexture("status", "vehicles", "--json").out)["publications"]
    assert vehicles["status"]["dead_letters"]["outstanding"] is False
