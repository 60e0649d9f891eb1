"""The operational tables for reading: runs, transactions and sums, filtered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, Table, and_, case, func, not_, select

from contexture.monitoring.database import TableAccess
from contexture.monitoring.rows import (
    BACKFILL,
    BACKFILL_RUN,
    AttemptRow,
    InterventionRow,
    RunRow,
    Sums,
    TransactionRow,
    TransactionStatus,
    VerificationRow,
    as_attempt,
    as_intervention,
    as_run,
    as_transaction,
    as_verification,
    milliseconds,
    moment,
)
from contexture.monitoring.tables import ATTEMPTS, INTERVENTIONS, RUNS, TRANSACTIONS, VERIFICATIONS

# The largest values of the columns: no transaction has a larger number, and databases refuse to compare with one.
LAST_SHARD: Final = 2**31 - 1
LAST_NUMBER: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Conditions on transactions; a transaction is found if all of them are true.

    Attributes:
        status: its state.
        outbox: how the id of its outbox begins; people know the first twelve characters.
        shard: of the outbox.
        since: it was changed at that time or later.
        until: it was changed before that time.
        source_transaction: the registry's own number.
    """

    status: TransactionStatus | None = None
    outbox: str | None = None
    shard: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    source_transaction: int | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Returns the conditions of a query of the table."""
        table = TRANSACTIONS.c
        given = (
            None if self.status is None else table.status == int(self.status),
            None if self.outbox is None else table.outbox.startswith(self.outbox, autoescape=True),
            None if self.shard is None else table.shard == self.shard,
            None if self.since is None else table.updated_ms >= milliseconds(self.since),
            None if self.until is None else table.updated_ms < milliseconds(self.until),
            None if self.source_transaction is None else table.source_transaction == self.source_transaction,
        )
        return [condition for condition in given if condition is not None]


ALL_TRANSACTIONS: Final = TransactionFilter()


@dataclass(frozen=True, slots=True)
class Volume:
    """What was sent: transactions, records, and bytes of keys and values before compression."""

    transactions: int = 0
    records: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class DeadLetterTotals:
    """What a publication's stored transactions have sent to the dead-letter topic.

    Attributes:
        letters: how many records; one that fails again counts each time.
        transactions: how many transactions have such records.
        last_at: when the last of them was sent there.
        outstanding: whether no full run, which sends them again, has started since and succeeded.
    """

    letters: int = 0
    transactions: int = 0
    last_at: datetime | None = None
    outstanding: bool = False


# The same as `RunRow.is_backfill`.
_IS_NO_BACKFILL: Final = and_(
    func.coalesce(RUNS.c.mode, "") != BACKFILL, not_(RUNS.c.run_id.startswith(BACKFILL_RUN, autoescape=True))
)
NO_DEAD_LETTERS: Final = DeadLetterTotals()


class Totals(TableAccess):
    """Sums and latest rows of many publications."""

    def latest_runs(self) -> dict[str, RunRow]:
        """Returns the latest run of each publication; without backfills, because they do not follow the source."""
        newest = (
            select(RUNS.c.publication, func.max(RUNS.c.started_ms).label("started_ms"))
            .group_by(RUNS.c.publication)
            .subquery()
        )
        same = (RUNS.c.publication == newest.c.publication) & (RUNS.c.started_ms == newest.c.started_ms)
        with self._reading() as connection:
            rows = connection.execute(select(RUNS).join(newest, same)).all()
        found = (self._without_backfills(as_run(row._mapping)) for row in rows)
        return {run.publication: run for run in found if run is not None}

    def _without_backfills(self, latest: RunRow) -> RunRow | None:
        if not latest.is_backfill:
            return latest
        query = select(RUNS).where(RUNS.c.publication == latest.publication, _IS_NO_BACKFILL)
        rows = self._page(query.order_by(RUNS.c.started_ms.desc()), 1, 0)
        return as_run(rows[0]._mapping) if rows else None

    def last_sent(self, publication: str) -> TransactionRow | None:
        """Returns the transaction of a publication that was sent last."""
        table = TRANSACTIONS.c
        query = (
            select(TRANSACTIONS)
            .where(table.publication == publication, table.status == int(TransactionStatus.SENT))
            .order_by(table.updated_ms.desc(), table.shard, table.number.desc())
        )
        rows = self._page(query, 1, 0)
        return as_transaction(rows[0]._mapping) if rows else None

    def sent_since(self, since: datetime, publications: Collection[str]) -> dict[str, Volume]:
        """Returns what each of the publications sent at that time or later; without those that sent nothing."""
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

    def sent_of_outbox(self, publication: str, outbox: str, since: datetime) -> tuple[int, int]:
        """Returns how many records of an outbox were sent, and how many of them at that time or later."""
        table = TRANSACTIONS.c
        lately = func.sum(case((table.updated_ms >= milliseconds(since), table.records), else_=0))
        query = select(func.sum(table.records), lately).where(
            table.publication == publication, table.outbox == outbox, table.status == int(TransactionStatus.SENT)
        )
        with self._reading() as connection:
            records, since_then = connection.execute(query).one()
        return int(records or 0), int(since_then or 0)

    def dead_letters(self, publication: str) -> DeadLetterTotals:
        """Returns what a publication sent to its dead-letter topic, as long as its transactions are stored."""
        return self.dead_letters_of([publication]).get(publication, NO_DEAD_LETTERS)

    def dead_letters_of(self, publications: Collection[str]) -> dict[str, DeadLetterTotals]:
        """Returns the same for each of the publications; without those that sent nothing there."""
        table, runs = TRANSACTIONS.c, RUNS.c
        dead = (
            select(table.publication, func.sum(table.dead_letters), func.count(), func.max(table.updated_ms))
            .where(table.publication.in_(sorted(publications)), table.dead_letters > 0)
            .group_by(table.publication)
        )
        with self._reading() as connection:
            found = connection.execute(dead).all()
            if not found:
                return {}
            full = select(runs.publication, func.max(runs.started_ms)).where(
                runs.publication.in_([row[0] for row in found]),
                runs.mode == "full",
                runs.state == "succeeded",
                # A dry run, or one whose outbox was abandoned, has sent nothing again.
                runs.message.is_(None),
            )
            resent = {row[0]: row[1] for row in connection.execute(full.group_by(runs.publication))}
        return {
            name: DeadLetterTotals(int(letters), int(count), moment(last), name not in resent or resent[name] <= last)
            for name, letters, count, last in found
        }

    def transaction_counts(
        self, publication: str, which: TransactionFilter = ALL_TRANSACTIONS
    ) -> dict[TransactionStatus, int]:
        """Returns how many transactions of a publication have each status; without a status that none has."""
        table = TRANSACTIONS.c
        chosen = (table.publication == publication, *which.conditions())
        query = select(table.status, func.count()).where(*chosen).group_by(table.status)
        with self._reading() as connection:
            return {TransactionStatus(status): int(count) for status, count in connection.execute(query)}

    def last_verification(self, publication: str) -> VerificationRow | None:
        """Returns the last verification of a publication's topics."""
        return self.last_verifications([publication]).get(publication)

    def last_verifications(self, publications: Collection[str]) -> dict[str, VerificationRow]:
        """Returns the last verification of each of the publications; without those that have none."""
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
        """Returns how many runs of a publication are stored."""
        query = select(func.count()).select_from(RUNS).where(RUNS.c.publication == publication)
        with self._reading() as connection:
            return int(connection.scalar(query) or 0)


