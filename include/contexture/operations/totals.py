"""Sums over the operational tables, for all publications in one query each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import func, select

from contexture.operations.access import TableAccess
from contexture.operations.rows import (
    RunRow,
    TransactionRow,
    VerificationRow,
    as_run,
    as_transaction,
    as_verification,
    milliseconds,
    moment,
)
from contexture.operations.statuses import TransactionStatus
from contexture.operations.tables import RUNS, TRANSACTIONS, VERIFICATIONS
from contexture.operations.transaction_filter import ALL_TRANSACTIONS, TransactionFilter


@dataclass(frozen=True, slots=True)
class Volume:
    """What was sent: transactions, records, and bytes of keys and values before compression."""

    transactions: int = 0
    records: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class PutAside:
    """What a publication's transactions put into the dead-letter topic, as far as they are told.

    Attributes:
        letters: how many records; one that is tried again in vain counts each time.
        transactions: how many transactions have such records.
        last_at: when the last of them was sent there.
        outstanding: whether no full run, which tries them again, has begun since and come to its good end.
    """

    letters: int = 0
    transactions: int = 0
    last_at: datetime | None = None
    outstanding: bool = False


NOTHING_PUT_ASIDE: Final = PutAside()


class Totals(TableAccess):
    """What the rows of many publications come to."""

    def latest_runs(self) -> dict[str, RunRow]:
        """The run of each publication that began last."""
        newest = (
            select(RUNS.c.publication, func.max(RUNS.c.started_ms).label("started_ms"))
            .group_by(RUNS.c.publication)
            .subquery()
        )
        same = (RUNS.c.publication == newest.c.publication) & (RUNS.c.started_ms == newest.c.started_ms)
        with self._reading() as connection:
            rows = connection.execute(select(RUNS).join(newest, same)).all()
        return {row.publication: as_run(row._mapping) for row in rows}

    def last_sent(self, publication: str) -> TransactionRow | None:
        """The transaction of a publication that was sent last."""
        table = TRANSACTIONS.c
        query = (
            select(TRANSACTIONS)
            .where(table.publication == publication, table.status == int(TransactionStatus.SENT))
            .order_by(table.updated_ms.desc(), table.shard, table.number.desc())
        )
        rows = self._page(query, 1, 0)
        return as_transaction(rows[0]._mapping) if rows else None

    def sent_since(self, since: datetime, publication: str) -> Volume:
        """What a publication sent at that time or later."""
        table = TRANSACTIONS.c
        query = select(func.count(), func.sum(table.records), func.sum(table.bytes)).where(
            table.publication == publication,
            table.status == int(TransactionStatus.SENT),
            table.updated_ms >= milliseconds(since),
        )
        with self._reading() as connection:
            count, records, size = connection.execute(query).one()
        return Volume(int(count), int(records or 0), int(size or 0))

    def put_aside(self, publication: str) -> PutAside:
        """What a publication put into its dead-letter topic, as long ago as its transactions are kept."""
        table, runs = TRANSACTIONS.c, RUNS.c
        aside = select(func.sum(table.dead_letters), func.count(), func.max(table.updated_ms)).where(
            table.publication == publication, table.dead_letters > 0
        )
        full = select(func.max(runs.started_ms)).where(
            runs.publication == publication, runs.mode == "full", runs.state == "succeeded"
        )
        with self._reading() as connection:
            letters, count, last = connection.execute(aside).one()
            if not letters:
                return NOTHING_PUT_ASIDE
            tried_again = connection.scalar(full)
        return PutAside(int(letters), int(count), moment(last), tried_again is None or tried_again <= last)

    def transaction_counts(
        self, publication: str, which: TransactionFilter = ALL_TRANSACTIONS
    ) -> dict[TransactionStatus, int]:
        """How many transactions of a publication have each status; nothing for a status that none has."""
        table = TRANSACTIONS.c
        chosen = (table.publication == publication, *which.conditions())
        query = select(table.status, func.count()).where(*chosen).group_by(table.status)
        with self._reading() as connection:
            return {TransactionStatus(status): int(count) for status, count in connection.execute(query)}

    def last_verification(self, publication: str) -> VerificationRow | None:
        """What the last verification of a publication's topics found."""
        table = VERIFICATIONS
        query = select(table).where(table.c.publication == publication).order_by(table.c.verified_ms.desc())
        rows = self._page(query, 1, 0)
        return as_verification(rows[0]._mapping) if rows else None

    def run_count(self, publication: str) -> int:
        """How many runs of a publication are told."""
        query = select(func.count()).select_from(RUNS).where(RUNS.c.publication == publication)
        with self._reading() as connection:
            return int(connection.scalar(query) or 0)
