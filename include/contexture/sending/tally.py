"""Counting what was sent, in a way that survives commits whose outcome only the ledger knows."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from contexture.sending.arbitration import Place, Start
from contexture.sending.ledger_entry import LedgerEntry
from contexture.sending.rows_pieces import Piece
from contexture.sending.sending_ports import ShardReader


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What became of a shard.

    Attributes:
        shard: its number.
        outbox: id of the outbox.
        records_sent: committed by this call.
        records_skipped: committed before, by an earlier call or by another instance.
        transactions: committed by this call.
        bytes: of keys and values sent, before compression.
        seconds: from call to return.
        superseded: a later outbox was sent already, so nothing of this one was.
        transactions_elsewhere: registry transactions that were left out because another outbox told them.
        dead_letters: records of the shard that are in the dead-letter topic instead, by this call or an earlier one;
            they count as sent.
    """

    shard: int
    outbox: str
    records_sent: int
    records_skipped: int
    transactions: int
    bytes: int
    seconds: float
    superseded: bool
    transactions_elsewhere: int = 0
    dead_letters: int = 0


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
    """Where a shard stands, and what this sending added.

    Attributes:
        begun: position of the first record that this sending sent; None before it began.
        sent_earlier: how many records earlier sendings of this very outbox left in Kafka; they may have been killed
            before they saw that readers see them.
        since: when the first sending of this outbox's shard began; None where its ledger's row does not say it.
    """

    def __init__(self) -> None:
        self.position = 0
        self.begun: int | None = None
        self.sent_earlier = 0
        self.superseded = False
        self.place: Place | None = None
        self.since: datetime | None = None
        self.dead_letters: tuple[int, ...] = ()
        self._has_begun = False
        self._records = 0
        self._transactions = 0
        self._bytes = 0
        self._elsewhere = 0
        self._last: LedgerEntry | None = None

    def begun_at(self, start: Start, entry: LedgerEntry | None) -> None:
        """Where a client begins, by the ledger's row."""
        self.superseded, self.place = start.superseded, start.place
        if entry is not None and start.own and self._has_begun and entry.position > self.position:
            # The commit whose answer got lost did happen.
            self.committed(entry)
        self.since = self._since(start, entry)
        self._has_begun = True
        self.dead_letters = entry.dead_letters if entry is not None and start.own else ()
        if start.own and self._last is not None and start.position < self._last.position:
            # It was answered as committed and then not carried out.
            self._take_back(self._last)
        if not start.superseded:
            self.position = start.position
            if self.begun is None and start.own:
                self.sent_earlier = start.position
            self.begun = start.position if self.begun is None else min(self.begun, start.position)
        if not start.own:
            self._elsewhere = max(0, start.transactions - self._transactions)

    def committed(self, entry: LedgerEntry) -> None:
        """A transaction became visible."""
        self.position, self.place = entry.position, entry.source_place
        self.dead_letters = entry.dead_letters
        self._records += entry.records
        self._transactions += 1
        self._bytes += entry.bytes
        self._last = entry

    def _since(self, start: Start, entry: LedgerEntry | None) -> datetime | None:
        if entry is not None and start.own:
            return entry.since
        return self.since if self._has_begun else datetime.fromtimestamp(time.time(), UTC)

    def _take_back(self, entry: LedgerEntry) -> None:
        self._records -= entry.records
        self._transactions -= 1
        self._bytes -= entry.bytes
        self._last = None

    def result(self, reader: ShardReader, seconds: float) -> ShardResult:
        """The whole."""
        return ShardResult(
            shard=reader.shard,
            outbox=reader.outbox_id,
            records_sent=self._records,
            records_skipped=self.position - self._records,
            transactions=self._transactions,
            bytes=self._bytes,
            seconds=seconds,
            superseded=self.superseded,
            transactions_elsewhere=self._elsewhere,
            dead_letters=len(self.dead_letters),
        )
