"""Transactions by filters: each alone, all together, and without reading those of other publications."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import make_url

from builders.outboxes import NOON
from builders.tables import KINDS, empty_database
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus
from contexture.monitoring.database import open_engine
from contexture.monitoring.history import ALL_TRANSACTIONS, TransactionFilter
from contexture.monitoring.tables import TRANSACTIONS

HOUR = timedelta(hours=1)
BROKER_ERROR, SENT = TransactionStatus.BROKER_ERROR, TransactionStatus.SENT
FIRST = TransactionRow("vehicles", "abc1", 0, 0, SENT, 10, 1_000, 10, 40, None, NOON)
ROWS = (
    FIRST,
    replace(FIRST, number=1, source_transaction=41, updated_at=NOON + HOUR),
    replace(FIRST, outbox="abc2", shard=1, number=2, source_transaction=None, updated_at=NOON + 2 * HOUR),
    replace(FIRST, outbox="a%c3", number=3, status=BROKER_ERROR, source_transaction=42, updated_at=NOON + 3 * HOUR),
    replace(FIRST, publication="bikes", number=4),
)
GIVEN = {
    "status": TransactionFilter(status=BROKER_ERROR),
    "outbox": TransactionFilter(outbox="abc"),
    "whole outbox": TransactionFilter(outbox="abc1"),
    "outbox with what databases take for a pattern": TransactionFilter(outbox="a%"),
    "shard": TransactionFilter(shard=1),
    "since": TransactionFilter(since=NOON + HOUR),
    "until": TransactionFilter(until=NOON + HOUR),
    "between": TransactionFilter(since=NOON + HOUR, until=NOON + 2 * HOUR),
    "source transaction": TransactionFilter(source_transaction=42),
    "several": TransactionFilter(status=SENT, outbox="abc", shard=0, since=NOON, source_transaction=41),
    "none": TransactionFilter(outbox="abc", source_transaction=42),
    "largest": TransactionFilter(shard=2**31 - 1, source_transaction=2**63 - 1),
}
FOUND = {
    "status": [3],
    "outbox": [2, 1, 0],
    "whole outbox": [1, 0],
    "outbox with what databases take for a pattern": [3],
    "shard": [2],
    "since": [3, 2, 1],
    "until": [0],
    "between": [1],
    "source transaction": [3],
    "several": [1],
    "none": [],
    "largest": [],
}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunTables]:
    opened = RunTables(empty_database(request.param, tmp_path))
    for row in ROWS:
        opened.set_transaction(row)
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", GIVEN)
def test_transactions_that_match_every_condition_are_found(store: RunTables, name: str) -> None:
    assert [row.number for row in store.transactions("vehicles", which=GIVEN[name])] == FOUND[name]


@pytest.mark.parametrize("name", GIVEN)
def test_the_count_equals_the_number_found(store: RunTables, name: str) -> None:
    assert sum(store.transaction_counts("vehicles", GIVEN[name]).values()) == len(FOUND[name])


def test_an_empty_filter_finds_all_of_a_publication(store: RunTables) -> None:
    assert [row.number for row in store.transactions("vehicles", which=ALL_TRANSACTIONS)] == [3, 2, 1, 0]
    assert store.transaction_counts("vehicles") == {SENT: 3, BROKER_ERROR: 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", GIVEN)
def test_every_filter_uses_an_index(tmp_path: Path, name: str) -> None:
    url = empty_database("sqlite", tmp_path)
    RunTables(url).transactions()
    query = select(TRANSACTIONS).where(TRANSACTIONS.c.publication == "vehicles", *GIVEN[name].conditions())
    ordered = query.order_by(TRANSACTIONS.c.updated_ms.desc()).limit(50)
    statement = ordered.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    engine = open_engine(make_url(url))
    with engine.connect() as connection:
        [*plan] = connection.execute(text(f"EXPLAIN QUERY PLAN {statement}".replace(":", r"\:")))
    engine.dispose()
    assert plan[0].detail.startswith("SEARCH transactions USING INDEX")
