"""Tables that were lost hold the same transactions again, as far as ledger and storage know them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.attempts import failed_send
from builders.outboxes import NOON, outbox, publication, records
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus
from contexture.operations.actions.rebuild import Rebuilt, rebuild_tables
from contexture.sending import LedgerEntry
from contexture.storage.home import Home


def entry(name: str = "first000", number: int = 0, position: int = 2, **changes: object) -> LedgerEntry:
    found = LedgerEntry(name, 1, position, 2, 60, number, None, NOON + timedelta(seconds=number))
    return replace(found, **changes)  # type: ignore[arg-type]


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


@pytest.fixture
def store(tmp_path: Path) -> RunTables:
    return RunTables(f"sqlite:///{tmp_path / 'tables.sqlite'}")


def rows_of(store: RunTables) -> list[tuple[object, ...]]:
    rows = store.transactions("vehicles", limit=1000)
    return sorted((row.outbox, row.shard, row.number, row.status.name, row.records, row.position) for row in rows)


def test_every_row_of_the_ledger_is_a_sent_transaction_and_claims_are_none(storage: Home, store: RunTables) -> None:
    ledger = [(0, entry()), (0, entry(number=1, position=4)), (1, entry(number=-1, position=0))]
    assert rebuild_tables(store, storage.publication("vehicles"), ledger) == Rebuilt(
        "vehicles", sent=2, pending=0, attempts=0
    )
    first, second = sorted(store.transactions("vehicles"), key=lambda row: row.number)
    assert first == TransactionRow("vehicles", "first000", 0, 0, TransactionStatus.SENT, 2, 60, 2, None, None, NOON)
    assert second.updated_at == NOON + timedelta(seconds=1)


def test_a_registrys_number_and_its_deletions_are_restored(storage: Home, store: RunTables) -> None:
    rebuild_tables(store, storage.publication("vehicles"), [(0, entry(source_transaction=4711, source_deletions=True))])
    (row,) = store.transactions("vehicles")
    assert (row.source_transaction, row.source_deletions) == (4711, True)


def test_what_an_approved_outbox_still_has_to_send_is_pending(storage: Home, store: RunTables) -> None:
    outbox(storage, publication(), 1, [records("car1", "car2", "car3"), records("car4")], name="first000")
    storage.publication("vehicles").outboxes.set_status("first000", "approved", reason="good")
    storage.publication("vehicles").attempts.keep(failed_send("first000", attempt=3))
    found = rebuild_tables(store, storage.publication("vehicles"), [(0, entry())])
    assert found == Rebuilt("vehicles", sent=1, pending=2, attempts=1)
    assert rows_of(store) == [
        ("first000", 0, 0, "SENT", 2, 2),
        ("first000", 0, 1, "PENDING", 0, 0),
        ("first000", 1, 0, "PENDING", 0, 0),
    ]
    (attempt,) = store.attempts("vehicles")
    assert (attempt.shard, attempt.attempt, attempt.state) == (1, 3, "waiting")


def test_an_outbox_at_its_end_and_one_that_was_never_judged_have_nothing_pending(
    storage: Home, store: RunTables
) -> None:
    for sequence in (1, 2):
        outbox(storage, publication(), sequence, [records("car1")])
    storage.publication("vehicles").outboxes.set_status("outbox1", "abandoned", reason="given up")
    assert rebuild_tables(store, storage.publication("vehicles"), []) == Rebuilt(
        "vehicles", sent=0, pending=0, attempts=0
    )


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 4)), max_size=12))
def test_doing_it_again_changes_nothing(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]) -> None:
    folder = tmp_path_factory.mktemp("again")
    storage, store = Home(str(folder)), RunTables(f"sqlite:///{folder / 'tables.sqlite'}")
    ledger = [(shard, entry(number=number, position=number + 1)) for shard, number in rows]
    rebuild_tables(store, storage.publication("vehicles"), ledger)
    once = rows_of(store)
    rebuild_tables(store, storage.publication("vehicles"), ledger)
    assert rows_of(store) == once
    assert len(once) == len({row for row in rows if row[1] >= 0})
    store.close()


def test_dead_letters_are_counted_with_their_transaction(storage: Home, store: RunTables) -> None:
    ledger = [
        (0, entry(dead_letters=(1,))),
        (0, entry(number=1, position=4, dead_letters=(1,))),
        (0, entry(number=2, position=6, dead_letters=(1, 4, 5))),
        (0, entry("next0000", dead_letters=(0,))),
    ]
    for _ in range(2):
        rebuild_tables(store, storage.publication("vehicles"), ledger)
        rows = store.transactions("vehicles", with_dead_letters=True)
        assert sorted((row.outbox, row.number, row.dead_letters) for row in rows) == [
            ("first000", 0, 1),
            ("first000", 2, 2),
            ("next0000", 0, 1),
        ]


def test_dead_letters_of_compacted_rows_are_counted_with_the_first_row_that_is_left(
    storage: Home, store: RunTables
) -> None:
    for _ in range(2):
        rebuild_tables(
            store, storage.publication("vehicles"), [(0, entry(number=2, position=6, dead_letters=(1, 4, 5)))]
        )
        assert [(row.number, row.dead_letters) for row in store.transactions("vehicles")] == [(2, 3)]
