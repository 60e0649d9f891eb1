"""Counting what was sent, in a way that survives commits whose outcome only the ledger knows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from contexture.kafka.ledger_entry import LedgerEntry
from contexture.kafka.ports import ShardReader
from contexture.kafka.rows import Piece


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What became of a shard.

    Attributes:
        shard: its number.
        outbox: id of the outbox.
        records_sent: committed by this call.
        records_skipped: committed by an earlier one.
        transactions: committed by this call.
        bytes: of keys and values sent, before compression.
        seconds: from call to return.
        superseded: a later outbox was sent already, so nothing of this one was.
    """

    shard: int
    outbox: str
    records_sent: int
    records_skipped: int
    transactions: int
    bytes: int
    seconds: float
    superseded: bool


@dataclass(frozen=True, slots=True)
class TransactionSize:
    """What an open transaction holds so far."""

    transaction: int
    records: int = 0
    bytes: int = 0
    source_transaction: int | None = None

    def grown(self, piece: Piece) -> TransactionSize:
        """With a further piece."""
        return replace(
            self,
            records=self.records + piece.rows.num_rows,
            bytes=self.bytes + piece.byte_size(),
            source_transaction=piece.source_transaction,
        )


class Tally:
    """Where a shard stands, and what this sending added."""

    def __init__(self) -> None:
        self.position = 0
        self.superseded = False
        self._first: int | None = None
        self._transactions = 0
        self._bytes = 0

    def resumed_at(self, entry: LedgerEntry | None) -> None:
        """What the ledger says at the start of a client; None when nothing of this outbox was committed."""
        position = 0 if entry is None else entry.position
        if self._first is None:
            self._first = self.position = position
        elif entry is not None and position > self.position:
            # The commit whose answer got lost did happen.
            self.committed(entry)

    def committed(self, entry: LedgerEntry) -> None:
        """A transaction became visible."""
        self.position = entry.position
        self._transactions += 1
        self._bytes += entry.bytes

    def result(self, reader: ShardReader, seconds: float) -> ShardResult:
        """The whole."""
        first = self._first or 0
        return ShardResult(
            shard=reader.shard,
            outbox=reader.outbox_id,
            records_sent=self.position - first,
            records_skipped=first,
            transactions=self._transactions,
            bytes=self._bytes,
            seconds=seconds,
            superseded=self.superseded,
        )
