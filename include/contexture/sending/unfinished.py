"""Ends what an earlier transaction of a shard left undecided, before the shard is sent on.

After `init_transactions` nothing of a shard's earlier senders is open any more: whatever they left was committed or
aborted. But where Kafka lost the marker (`open_transactions`), what should be aborted would become visible with the
next commit, and be there twice. So a sender that begins checks the partitions that its first transaction goes to, and
where a first attempt of that very transaction is hidden, it aborts a transaction there: also in the dead-letter topic,
because any of its records may be a dead letter. One that is done checks that its last transaction is visible.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contexture.errors import RetriableError
from contexture.kafka.errors import KafkaConfigurationError, SendAgainError
from contexture.kafka.interfaces import Place
from contexture.kafka.producer import ProducerSession
from contexture.sending.interfaces import HiddenPort, LedgerPort, OffsetSpan
from contexture.sending.ledger import LedgerEntry, commit_row
from contexture.sending.open_transactions import LOOK_AGAIN_SECONDS, hidden_records_error, places_until
from contexture.sending.pieces import split_by_transaction
from contexture.sending.resume import ResumePoint
from contexture.sending.shard_records import Fingerprint, ShardRecords, TopicKey

_LOG: Final = logging.getLogger(__name__)

# Markers are written within milliseconds, those of a thousand topics within a second.
GRACE_SECONDS: Final = 5.0
"""After a transaction is ended, until what is hidden yet was forgotten."""
_LOOK_SECONDS: Final = 0.02
# Brokers look for transactions that are open for too long every 10 s.
CLEANUP_SECONDS: Final = 15.0


@dataclass
class TransactionRecovery:
    """Ends the transactions of one shard's earlier senders."""

    records: ShardRecords
    ledger: LedgerPort
    hidden: HiddenPort
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    longest_open_seconds: float

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
        """Returns whether readers see the records of the shard's first transaction."""
        return self._are_committed(0)

    def _is_committed(self, row: LedgerEntry, *, is_undecided: bool) -> bool:
        try:
            return self._are_committed(row.position - row.records, row.dead_letters, row.since)
        except KafkaConfigurationError as refused:
            if is_undecided:
                raise
            _LOG.warning(
                "shard %d: transaction %d counts as aborted, because this user may not see whether it was (%s): allow "
                "READ on its topics",
                self.records.reader.shard,
                row.transaction,
                refused.message,
            )
            return False

    def _are_committed(self, position: int, dead_letters: Collection[int] = (), since: datetime | None = None) -> bool:
        """Whether readers see the records of the transaction that begins at a position: then its row is the truth.

        Kafka may lose the marker of the ledger's partition alone. Of each key the last record is looked for: a
        compacted topic keeps no other.
        """
        last: dict[TopicKey, Fingerprint] = {}
        for number, topic, sign in self.records.fingerprints(self.records.transaction(position)):
            if number not in dead_letters:
                last[topic, sign[0]] = sign
        sought: defaultdict[str, set[Fingerprint]] = defaultdict(set)
        for (topic, _), sign in last.items():
            sought[topic].add(sign)
        return bool(sought) and self.hidden.is_committed(sought, self._are_own, since, self.longest_open_seconds)

    def show(self, session: ProducerSession, row: LedgerEntry) -> None:
        """Lets readers see a hidden row of a committed transaction, which the next abort would take away.

        The marker of the transaction that repeats it decides about both.
        """
        _LOG.warning(
            "shard %d: Kafka committed %s without the ledger's row; the row is written again",
            self.records.reader.shard,
            "a claim" if row.transaction < 0 else f"transaction {row.transaction}",
        )
        commit_row(session, self.ledger, self.records.reader.shard, row)

    def finish_open_transaction(
        self, session: ProducerSession, start: ResumePoint, *, hides_row: bool
    ) -> tuple[Place, ...]:
        """Aborts what a first attempt of the next transaction left hidden; returns the partitions."""
        places = list(self._left_over(start.position))
        if hides_row:
            places.append((self.ledger.topic, self.records.reader.shard))
        if places:
            _LOG.warning(
                "shard %d: Kafka neither committed nor aborted an earlier transaction in %d partitions, the first is "
                "%s[%d]; it is aborted now, and sent again",
                self.records.reader.shard,
                len(places),
                *places[0],
            )
            session.abort_in(places, self.records.mark)
        return tuple(places)

    def await_visible(self) -> None:
        """Waits until readers see the last transaction: a commit is answered before it is carried out.

        Raises:
            SendAgainError: Kafka forgot to carry it out.
        """
        started = self.clock()
        while self.ledger.read_uncommitted(self.records.reader.shard) is not None:
            if self.clock() - started >= GRACE_SECONDS:
                raise SendAgainError(_not_carried_out(), counted=False)
            self.sleep(_LOOK_SECONDS)

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
        started = self.clock()
        ends = {place: end for place, (_, end) in self.hidden.spans(topics).items()}
        hid, sought = tuple(ends), None
        while ends:
            waited = self.clock() - started
            spans = places_until(self.hidden, ends)
            if spans and waited >= GRACE_SECONDS:
                if sought is None:
                    sought = self.records.traces(
                        split_by_transaction(self.records.reader.batches(begun)), _topics(spans)
                    )
                    spans = {place: spans[place] for place in self.hidden.matching(spans, sought)}
                self._check_firsts(spans, sought)
            if spans and waited >= self.longest_open_seconds:
                raise hidden_records_error(len(spans), *min(spans))
            ends = {place: ends[place] for place in spans}
            if ends:
                self.sleep(_LOOK_SECONDS if sought is None else LOOK_AGAIN_SECONDS)
        return hid

    def _check_firsts(self, spans: Mapping[Place, OffsetSpan], sent: Mapping[str, set[Fingerprint]]) -> None:
        firsts = self.hidden.firsts(spans)
        own = [place for place, first in firsts.items() if first in sent.get(place[0], ())]
        if own:
            raise SendAgainError(hidden_records_error(len(own), *min(own)), counted=False)

    def _are_own(self, firsts: Mapping[Place, Fingerprint]) -> bool:
        return len(self.records.own(firsts, self.records.before(self.records.reader.records))) == len(firsts)

    def _left_over(self, position: int) -> Collection[Place]:
        topics = {topic for piece in self.records.transaction(position) for topic in piece.topics()}
        if topics and self.records.dead_letter_topic is not None:
            topics.add(self.records.dead_letter_topic)
        spans = self.hidden.spans(topics) if topics else {}
        if not spans:
            return ()
        sought = self.records.traces(self.records.transaction(position), _topics(spans))
        return sorted(self.hidden.matching(spans, sought))


def _topics(places: Collection[Place]) -> set[str]:
    return {topic for topic, _ in places}


def _not_carried_out() -> RetriableError:
    return RetriableError(
        "Kafka confirmed the last commit, but shows none of its records",
        next_step="search the brokers' logs for markers that were skipped ('likely deleted already'), then clear "
        "the task: the transaction is sent again",
    )
