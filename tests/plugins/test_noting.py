"""What the tasks leave in the operational tables, and that these hold nothing up."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.fake_target import FakeTarget
from builders.outboxes import NOON, outbox, publication, records
from builders.registry_outboxes import RegistryChange, registry_outbox, structures
from builders.tables import rows
from contexture.errors import RejectedError, RetriableError
from contexture.monitoring import RunTables, RunTableWriter, TransactionStatus
from contexture.sending import LedgerEntry
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.run import RunRequest
from contexture_airflow.run_events import RunEvents, ShardEvents, open_run_events, record_source_read
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.settle import finish_open_transaction

VEHICLES = publication()
CODELISTS = structures()
LOG = (
    RegistryChange(11, ("FREQ", "AREA")),
    RegistryChange(12, ("UNIT",)),
    RegistryChange(12, ("AREA",), deletions=True),
)


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    return Home(str(tmp_path))


@pytest.fixture
def store(storage: Home) -> RunTables:
    found = RunTables.of_home(storage.root)
    assert found is not None
    return found


def approved(storage: Home) -> Manifest:
    manifest = outbox(storage, VEHICLES, 1, [records("car1", "car2")])
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="test")
    return manifest


def send(storage: Home, manifest: Manifest, *failures: Exception) -> None:
    kafka = FakeTarget(failures=list(failures), topics={"cars"}, ledger_topic="ledger-a")  # type: ignore[arg-type]
    with open_run_events(storage, pytest.fail) as events:
        shard_events = events.shard(manifest, 0)
        attempts = build_shard_attempts(
            storage.publication("vehicles"), "outbox1", 0, VEHICLES, on_change=shard_events.attempts_changed
        )
        send_shard(storage.publication(manifest.publication), manifest, 0, kafka, attempts, shard_events)


def statuses(store: RunTables) -> list[tuple[int, TransactionStatus, int, str | None]]:
    return [(row.number, row.status, row.records, row.message) for row in store.transactions("vehicles")]


def test_a_run_that_begins_is_noted_with_what_its_publication_sends_by(storage: Home, store: RunTables) -> None:
    with open_run_events(storage, pytest.fail) as events:
        finish_open_transaction(
            storage.publication(VEHICLES.name),
            VEHICLES,
            RunRequest(run_id="next"),
            FakeTarget(),
            lambda sentence: None,
            events,
        )  # type: ignore[arg-type]
    assert [(run.run_id, run.state) for run in store.runs("vehicles")] == [("next", "running")]
    url = f"sqlite:///{storage.root}/operations.sqlite"
    lines = [line for (line,) in rows(url, "SELECT property FROM kafa_producer_config_properties")]
    assert "batches.batch_size=1" in lines
    assert rows(url, "SELECT conn_key, conn_value FROM kafka_connection_settings") == [
        ("bootstrap.servers", "broker:9092"),
        ("sasl.password", "***"),
    ]


def test_what_was_sent_is_noted_with_its_size(storage: Home, store: RunTables) -> None:
    send(storage, approved(storage))
    assert statuses(store) == [(0, TransactionStatus.SENT, 2, None)]
    assert store.attempts() == []


def test_each_failed_attempt_is_noted_and_what_became_of_the_last(storage: Home, store: RunTables) -> None:
    send(storage, approved(storage), *[RetriableError("no broker", next_step="wait")] * 2)
    assert [(row.attempt, row.state, row.message) for row in reversed(store.attempts("vehicles", "outbox1"))] == [
        (1, "waiting", "no broker. Next: wait"),
        (2, "sent", "no broker. Next: wait"),
    ]
    assert statuses(store) == [(0, TransactionStatus.SENT, 2, None)]


def test_used_up_leaves_a_broker_error_and_the_next_run_makes_it_sent(storage: Home, store: RunTables) -> None:
    manifest = approved(storage)
    with pytest.raises(RetriableError):
        send(storage, manifest, *[RetriableError("no broker", next_step="wait")] * 3)
    ((number, status, _, message),) = statuses(store)
    assert (number, status) == (0, TransactionStatus.BROKER_ERROR)
    assert message is not None
    assert message.startswith("batch_ttl is used up after 3 attempts")
    with open_run_events(storage, pytest.fail) as events:
        target = FakeTarget(ledger_topic="ledger-a")
        finish_open_transaction(
            storage.publication(VEHICLES.name),
            VEHICLES,
            RunRequest(run_id="next"),
            target,
            lambda sentence: None,
            events,
        )
    assert statuses(store) == [(0, TransactionStatus.SENT, 2, None)]
    (run,) = store.runs()
    assert (run.run_id, run.mode, run.sequence, run.state) == ("next", "changes", 2, "running")


def test_what_can_never_be_sent_is_a_local_failure(storage: Home, store: RunTables) -> None:
    manifest = approved(storage)
    kafka = FakeTarget()

    def refuse(*_: object) -> None:
        raise RejectedError("too large", next_step="raise the limit", status=2)

    kafka.send = refuse  # type: ignore[method-assign,assignment]
    attempts = build_shard_attempts(storage.publication("vehicles"), "outbox1", 0, VEHICLES)
    with RunTableWriter(store) as tables, pytest.raises(RejectedError):
        send_shard(
            storage.publication(manifest.publication),
            manifest,
            0,
            kafka,
            attempts,
            RunEvents(tables).shard(manifest, 0),
        )
    assert statuses(store) == [(0, TransactionStatus.LOCAL_FAILURE, 0, "too large. Next: raise the limit")]


@pytest.mark.parametrize("address", ["sqlite:////nowhere/at/all.sqlite", "no url", "oracle+nothing://x"])
def test_tables_that_can_not_be_opened_are_reported_once_and_everything_is_sent(
    storage: Home, monkeypatch: pytest.MonkeyPatch, address: str, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("CONTEXTURE_DATABASE", address.replace("/nowhere", str(blocked)))
    said: list[str] = []
    manifest, kafka = approved(storage), FakeTarget(topics={"cars"})
    with open_run_events(storage, said.append) as events:
        attempts = build_shard_attempts(storage.publication("vehicles"), "outbox1", 0, VEHICLES)
        send_shard(storage.publication(manifest.publication), manifest, 0, kafka, attempts, events.shard(manifest, 0))
    assert len(kafka.sent) == 2
    assert len(said) == 1
    assert "operational tables" in said[0]


def registry_shard(storage: Home, tables: RunTableWriter) -> ShardEvents:
    return RunEvents(tables).shard(registry_outbox(storage, CODELISTS, 1, LOG), 0)


def transactions_of(store: RunTables) -> list[tuple[int | None, bool, TransactionStatus, int]]:
    rows = sorted(store.transactions("codelists"), key=lambda row: row.number)
    return [(row.source_transaction, row.source_deletions, row.status, row.records) for row in rows]


def committed(number: int, position: int, records: int) -> LedgerEntry:
    part = LOG[number]
    return LedgerEntry("outbox1", 1, position, records, 6, number, part.id, NOON, part.deletions)


PENDING, SENT = TransactionStatus.PENDING, TransactionStatus.SENT


def test_what_a_registry_did_is_pending_under_its_numbers_until_it_is_acknowledged(
    storage: Home, store: RunTables
) -> None:
    with RunTableWriter(store) as tables:
        shard_events = registry_shard(storage, tables)
        shard_events.started()
    assert transactions_of(store) == [(11, False, PENDING, 0), (12, False, PENDING, 0), (12, True, PENDING, 0)]
    with RunTableWriter(store) as tables:
        shard_events = registry_shard(storage, tables)
        shard_events.started()
        shard_events.committed(committed(0, 2, 2))
    assert transactions_of(store) == [(11, False, SENT, 2), (12, False, PENDING, 0), (12, True, PENDING, 0)]


def test_transactions_that_another_instance_sent_are_recorded_as_sent(storage: Home, store: RunTables) -> None:
    with RunTableWriter(store) as tables:
        shard_events = registry_shard(storage, tables)
        shard_events.started()
        shard_events.skipped(2)
        shard_events.committed(committed(2, 4, 1))
    assert transactions_of(store) == [(11, False, SENT, 0), (12, False, SENT, 0), (12, True, SENT, 1)]
    messages = sorted((row.number, row.message) for row in store.transactions("codelists"))
    assert messages == [
        (0, "in Kafka already when this send began"),
        (1, "in Kafka already when this send began"),
        (2, None),
    ]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RejectedError("too large", next_step="-", status=2), TransactionStatus.LOCAL_FAILURE),
        (RejectedError("too large", next_step="-", status=3), TransactionStatus.BROKER_ERROR),
    ],
    ids=["client", "broker"],
)
def test_the_transaction_that_stops_a_producer_says_why_and_what_follows_stays_pending(
    storage: Home, store: RunTables, error: RejectedError, status: TransactionStatus
) -> None:
    with RunTableWriter(store) as tables:
        shard_events = registry_shard(storage, tables)
        shard_events.started()
        shard_events.committed(committed(0, 2, 2))
        shard_events.failed(error)
    assert transactions_of(store) == [(11, False, SENT, 2), (12, False, status, 0), (12, True, PENDING, 0)]


def test_a_registry_that_fails_is_an_unexpected_error_until_a_run_learns_what_it_did(
    storage: Home, store: RunTables
) -> None:
    fault = RetriableError("the registry answers 500", next_step="wait")
    for run in ("run1", "run2"):
        with (
            pytest.raises(RetriableError),
            record_source_read(storage, CODELISTS, run, pytest.fail),
        ):
            raise fault
    rows = [(row.outbox, row.status, row.message) for row in store.transactions("codelists")]
    unexpected = TransactionStatus.UNEXPECTED
    assert sorted(rows) == [(run, unexpected, "the registry answers 500. Next: wait") for run in ("run1", "run2")]
    with record_source_read(storage, CODELISTS, "run3", pytest.fail):
        pass
    assert store.transactions("codelists") == []


def test_errors_that_are_not_ours_are_noted_without_their_text(storage: Home, store: RunTables) -> None:
    with pytest.raises(ValueError), record_source_read(storage, CODELISTS, "run1", pytest.fail):
        raise ValueError("a code list's content")
    assert [row.message for row in store.transactions("codelists")] == ["ValueError"]


def test_a_broker_that_fails_is_no_transaction(storage: Home, store: RunTables) -> None:
    with pytest.raises(RetriableError), record_source_read(storage, VEHICLES, "run1", pytest.fail):
        raise RetriableError("the broker answers 500", next_step="wait")
    assert store.transactions() == []


def test_records_that_went_to_the_dead_letters_are_noted_with_their_transaction(
    storage: Home, store: RunTables
) -> None:
    manifest = approved(storage)
    kafka = FakeTarget(topics={"cars"}, ledger_topic="ledger-a", refused={0: (1,)})
    with open_run_events(storage, pytest.fail) as events:
        attempts = build_shard_attempts(storage.publication("vehicles"), "outbox1", 0, VEHICLES)
        send_shard(storage.publication(manifest.publication), manifest, 0, kafka, attempts, events.shard(manifest, 0))
    ((row,), dead_letters) = store.transactions("vehicles"), store.dead_letters("vehicles")
    assert (row.status, row.records, row.dead_letters) == (TransactionStatus.SENT, 2, 1)
    assert (dead_letters.letters, dead_letters.outstanding) == (1, True)
