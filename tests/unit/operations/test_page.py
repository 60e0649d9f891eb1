"""What the page shows of an installation's files and tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from builders.attempts import failed_send
from builders.outboxes import NOON, outbox, publication, records
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus
from contexture.monitoring.history import ALL_TRANSACTIONS, TransactionFilter, Volume
from contexture.operations.status import detail
from contexture.operations.status.detail import StepTime, TopicLine
from contexture.operations.status.health import DagFacts, PublicationHealth
from contexture.operations.status.overview import overview
from contexture.operations.status.sources import Sources, Tables
from contexture.publications.fingerprint import ResolvedKey
from contexture.storage.home import Home
from contexture.storage.state import StatePointer

RESTING = DagFacts(paused=False, active=False, next_run_at=NOON + timedelta(minutes=5))
PAUSED = DagFacts(paused=True, active=False, next_run_at=NOON)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunTables]:
    opened = RunTables(f"sqlite:///{tmp_path}/operations.sqlite")
    yield opened
    opened.close()


def sources(storage: Home, store: RunTables | None = None, **dags: DagFacts) -> Sources:
    return Sources(storage, Tables(store), {"vehicles": publication()}, dags, NOON)


def sent(number: int, *, hours_ago: int = 0, status: TransactionStatus = TransactionStatus.SENT) -> TransactionRow:
    return TransactionRow(
        publication="vehicles",
        outbox="outbox1",
        shard=0,
        number=number,
        status=status,
        records=10,
        bytes=1_000,
        position=10,
        source_transaction=40 + number,
        message=None,
        updated_at=NOON - timedelta(hours=hours_ago),
    )


def test_an_empty_installation_has_an_empty_overview(storage):
    found = overview(Sources(storage, Tables(None), {}, {}, NOON))
    assert found.lines == ()
    assert found.counts == {}
    assert found.paging.pages == 1


def test_a_new_publication_has_never_run(storage):
    [line] = overview(sources(storage, vehicles=RESTING)).lines
    assert (line.name, line.health, line.next_run_at) == ("vehicles", "never run", NOON + timedelta(minutes=5))
    assert (line.last_run, line.last_sent, line.quarantined, line.today) == (None, None, None, Volume())


def test_a_suspended_publication_has_no_next_run(storage):
    [line] = overview(sources(storage, vehicles=PAUSED)).lines
    assert (line.paused, line.next_run_at) == (True, None)


def test_the_schedule_is_shown_in_words(storage):
    by_the_hour = publication(schedule="@hourly")
    [line] = overview(Sources(storage, Tables(None), {"vehicles": by_the_hour}, {"vehicles": RESTING}, NOON)).lines
    assert line.schedule == "Every hour"


def test_without_a_good_file_no_next_run_is_promised(storage):
    [line] = overview(Sources(storage, Tables(None), {}, {"vehicles": RESTING}, NOON)).lines
    assert (line.is_configured, line.next_run_at) == (False, None)


def test_a_run_that_was_rejected_is_on_the_publication_s_page_with_its_data(storage, store):
    for sequence in (1, 2):
        outbox(storage, publication(), sequence, [records("a")])
    for end in ("approved", "concluded"):
        storage.publication("vehicles").outboxes.set_status("outbox1", end, reason="good")
    storage.publication("vehicles").state.commit(StatePointer(sequence=1, outbox="outbox1", concluded_at=NOON))
    store.insert_run("vehicles", "run2", run_id="scheduled__2", mode="changes", sequence=2)
    store.set_run_outbox("vehicles", "run2", outbox="outbox2")
    storage.publication("vehicles").outboxes.set_status("outbox2", "rejected", reason="1 critical expectation failed")
    store.set_run_failed("vehicles", "scheduled__2", task="quality_gate", message="1 critical expectation failed")
    found = detail.detail(sources(storage, store, vehicles=RESTING), "vehicles")
    states = [(each.outbox, each.status) for each in found.qualities]
    assert states == [("outbox2", "rejected"), ("outbox1", "concluded")]


def test_a_backfill_neither_stops_a_publication_nor_repairs_it(storage, store):
    store.set_run_failed("vehicles", "scheduled__1", task="stage", message="no broker")
    store.insert_run("vehicles", "again", run_id="backfill__1", mode="backfill", sequence=1)
    store.set_run_succeeded("vehicles", "again")
    store.insert_run("buses", "run1", run_id="scheduled__1", mode="changes", sequence=1)
    store.set_run_succeeded("buses", "run1")
    store.set_run_failed("buses", "backfill__1", task="settle", message="no broker")
    storage.publication("buses").state.commit(StatePointer(concluded_at=NOON))
    lines = overview(sources(storage, store, vehicles=RESTING, buses=RESTING)).lines
    assert [(line.name, line.health) for line in lines] == [("vehicles", "stopped"), ("buses", "idle")]


def test_what_is_suspended_is_counted_with_any_health_and_found(storage, store):
    store.set_run_failed("vehicles", "scheduled__1", task="stage", message="no broker")
    known = sources(storage, store, vehicles=PAUSED, buses=PAUSED, trams=RESTING)
    found = overview(known, suspended=True)
    assert (found.suspended, [line.name for line in found.lines]) == (2, ["vehicles", "buses"])
    assert [line.name for line in overview(known, health=PublicationHealth.NEVER_RUN, suspended=True).lines] == [
        "buses"
    ]
    assert len(overview(known).lines) == 3


def test_today_begins_at_midnight_and_counts_what_was_sent(storage, store):
    for row in (
        sent(0, hours_ago=13),
        sent(1, hours_ago=12),
        sent(2, hours_ago=1),
        sent(3, status=TransactionStatus.PENDING),
    ):
        store.set_transaction(row)
    [line] = overview(sources(storage, store, vehicles=RESTING)).lines
    assert line.today == Volume(transactions=2, records=20, bytes=2_000)
    assert line.source_transaction == 42


def test_what_waits_is_shown_with_its_attempts(storage):
    outbox(storage, publication(), 1, [records("a")])
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="it is good")
    storage.publication("vehicles").attempts.keep(failed_send("outbox1", attempt=3, shard=0))
    [line] = overview(sources(storage, vehicles=RESTING)).lines
    assert (line.health, line.reason) == ("waiting to send", "shard 0, attempt 3 of 11, next at 12:00:05Z")
    [pending] = line.pending
    assert (pending.outbox, pending.status, pending.attempts) == (
        "outbox1",
        "approved",
        "shard 0: attempt 3 of 11, next at 12:00:05Z",
    )
    assert pending.next_at == NOON + timedelta(seconds=5)


def test_those_that_need_a_person_come_first_and_are_found_by_where_they_stand(storage, store):
    dags = {f"publication-{number:03}": RESTING for number in range(60)}
    store.set_run_failed("publication-059", "scheduled__1", task="stage", message="no broker")
    storage.publication("publication-058").state.commit(
        StatePointer(concluded_at=NOON, full_run_due="the cluster is new")
    )
    first = overview(sources(storage, store, **dags))
    assert [line.name for line in first.lines[:3]] == ["publication-059", "publication-058", "publication-000"]
    assert first.lines[0].reason == "stage: no broker"
    assert first.counts == {"stopped": 1, "resync required": 1, "never run": 58}
    assert len(overview(sources(storage, store, **dags), page=2).lines) == 10
    stopped = overview(sources(storage, store, **dags), health=PublicationHealth.STOPPED)
    assert [line.name for line in stopped.lines] == ["publication-059"]


def test_what_is_late_comes_after_trouble_with_a_name_and_before_all_that_is_well(storage, store):
    every_five_minutes = {name: publication(name=name) for name in ("a", "b", "c", "d", "e")}
    minutes_ago = {"a": 1, "b": 21, "c": 31, "d": 1, "e": 1}
    for name, minutes in minutes_ago.items():
        concluded = StatePointer(concluded_at=NOON - timedelta(minutes=minutes), outbox="outbox1")
        storage.publication(name).state.commit(concluded)
    storage.publication("e").state.commit(StatePointer(concluded_at=NOON, full_run_due="a topic was removed"))
    dags = {name: PAUSED if name == "d" else RESTING for name in every_five_minutes}
    found = overview(Sources(storage, Tables(store), every_five_minutes, dags, NOON)).lines
    assert [(line.name, line.health, line.freshness.late_seconds) for line in found] == [
        ("e", "resync required", 0.0),
        ("c", "idle", 1_500.0),
        ("b", "idle", 900.0),
        ("a", "idle", 0.0),
        ("d", "idle", 0.0),
    ]
    [*_, suspended] = found
    assert (suspended.freshness.age_seconds, suspended.freshness.due_at) == (60.0, None)


def test_a_damaged_file_stops_its_own_publication_only(storage):
    storage.write("vehicles/state/CURRENT", b"{")
    lines = overview(sources(storage, vehicles=RESTING, buses=RESTING)).lines
    assert [(line.name, line.health.value) for line in lines] == [("vehicles", "stopped"), ("buses", "never run")]
    assert lines[0].reason.startswith("vehicles/state/CURRENT cannot be read as StatePointer. Next: restore the file")


def test_without_tables_the_files_are_still_shown(storage):
    broken = RunTables("postgresql+psycopg2://contexture:s3cret@127.0.0.1:1/none")
    storage.publication("vehicles").state.commit(StatePointer(concluded_at=NOON, identities=7))
    found = overview(sources(storage, broken, vehicles=RESTING))
    [line] = found.lines
    assert (line.identities, line.today) == (7, None)
    unknown = "whether its last run failed is not known without the operational tables"
    assert (line.health, line.reason) == ("idle", unknown)
    storage.publication("vehicles").state.commit(
        StatePointer(concluded_at=NOON, full_run_due="the registry was restored")
    )
    [line] = overview(sources(storage, broken, vehicles=RESTING)).lines
    assert (line.health, line.reason) == ("resync required", f"the registry was restored; {unknown}")
    assert found.tables_problem is not None
    assert "127.0.0.1" in found.tables_problem
    assert "s3cret" not in found.tables_problem


def test_the_configuration_is_shown_with_its_defaults(storage):
    keys = detail.configuration(sources(storage, vehicles=RESTING), "vehicles")
    assert ResolvedKey(0, "name", "vehicles", is_default=False) in keys
    assert ResolvedKey(0, "source", None, is_default=False) in keys
    assert ResolvedKey(1, "archive_days", "30", is_default=True) in keys


def test_what_looks_like_a_secret_is_covered(storage):
    careless = publication(description="see https://me:hunter2@example.org")
    given = Sources(storage, Tables(None), {"vehicles": careless}, {"vehicles": RESTING}, NOON)
    assert "hunter2" not in str(detail.configuration(given, "vehicles"))


def test_a_publication_without_a_file_is_shown_by_its_runs(storage):
    found = detail.detail(sources(storage, buses=RESTING), "buses")
    assert (found.configuration, found.line.is_configured) == ((), False)


def test_rules_and_reports_are_those_of_the_last_outbox_and_of_what_waits(storage):
    first = outbox(storage, publication(), 1, [records("a")])
    changed = first.model_copy(update={"quarantined": {"id_is_text": 2, "a_is_b": 5}, "quarantined_entities": 6})
    storage.write("vehicles/outbox/outbox1/manifest.json", changed.to_json())
    storage.write("vehicles/report/outbox1/index.html", b"<p>")
    outbox(storage, publication(), 2, [records("b")])
    storage.publication("vehicles").state.commit(StatePointer(sequence=1, outbox="outbox1", concluded_at=NOON))
    found = detail.detail(sources(storage, vehicles=RESTING), "vehicles")
    assert [quality.outbox for quality in found.qualities] == ["outbox2", "outbox1"]
    quality = found.qualities[1]
    assert [(rule.rule, rule.count) for rule in quality.rules] == [("a_is_b", 5), ("id_is_text", 2)]
    assert (quality.report, quality.data_docs, quality.quarantined) == (True, False, 6)
    assert found.line.quarantined == 6


def test_transactions_come_by_page_and_by_status(storage, store):
    for number in range(120):
        store.set_transaction(sent(number))
    store.set_transaction(sent(120, status=TransactionStatus.BROKER_ERROR))
    given = sources(storage, store, vehicles=RESTING)
    third = detail.transactions(given, "vehicles", ALL_TRANSACTIONS, page=3)
    assert (len(third.rows), third.paging.total) == (21, 121)
    broken = TransactionFilter(status=TransactionStatus.BROKER_ERROR)
    refused = detail.transactions(given, "vehicles", broken, page=1)
    assert [row.number for row in refused.rows] == [120]
    assert refused.statuses == {0: 0, 1: 120, 2: 0, 3: 1, 4: 0}


def test_statuses_are_counted_among_what_the_other_filters_leave(storage, store):
    for number in range(3):
        store.set_transaction(sent(number, hours_ago=number))
    store.set_transaction(sent(3, hours_ago=3, status=TransactionStatus.BROKER_ERROR))
    given = sources(storage, store, vehicles=RESTING)
    which = TransactionFilter(status=TransactionStatus.SENT, until=NOON)
    found = detail.transactions(given, "vehicles", which, page=9)
    assert [row.number for row in found.rows] == [1, 2]
    assert (found.paging.number, found.paging.total) == (1, 2)
    assert found.statuses == {0: 0, 1: 2, 2: 0, 3: 1, 4: 0}
    assert found.which == which


def test_runs_are_shown_with_the_steps_that_airflow_knows(storage, store):
    store.insert_run("vehicles", "run1", run_id="scheduled__1", mode="changes", sequence=1)
    store.set_run_succeeded("vehicles", "run1")
    given = sources(storage, store, vehicles=RESTING)
    rows, paging = detail.run_rows(given, "vehicles", page=9)
    steps = {"scheduled__1": (StepTime("stage", "success", 12.5),)}
    [line] = detail.runs(rows, paging, steps, given).lines
    assert (line.run.state, line.steps[0].task, line.steps[0].seconds) == ("succeeded", "stage", 12.5)


def test_topics_are_those_of_the_last_outbox_that_was_sent(storage, store):
    outbox(storage, publication(), 1, [records("a", "b", topic="cars"), records("c", topic="buses")])
    outbox(storage, publication(), 2, [])
    store.set_transaction(sent(0))
    storage.publication("vehicles").state.commit(StatePointer(sequence=2, outbox="outbox2", concluded_at=NOON))
    found = detail.topics(sources(storage, store, vehicles=RESTING), "vehicles", page=1)
    assert found.outbox == "outbox1"
    assert found.lines == (TopicLine("cars", 2), TopicLine("buses", 1))


def test_no_outbox_has_no_topics(storage):
    found = detail.topics(sources(storage, vehicles=RESTING), "vehicles", page=1)
    assert (found.outbox, found.lines) == (None, ())
