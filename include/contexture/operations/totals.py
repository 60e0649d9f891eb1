"""Sums over the operational tables, for all publications in one query each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import and_, func, not_, select

from contexture.operations.access import TableAccess
from contexture.operations.rows import (
    BACKFILL,
    BACKFILL_RUN,
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


# The same as `RunRow.is_backfill`.
_IS_NO_BACKFILL: Final = and_(
    func.coalesce(RUNS.c.mode, "") != BACKFILL, not_(RUNS.c.run_id.startswith(BACKFILL_RUN, autoescape=True))
)
NOTHING_PUT_ASIDE: Final = PutAside()


class Totals(TableAccess):
    """What the rows of many publications come to."""

    def latest_runs(self) -> dict[str, RunRow]:
        """The run of each publication that began last; backfills say nothing of how it keeps up with its source."""
        newest = (
            select(RUNS.c.publication, func.max(RUNS.c.started_ms).label("started_ms"))
            .group_by(RUNS.c.publication)
            .subquery()
        )
        same = (RUNS.c.publication == newest.c.publication) & (RUNS.c.started_ms == newest.c.started_ms)
        with self._reading() as connection:
            rows = connection.execute(select(RUNS).join(newest, same)).all()
        found = (self._backfills_aside(as_run(row._mapping)) for row in rows)
        return {run.publication: run for run in found if run is not None}

    def _backfills_aside(self, latest: RunRow) -> RunRow | None:
        if not latest.is_backfill:
            return latest
        query = select(RUNS).where(RUNS.c.publication == latest.publication, _IS_NO_BACKFILL)
        rows = self._page(query.order_by(RUNS.c.started_ms.desc()), 1, 0)
        return as_run(rows[0]._mapping) if rows else None

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

    def sent_since(self, since: datetime, publications: Collection[str]) -> dict[str, Volume]:
        """What each of the publications sent at that time or later; nothing for one that sent nothing."""
        table = TRANSACTIONS.c
        query = (
            select(table.publication, func.count(), func.sum(table.records), func.sum(table.bytes))
            .where(
                table.publication.in_(sorted(publications)),
                table.status == int(TransactionStatus.SENT),
                table.updated_ms >= milliseconds(since),
            )
            .group_by(table.publication)
        )
        with self._reading() as connection:
            found = connection.execute(query).all()
        return {name: Volume(int(count), int(records or 0), int(size or 0)) for name, count, records, size in found}

    def put_aside(self, publication: str) -> PutAside:
        """What a publication put into its dead-letter topic, as long ago as its transactions are kept."""
        return self.put_aside_of([publication]).get(publication, NOTHING_PUT_ASIDE)

    def put_aside_of(self, publications: Collection[str]) -> dict[str, PutAside]:
        """The same of each of the publications; nothing for one that put nothing there."""
        table, runs = TRANSACTIONS.c, RUNS.c
        aside = (
            select(table.publication, func.sum(table.dead_letters), func.count(), func.max(table.updated_ms))
            .where(table.publication.in_(sorted(publications)), table.dead_letters > 0)
            .group_by(table.publication)
        )
        with self._reading() as connection:
            found = connection.execute(aside).all()
            if not found:
                return {}
            full = select(runs.publication, func.max(runs.started_ms)).where(
                runs.publication.in_([row[0] for row in found]),
                runs.mode == "full",
                runs.state == "succeeded",
                # A dry run, or one whose outbox was given up, has tried nothing.
                runs.message.is_(None),
            )
            tried = {row[0]: row[1] for row in connection.execute(full.group_by(runs.publication))}
        return {
            name: PutAside(int(letters), int(count), moment(last), name not in tried or tried[name] <= last)
            for name, letters, count, last in found
        }

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
        return self.last_verifications([publication]).get(publication)

    def last_verifications(self, publications: Collection[str]) -> dict[str, VerificationRow]:
        """What the last verification of each of the publications' topics found; nothing for one that never had one."""
        table = VERIFICATIONS.c
        last = (
            select(table.publication, func.max(table.verified_ms).label("verified_ms"))
            .where(table.publication.in_(sorted(publications)))
            .group_by(table.publication)
            .subquery()
        )
        same = (table.publication == last.c.publication) & (table.verified_ms == last.c.verified_ms)
        with self._reading() as connection:
            rows = connection.execute(select(VERIFICATIONS).join(last, same)).all()
        return {row.publication: as_verification(row._mapping) for row in rows}

    def run_count(self, publication: str) -> int:
        """How many runs of a publication are told."""
        query = select(func.count()).select_from(RUNS).where(RUNS.c.publication == publication)
        with self._reading() as connection:
            return int(connection.scalar(query) or 0)
