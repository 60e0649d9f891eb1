"""Which transactions somebody wants to see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement

from contexture.operations.rows import milliseconds
from contexture.operations.statuses import TransactionStatus
from contexture.operations.tables import TRANSACTIONS

# What the columns hold: more is no number of any transaction, and databases refuse to compare with it.
LAST_SHARD: Final = 2**31 - 1
LAST_NUMBER: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Those transactions that everything given here is true of.

    Attributes:
        status: what has become of it.
        outbox: how the id of its outbox begins; people know the first twelve characters.
        shard: of the outbox.
        since: it was changed then or later.
        until: it was changed before that.
        source_transaction: the registry's own number.
    """

    status: TransactionStatus | None = None
    outbox: str | None = None
    shard: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    source_transaction: int | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """The same for a query of the table."""
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
