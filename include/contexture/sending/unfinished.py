"""Ends what an earlier transaction of a shard left undecided, before the shard is sent on.

After `init_transactions` nothing of a shard's earlier senders is open any more: whatever they left was committed or
aborted. But where Kafka lost the marker (`open_transactions`), what should be aborted would become visible with the
next commit, and be there twice. So a sender that begins looks at the partitions that its first transaction goes to, and
where a first attempt of that very transaction is hidden, it aborts a transaction there: also in the dead-letter topic,
because any of its records may be a dead letter. One that is done checks that its last transaction is visible.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from contexture.errors import RetriableError
from contexture.kafka.errors import KafkaConfigurationError, SendAgainError
from contexture.kafka.producer import ProducerSession
from contexture.kafka.reader import Place
from contexture.sending.interfaces import HiddenPort, LedgerPort
from contexture.sending.ledger import LedgerEntry
from contexture.sending.open_transactions import LOOK_AGAIN_SECONDS, held_back, places_until
from contexture.sending.pieces import split_by_transaction
from contexture.sending.resume import ResumePoint
from contexture.sending.shard_records import Fingerprint, ShardRecords

_LOG: Final = logging.getLogger(__name__)

# Markers are written within milliseconds, those of a thousand topics within a second.
GRACE_SECONDS: Final = 5.0
"""After a transaction is ended, until what is hidden yet was forgotten."""
_LOOK_SECONDS: Final = 0.02
# Brokers look for transactions that are open for too long every 10 s.
CLEANUP_SECONDS: Final = 15.0


class TransactionRecovery:
    """Of one shard.

    Args:
        records: the shard.
        ledger: its publication's.
        hidden: looks behind the last stable offset.
        clock, sleep: seconds.
        longest_open_seconds: for how long another sender's transaction can hold readers back.
    """

    def __init__(
        self,
        records: ShardRecords,
        ledger: LedgerPort,
        hidden: HiddenPort,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        *,
        longest_open_seconds: float,
    ) -> None:
        self._records = records
        self._shard = records.reader.shard
        self._ledger = ledger
        self._hidden = hidden
        self._clock = clock
        self._sleep = sleep
        self._longest_open_seconds = longest_open_seconds

    def truth(
        self, rows: Sequence[LedgerEntry], is_answered: Callable[[LedgerEntry], bool], *, is_undecided: bool
    ) -> LedgerEntry | None:
        """The last row whose transaction was committed, of those that readers don't see; those after it were aborted.

        Kafka may have left out the marker of the ledger's partition alone; then the next abort took the row away.

        Args:
            rows: of this outbox, after the last that readers see, in their order.
            is_answered: whether brokers answered the commit of an undecided row.
            is_undecided: whether the last of them was neither committed nor aborted.

        Raises:
            KafkaConfigurationError: this user may not see what became of an undecided row.
        """
        for row in reversed(rows):
            is_claim = row.transaction < 0
            if is_claim or (is_undecided and is_answered(row)) or self._is_committed(row, is_undecided=is_undecided):
                return row
        return None

    def is_first_committed(self) -> bool:
        """Whether readers see the records of the shard's first transaction."""
        return self._are_committed(0)

    def _is_committed(self, row: LedgerEntry, *, is_undecided: bool) -> bool:
        try:
            return self._are_committed(row.position - row.records, row.dead_letters, row.since)
        except KafkaConfigurationError as refused:
            if is_undecided:
                raise
            _LOG.warning(
                "shard %d: transaction %d counts as aborted, because this user may not see whether it was (%s): "
                "allow READ on its topics",
                self._shard,
                row.transaction,
                refused.message,
            )
            return False

    def _are_committed(self, position: int, dead_letters: Collection[int] = (), since: datetime | None = None) -> bool:
        """Whether readers see the records of the transaction that begins at a position: then its row is the truth.

        Kafka may lose the marker of the ledger's partition alone. Of each key the last record is looked for: a
        compacted topic keeps no other.
        """
        last: dict[tuple[str, bytes | None], Fingerprint] = {}
        for number, topic, sign in self._records.fingerprints(self._records.transaction(position)):
            if number not in dead_letters:
                last[topic, sign[0]] = sign
        sought: defaultdict[str, set[Fingerprint]] = defaultdict(set)
        for (topic, _), sign in last.items():
            sought[topic].add(sign)
        return bool(sought) and self._hidden.is_committed(sought, self._are_own, since, self._longest_open_seconds)

    def show(self, session: ProducerSession, row: LedgerEntry) -> None:
        """Lets readers see a hidden row of a committed transaction, which the next abort would take away.

        The marker of the transaction that repeats it decides about both.
        """
        _LOG.warning(
            "shard %d: Kafka committed %s without the ledger's row; the row is written again",
            self._shard,
            "a claim" if row.transaction < 0 else f"transaction {row.transaction}",
        )
        session.begin()
        key, value = self._ledger.key(self._shard), row.to_json()
        session.produce_one(self._ledger.topic, key=key, value=value, partition=self._shard)
        session.commit()

    def finish_open_transaction(
        self, session: ProducerSession, start: ResumePoint, *, hides_row: bool
    ) -> tuple[Place, ...]:
        """Aborts what a first attempt of the next transaction left hidden; returns the partitions."""
        places = list(self._left_over(start.position))
        if hides_row:
            places.append((self._ledger.topic, self._shard))
        if places:
            _LOG.warning(
                "shard %d: Kafka neither committed nor aborted an earlier transaction in %d partitions, the first is "
                "%s[%d]; it is aborted now, and sent again",
                self._shard,
                len(places),
                *places[0],
            )
            session.abort_in(places, self._records.mark)
        return tuple(places)

    def await_visible(self) -> None:
        """Waits until readers see the last transaction: a commit is answered before it is carried out.

        Raises:
            SendAgainError: Kafka forgot to carry it out.
        """
        started = self._clock()
        while self._ledger.read_uncommitted(self._shard) is not None:
            if self._clock() - started >= GRACE_SECONDS:
                raise SendAgainError(_not_carried_out(), counted=False)
            self._sleep(_LOOK_SECONDS)

    def await_records(self, topics: Collection[str], begun: int) -> Collection[Place]:
        """Waits until readers see the records that were sent, whatever else is open in their partitions.

        Where nothing is hidden, that is one look at all partitions. What is still hidden after a moment is compared
        with the shard: others may have transactions open there that hide nothing of it.

        Args:
            topics: where records went.
            begun: position of the first record that was sent.

        Returns:
            The partitions that hid something at first.

        Raises:
            SendAgainError: a partition begins to hide with a record of this shard: Kafka forgot to commit it.
            RetriableError: some are hidden for longer than any transaction may be open.
        """
        started = self._clock()
        ends = {place: end for place, (_, end) in self._hidden.spans(topics).items()}
        hid, sought = tuple(ends), None
        while ends:
            waited = self._clock() - started
            spans = places_until(self._hidden, ends)
            if spans and waited >= GRACE_SECONDS:
                if sought is None:
                    sought = self._records.traces(
                        split_by_transaction(self._records.reader.batches(begun)), _topics(spans)
                    )
                    spans = {place: spans[place] for place in self._hidden.matching(spans, sought)}
                self._check_firsts(spans, sought)
            if spans and waited >= self._longest_open_seconds:
                raise held_back(len(spans), *min(spans))
            ends = {place: ends[place] for place in spans}
            if ends:
                self._sleep(_LOOK_SECONDS if sought is None else LOOK_AGAIN_SECONDS)
        return hid

    def _check_firsts(self, spans: Mapping[Place, tuple[int, int]], sent: Mapping[str, set[Fingerprint]]) -> None:
        firsts = self._hidden.firsts(spans)
        own = [place for place, first in firsts.items() if first in sent.get(place[0], ())]
        if own:
            raise SendAgainError(held_back(len(own), *min(own)), counted=False)

    def _are_own(self, firsts: Mapping[Place, Fingerprint]) -> bool:
        return len(self._records.own(firsts, self._records.before(self._records.reader.records))) == len(firsts)

    def _left_over(self, position: int) -> Collection[Place]:
        topics = {topic for piece in self._records.transaction(position) for topic in piece.topics()}
        if topics and self._records.dead_letter_topic is not None:
            topics.add(self._records.dead_letter_topic)
        spans = self._hidden.spans(topics) if topics else {}
        if not spans:
            return ()
        sought = self._records.traces(self._records.transaction(position), _topics(spans))
        return sorted(self._hidden.matching(spans, sought))


def _topics(places: Collection[Place]) -> set[str]:
    return {topic for topic, _ in places}


def _not_carried_out() -> RetriableError:
    return RetriableError(
        "Kafka answered the last commit, and shows nothing of it",
        next_step="look into the brokers' logs for markers that were skipped ('likely deleted already'), then clear "
        "the task: the transaction is sent again",
    )
