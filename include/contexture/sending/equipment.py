"""What the sendings of a publication have in common, whichever shard they send."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from contexture.kafka.delivered import Delivered
from contexture.kafka.opening import open_session
from contexture.kafka.patience import Patience
from contexture.kafka.ports import OpenProducer
from contexture.kafka.session import Session
from contexture.kafka.settings import ClientSettings
from contexture.sending.dead_letter import DeadLetters
from contexture.sending.encoding import Encode, encoded
from contexture.sending.progress import Progress
from contexture.sending.request_limit import RequestLimit
from contexture.sending.rows_pieces import Piece
from contexture.sending.senders import SenderNames
from contexture.sending.sending_ports import HiddenPort, LedgerPort
from contexture.sending.setting_aside import one_by_one


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a sending works with; `Publisher` says what each of them is."""

    settings: ClientSettings
    names: SenderNames
    shards: int
    patience: Patience
    ledger: LedgerPort
    hidden: HiddenPort
    requests: RequestLimit
    progress: Progress
    encode: Encode | None
    delivered: Delivered | None
    dead_letters: DeadLetters | None
    open_producer: OpenProducer
    clock: Callable[[], float]
    sleep: Callable[[float], None]

    def encoded(self, piece: Piece) -> Piece:
        """Rows as they are sent."""
        return piece if self.encode is None else encoded(piece, self.encode)

    def open_session(self, shard: int, *, careful: bool) -> Session:
        """A new client of a shard; a careful one sends each record in a batch of its own."""
        return open_session(
            one_by_one(self.settings) if careful else self.settings,
            self.names.transactional_id(shard),
            self.patience,
            ledger_topic=self.ledger.topic,
            delivered=self.delivered,
            open_producer=self.open_producer,
            clock=self.clock,
        )