_PAGE = 50
# SQLite accepts 32,766 values in a statement; a report over everything may be about more runs.
_NAMED_AT_ONCE = 1_000


class History(Totals):
    """Pages of runs, transactions, failed sends and actions."""

    def runs(self, publication: str | None = None, *, limit: int = _PAGE, offset: int = 0) -> list[RunRow]:
        """Returns runs, the latest first."""
        query = _of(select(RUNS), RUNS, publication).order_by(RUNS.c.started_ms.desc())
        return [as_run(row._mapping) for row in self._page(query, limit, offset)]

    def runs_named(self, publication: str, names: Collection[str]) -> list[RunRow]:
        """Returns the runs of a publication by the names of their folders (`run_name`), in no order."""
        query, wanted = _of(select(RUNS), RUNS, publication), sorted(names)
        found: list[Row[Any]] = []
        for begin in range(0, len(wanted), _NAMED_AT_ONCE):
            some = wanted[begin : begin + _NAMED_AT_ONCE]
            found += self._page(query.where(RUNS.c.run.in_(some)), len(some), 0)
        return [as_run(row._mapping) for row in found]

    def failed_runs(
        self, publication: str, *, since: datetime | None = None, until: datetime | None = None, limit: int = _PAGE
    ) -> list[RunRow]:
        """Returns failed runs, the latest first; those that started at `since` or later and before `until`."""
        query = _of(select(RUNS), RUNS, publication).where(RUNS.c.state == "failed")
        if since is not None:
            query = query.where(RUNS.c.started_ms >= milliseconds(since))
        if until is not None:
            query = query.where(RUNS.c.started_ms < milliseconds(until))
        return [as_run(row._mapping) for row in self._page(query.order_by(RUNS.c.started_ms.desc()), limit, 0)]

    def transactions(
        self,
        publication: str | None = None,
        *,
        which: TransactionFilter = ALL_TRANSACTIONS,
        with_dead_letters: bool = False,
        limit: int = _PAGE,
        offset: int = 0,
    ) -> list[TransactionRow]:
        """Returns transactions, the latest first; on request only those with dead letters."""
        query = _of(select(TRANSACTIONS), TRANSACTIONS, publication).where(*which.conditions())
        if with_dead_letters:
            query = query.where(TRANSACTIONS.c.dead_letters > 0)
        order = (TRANSACTIONS.c.updated_ms.desc(), TRANSACTIONS.c.shard, TRANSACTIONS.c.number.desc())
        return [as_transaction(row._mapping) for row in self._page(query.order_by(*order), limit, offset)]

    def attempts(
        self, publication: str | None = None, outbox: str | None = None, *, limit: int = _PAGE, offset: int = 0
    ) -> list[AttemptRow]:
        """Returns failed sends, the latest first."""
        query = _of(select(ATTEMPTS), ATTEMPTS, publication)
        if outbox is not None:
            query = query.where(ATTEMPTS.c.outbox == outbox)
        order = (ATTEMPTS.c.failed_ms.desc(), ATTEMPTS.c.failed.desc())
        return [as_attempt(row._mapping) for row in self._page(query.order_by(*order), limit, offset)]

    def interventions(
        self, publication: str | None = None, *, limit: int = _PAGE, offset: int = 0
    ) -> list[InterventionRow]:
        """Returns actions of people, the latest first."""
        query = _of(select(INTERVENTIONS), INTERVENTIONS, publication)
        order = (INTERVENTIONS.c.at_ms.desc(), INTERVENTIONS.c.id)
        return [as_intervention(row._mapping) for row in self._page(query.order_by(*order), limit, offset)]

    def sums(self, publication: str) -> Sums:
        """Returns the sums over the transactions of a publication."""
        table = TRANSACTIONS
        query = (
            select(table.c.status, func.count(), func.sum(table.c.records), func.sum(table.c.bytes))
            .where(table.c.publication == publication)
            .group_by(table.c.status)
        )
        with self._reading() as connection:
            found = {TransactionStatus(row[0]): row for row in connection.execute(query)}
        sent = found.get(TransactionStatus.SENT)
        return Sums(
            by_status={status: int(row[1]) for status, row in sorted(found.items())},
            records=int(sent[2]) if sent else 0,
            bytes=int(sent[3]) if sent else 0,
            last_sent=self.last_sent(publication),
        )


def _of(query: Select[Any], table: Table, publication: str | None) -> Select[Any]:
    return query if publication is None else query.where(table.c.publication == publication)
