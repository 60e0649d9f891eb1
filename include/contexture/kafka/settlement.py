"""Ends what an earlier transaction of a shard left undecided, before the shard is sent on.

After `init_transactions` nothing of a shard's earlier senders is open any more: whatever they left was committed or
aborted. But where Kafka lost the marker (`hidden`), what should be aborted would become visible with the next commit,
and be there twice. So a sender that begins looks at the partitions that its first transaction goes to, and where a
first try of that very transaction stands hidden, it aborts a transaction there: also in the dead-letter topic, for any
of its records may have been put aside. One that is done sees that its last transaction can be seen.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, Protocol

from contexture.errors import RetriableError
from contexture.kafka.arbitration import Start
from contexture.kafka.dead_letter import DeadLetters, left_of
from contexture.kafka.failures import SendAgainError
from contexture.kafka.hidden import Fingerprint, fingerprint
from contexture.kafka.ledger_entry import LedgerEntry
from contexture.kafka.ports import LedgerPort, ShardReader
from contexture.kafka.rows import Piece, pieces
from contexture.kafka.session import Session
from contexture.kafka.starts import Place

_LOG: Final = logging.getLogger(__name__)

# Markers are written within milliseconds, those of a thousand topics within a second.
_GRACE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.02
_LOOK_LATER_SECONDS: Final = 0.5
# Brokers look for transactions that are open for too long every 10 s.
CLEANUP_SECONDS: Final = 15.0

EncodePiece = Callable[[Piece], Piece]


class HiddenPort(Protocol):
    """What is asked about hidden records."""

    def spans(self, topics: Collection[str]) -> Mapping[Place, tuple[int, int]]: ...
    def matching(
        self, spans: Mapping[Place, tuple[int, int]], sought: Mapping[str, set[Fingerprint]]
    ) -> Collection[Place]: ...
    def is_committed(self, sought: Mapping[str, set[Fingerprint]]) -> bool: ...


class Settlement:
    """Of one shard.

    Args:
        reader: the shard.
        ledger: its publication's.
        hidden: looks behind the last stable offset.
        encoded: gives rows as they are sent.
        clock, sleep: seconds.
        letters: where its records go that can never be sent.
        longest_open_seconds: for how long another sender's transaction can hold readers back.
    """

    def __init__(
        self,
        reader: ShardReader,
        ledger: LedgerPort,
        hidden: HiddenPort,
        encoded: EncodePiece,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        letters: DeadLetters | None = None,
        *,
        longest_open_seconds: float = 75.0,
    ) -> None:
        self._reader = reader
        self._ledger = ledger
        self._hidden = hidden
        self._encoded = encoded
        self._clock = clock
        self._sleep = sleep
        self._aside = letters.topic if letters is not None else None
        self._longest_open_seconds = longest_open_seconds

    def is_repeated(self, row: LedgerEntry, start: Start) -> bool:
        """Whether a hidden row of the ledger is that of the transaction that comes next.

        It is sent again unless readers see its records (`is_committed`).

        Any other is of a transaction that nobody will send again: it counts, and becomes visible with the next one.
        """
        return row.outbox == self._reader.outbox_id and row.transaction == start.transactions

    def is_committed(self, start: Start) -> bool:
        """Whether readers see the records of the transaction that comes next: then its hidden row is the truth.

        Kafka may lose the marker of the ledger's partition alone. Of each key the last record is looked for: a
        compacted topic keeps no other.
        """
        last: dict[tuple[str, bytes | None], bytes | None] = {}
        for piece in self._next(start.position):
            columns = (self._encoded(piece).rows.column(name).to_pylist() for name in ("topic", "key", "value"))
            last.update({(topic, key): value for topic, key, value in zip(*columns, strict=True)})
        sought: defaultdict[str, set[Fingerprint]] = defaultdict(set)
        for (topic, key), value in last.items():
            sought[topic].add(fingerprint(key, value))
        return bool(sought) and self._hidden.is_committed(sought)

    def show(self, session: Session, row: LedgerEntry) -> None:
        """Lets readers see a hidden row of a committed transaction, which the next abort would take away.

        The marker of the transaction that repeats it decides about both.
        """
        _LOG.warning(
            "shard %d: Kafka committed transaction %d without the ledger's row; the row is written again",
            self._reader.shard,
            row.transaction,
        )
        shard = self._reader.shard
        session.begin()
        session.produce_one(self._ledger.topic, key=self._ledger.key(shard), value=row.to_json(), partition=shard)
        session.commit()

    def settle(self, session: Session, start: Start, *, hides_row: bool) -> tuple[Place, ...]:
        """Aborts what a first try of the next transaction left hidden; gives the partitions."""
        places = list(self._left_over(start.position))
        if hides_row:
            places.append((self._ledger.topic, self._reader.shard))
        if places:
            _LOG.warning(
                "shard %d: Kafka neither committed nor aborted an earlier transaction in %d partitions, the first is "
                "%s[%d]; it is aborted now, and sent again",
                self._reader.shard,
                len(places),
                *places[0],
            )
            session.abort_in(places)
        return tuple(places)

    def await_visible(self) -> None:
        """Waits until readers see the last transaction: a commit is answered before it is carried out.

        Raises:
            SendAgainError: Kafka forgot to carry it out.
        """
        started = self._clock()
        while self._ledger.hidden(self._reader.shard) is not None:
            if self._clock() - started >= _GRACE_SECONDS:
                raise SendAgainError(_not_carried_out(), counted=False)
            self._sleep(_LOOK_SECONDS)

    def await_records(self, topics: Collection[str], begun: int) -> None:
        """Waits until readers see the records that were sent, whatever else is open in their partitions.

        Where nothing is hidden, that is one look at all partitions. What is still hidden after a moment is compared
        with the shard: others may have transactions open there that hide nothing of it.

        Args:
            topics: where records went.
            begun: position of the first record that was sent.

        Raises:
            RetriableError: some are hidden for longer than any transaction may be open.
        """
        started = self._clock()
        ends = {place: end for place, (_, end) in self._hidden.spans(topics).items()}
        is_compared = False
        while ends:
            waited = self._clock() - started
            if waited >= _GRACE_SECONDS and not is_compared:
                spans = self._until(ends)
                ends = {place: ends[place] for place in self._own_of(spans, begun)}
                is_compared = True
                continue
            if waited >= self._longest_open_seconds:
                raise _held_back(len(ends), *min(ends))
            self._sleep(_LOOK_SECONDS if not is_compared else _LOOK_LATER_SECONDS)
            ends = {place: ends[place] for place in self._until(ends)}

    def _until(self, ends: Mapping[Place, int]) -> dict[Place, tuple[int, int]]:
        """What is hidden yet of the partitions up to these ends."""
        spans = self._hidden.spans({topic for topic, _ in ends})
        return {
            place: (spans[place][0], end) for place, end in ends.items() if place in spans and spans[place][0] < end
        }

    def _own_of(self, spans: Mapping[Place, tuple[int, int]], begun: int) -> Collection[Place]:
        sought: defaultdict[str, set[Fingerprint]] = defaultdict(set)
        hiding = {topic for topic, _ in spans}
        for piece in pieces(self._reader.batches(begun)) if spans else ():
            self._add(sought, piece, hiding)
        return self._hidden.matching(spans, sought)

    def _left_over(self, position: int) -> Collection[Place]:
        if position >= self._reader.records:
            return ()
        topics = {topic for piece in self._next(position) for topic in piece.topics()}
        topics |= {self._aside} if self._aside is not None else set()
        spans = self._hidden.spans(topics)
        return sorted(self._hidden.matching(spans, self._sought(position, spans))) if spans else ()

    def _sought(self, position: int, spans: Collection[Place]) -> Mapping[str, set[Fingerprint]]:
        hiding = {topic for topic, _ in spans}
        sought: defaultdict[str, set[Fingerprint]] = defaultdict(set)
        for piece in self._next(position):
            self._add(sought, piece, hiding)
        return sought

    def _add(self, sought: defaultdict[str, set[Fingerprint]], piece: Piece, hiding: Collection[str]) -> None:
        columns = (self._encoded(piece).rows.column(name).to_pylist() for name in ("topic", "key", "value"))
        for topic, key, value in zip(*columns, strict=True):
            if topic in hiding:
                sought[topic].add(fingerprint(key, value))
            if self._aside is not None and self._aside in hiding:
                sought[self._aside] |= {fingerprint(*left) for left in left_of(key, value)}

    def _next(self, position: int) -> Iterator[Piece]:
        """The transaction that begins at a position."""
        first: int | None = None
        for piece in pieces(self._reader.batches(position)):
            first = piece.transaction if first is None else first
            if piece.transaction != first:
                return
            yield piece


def _not_carried_out() -> RetriableError:
    return RetriableError(
        "Kafka answered the last commit, and shows nothing of it",
        next_step="look into the brokers' logs for markers that were skipped ('likely deleted already'), then clear "
        "the task: the transaction is sent again",
    )


def _held_back(partitions: int, topic: str, partition: int) -> RetriableError:
    return RetriableError(
        f"readers don't see the records that were sent to {partitions} partitions, the first is {topic}[{partition}]: "
        "a transaction before them was neither committed nor aborted",
        next_step="look into the brokers' logs for a transaction that hangs there, clear the task, and when "
        "readers go on run contexture verify: it says whether something is missing",
    )
