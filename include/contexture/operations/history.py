"""Reading the operational tables."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, Table, func, select

from contexture.operations.rows import (
    AttemptRow,
    InterventionRow,
    RunRow,
    Sums,
    TransactionRow,
    as_attempt,
    as_intervention,
    as_run,
    as_transaction,
    milliseconds,
)
from contexture.operations.statuses import TransactionStatus
from contexture.operations.tables import ATTEMPTS, INTERVENTIONS, RUNS, TRANSACTIONS
from contexture.operations.totals import Totals
from contexture.operations.transaction_filter import ALL_TRANSACTIONS, TransactionFilter

_PAGE = 50
# SQLite takes 32,766 values in a statement; a report over everything may be about more runs.
_NAMED_AT_ONCE = 1_000


class History(Totals):
    """What ran, what was sent, what failed."""

    def runs(self, publication: str | None = None, *, limit: int = _PAGE, offset: int = 0) -> list[RunRow]:
        """Runs, the latest first."""
        query = _of(select(RUNS), RUNS, publication).order_by(RUNS.c.started_ms.desc())
        return [as_run(row._mapping) for row in self._page(query, limit, offset)]

    def runs_named(self, publication: str, names: Collection[str]) -> list[RunRow]:
        """The runs of a publication by the names of their folders (`run_name`), in no order."""
        query, wanted = _of(select(RUNS), RUNS, publication), sorted(names)
        found: list[Row[Any]] = []
        for begin in range(0, len(wanted), _NAMED_AT_ONCE):
            some = wanted[begin : begin + _NAMED_AT_ONCE]
            found += self._page(query.where(RUNS.c.run.in_(some)), len(some), 0)
        return [as_run(row._mapping) for row in found]

    def failed_runs(
        self, publication: str, *, since: datetime | None = None, until: datetime | None = None, limit: int = _PAGE
    ) -> list[RunRow]:
        """Runs that failed, the latest first; those that started within a time, of which `until` is no part."""
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
        """Transactions, the latest first; on request those alone that put records aside."""
        query = _of(select(TRANSACTIONS), TRANSACTIONS, publication).where(*which.conditions())
        if with_dead_letters:
            query = query.where(TRANSACTIONS.c.dead_letters > 0)
        order = (TRANSACTIONS.c.updated_ms.desc(), TRANSACTIONS.c.shard, TRANSACTIONS.c.number.desc())
        return [as_transaction(row._mapping) for row in self._page(query.order_by(*order), limit, offset)]

    def attempts(
        self, publication: str | None = None, outbox: str | None = None, *, limit: int = _PAGE, offset: int = 0
    ) -> list[AttemptRow]:
        """Failed sends, the latest first."""
        query = _of(select(ATTEMPTS), ATTEMPTS, publication)
        if outbox is not None:
            query = query.where(ATTEMPTS.c.outbox == outbox)
        order = (ATTEMPTS.c.failed_ms.desc(), ATTEMPTS.c.failed.desc())
        return [as_attempt(row._mapping) for row in self._page(query.order_by(*order), limit, offset)]

    def interventions(
        self, publication: str | None = None, *, limit: int = _PAGE, offset: int = 0
    ) -> list[InterventionRow]:
        """What people did, the latest first."""
        query = _of(select(INTERVENTIONS), INTERVENTIONS, publication)
        order = (INTERVENTIONS.c.at_ms.desc(), INTERVENTIONS.c.id)
        return [as_intervention(row._mapping) for row in self._page(query.order_by(*order), limit, offset)]

    def sums(self, publication: str) -> Sums:
        """What the transactions of a publication come to."""
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
