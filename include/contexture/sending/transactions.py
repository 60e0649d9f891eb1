"""The transactions of a shard: rows, and behind them the ledger's row that says how far they go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from contexture.kafka.session import Session
from contexture.sending.equipment import Equipment
from contexture.sending.ledger_entry import LedgerEntry
from contexture.sending.rows_pieces import Piece, pieces
from contexture.sending.sending_ports import ShardReader
from contexture.sending.setting_aside import SettingAside
from contexture.sending.takeover import OwnRows
from contexture.sending.tally import Tally, TransactionSize
from contexture.sending.whole import check_position, no_registry_transaction
from contexture.storage.topic_order import TOPICS_OF_A_CLIENT


class Transactions:
    """Those of one sending, whichever clients they go through.

    Args:
        equipment: of the publication.
        reader: the shard.
        tally: where it stands.
        own: the ledger's rows that this sending knows.
        aside: the records that can't be sent.
        committed: is told each row of the ledger once it is committed.

    Attributes:
        topics: how many the transaction under way has records for, as far as is known.
        sent_topics: names of all that records were given to.
    """

    def __init__(
        self,
        equipment: Equipment,
        reader: ShardReader,
        tally: Tally,
        own: OwnRows,
        aside: SettingAside,
        committed: Callable[[LedgerEntry], None],
    ) -> None:
        self._equipment = equipment
        self._reader = reader
        self._tally = tally
        self._own = own
        self._aside = aside
        self._committed = committed
        self.topics = 0
        self.sent_topics: set[str] = set()

    def send(self, session: Session) -> bool:
        """Sends until the end (True), or until the rest needs another client (False).

        It knows too many topics, or the end of its last transaction is uncertain.
        """
        topics: set[str] = set()
        size: TransactionSize | None = None
        expected = self._tally.position
        for piece in pieces(self._reader.batches(expected)) if expected < self._reader.records else ():
            check_position(piece.first_position, expected)
            piece = self._equipment.encoded(piece)
            if size is None or size.transaction != piece.transaction:
                if size is not None:
                    self._commit(session, size)
                    is_too_much = len(topics | piece.topics()) > TOPICS_OF_A_CLIENT
                    if self._aside.end() or session.is_uncertain or is_too_much:
                        return False
                self._begin(session, piece)
                size = TransactionSize(piece.transaction)
            self._produce(session, piece)
            topics |= piece.topics()
            self.sent_topics |= piece.topics()
            size = size.grown(piece)
            expected += piece.rows.num_rows
        if size is not None:
            self._commit(session, size)
        return True

    def _begin(self, session: Session, piece: Piece) -> None:
        self.topics = len(piece.topics())
        session.meet(self.topics)
        session.begin()

    def _produce(self, session: Session, piece: Piece) -> None:
        if self._aside.is_careful:
            self._aside.produce(session, piece)
            return
        self._equipment.requests.check(piece.rows)
        session.produce(piece.rows, self._reader.headers)

    def _commit(self, session: Session, size: TransactionSize) -> None:
        entry = self._entry(size)
        self._own.writes(entry)
        ledger, shard = self._equipment.ledger, self._reader.shard
        session.deliver()
        session.produce_one(ledger.topic, key=ledger.key(shard), value=entry.to_json(), partition=shard)
        session.commit()
        self._committed(entry)

    def _entry(self, size: TransactionSize) -> LedgerEntry:
        source, deletions = self._told_with(size)
        return LedgerEntry(
            outbox=self._reader.outbox_id,
            sequence=self._reader.sequence,
            position=self._tally.position + size.records,
            records=size.records,
            bytes=size.bytes,
            transaction=size.transaction,
            source_transaction=source,
            at=datetime.now(UTC),
            source_deletions=deletions,
            dead_letters=(*self._tally.dead_letters, *self._aside.positions),
            since=self._tally.since,
        )

    def _told_with(self, size: TransactionSize) -> tuple[int | None, bool]:
        """How far the registry's log is told with this transaction."""
        if not self._reader.registry:
            return size.source_transaction, False
        if size.transaction >= len(self._reader.registry):
            raise no_registry_transaction(size.transaction)
        place = self._reader.registry[size.transaction].place
        # A flush of what is told already takes nothing back.
        return place if self._tally.place is None else max(place, self._tally.place)
