"""Claiming shards for an outbox, so that nothing older can ever be sent on top of it.

The shards it uses are fenced by their own sending, which is enough while a key stays in its shard. Where the number of
shards changed, or an outbox was abandoned whose sender may be alive, all of them are claimed before the first record
goes out: a sender of the old shard would write a key after the one that has it now.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

from contexture.errors import RetriableError
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.clients import transactional_producer
from contexture.kafka.errors import FencedError, SendAgainError
from contexture.kafka.interfaces import OpenProducer, Place
from contexture.kafka.producer import ABORTED_KEY, ProducerSession, open_session
from contexture.kafka.settings import ClientSettings
from contexture.sending.interfaces import HiddenPort, LedgerPort, OffsetSpan
from contexture.sending.ledger import LedgerEntry, SenderNames, commit_row
from contexture.sending.open_transactions import LOOK_AGAIN_SECONDS
from contexture.sending.resume import FENCED_WAITS_SECONDS, sequence_taken
from contexture.sending.shard_records import Fingerprint, fingerprint
from contexture.sending.unfinished import GRACE_SECONDS

_LOG: Final = logging.getLogger(__name__)
# The marker of an abort may be left out too.
_CLEARINGS: Final = 5
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True)
class ClaimReport:
    """What was claimed for an outbox.

    Attributes:
        claimed: shards whose earlier senders were fenced and whose ledger now has the outbox's sequence.
        superseded: a later outbox was sent already: nothing may be sent of this one.
        is_sent_in_part: records of the outbox are committed, so its senders have begun.
    """

    claimed: tuple[int, ...]
    superseded: bool
    is_sent_in_part: bool = False


@dataclass
class Claims:
    """Claims unused shards of one publication."""

    settings: ClientSettings
    names: SenderNames
    ledger: LedgerPort
    _: KW_ONLY
    broker_wait: BrokerWait = field(default_factory=lambda: BrokerWait(300.0))
    open_producer: OpenProducer = transactional_producer
    sleep: Callable[[float], None] = time.sleep

    def claim(self, outbox: str, sequence: int, *, shards: int, used: Collection[int]) -> ClaimReport:
        """Fences the senders of every shard that the outbox does not use, and writes its sequence there.

        Shards it uses are fenced and written by their own sending. Calling it again does nothing new.

        Args:
            outbox: its id.
            sequence: its place in the publication's order.
            shards: today's number of shards; earlier outboxes may have had more.
            used: the shards that have records and that their own sending fences; none where all are to be claimed.

        Raises:
            SequenceTakenError: another outbox of the same sequence was sent or claimed.
            FencedError: another sender fenced the claim of a shard four times in a row.
            BrokersAwayError: the brokers stayed away.
        """
        self.ledger.prepare(shards)
        entries = {shard: self.ledger.read(shard) for shard in range(self.ledger.partitions())}
        orders = {shard: _order_of(entry, outbox, sequence) for shard, entry in entries.items()}
        if "later" in orders.values():
            return ClaimReport((), superseded=True)
        claimed: list[int] = []
        for shard, order in orders.items():
            if shard not in used and order == "earlier":
                if not self._in_session(shard, partial(self._claim_shard, shard, outbox, sequence)):
                    return ClaimReport(tuple(claimed), superseded=True)
                claimed.append(shard)
        begun = any(entry.outbox == outbox and entry.position > 0 for entry in entries.values() if entry)
        return ClaimReport(tuple(claimed), superseded=False, is_sent_in_part=begun)

    def clear(self, topics: Collection[str], hidden: HiddenPort) -> None:
        """Aborts what earlier senders left undecided in topics, because readers see nothing behind it.

        `topics` are those that outboxes went to, or go to next. Call it when all shards are claimed: then no sender is
        left that could end it. The senders of the next outbox cannot: they have other transactional ids.

        Raises:
            RetriableError: partitions are hidden still, after five aborts.
            FencedError, BrokersAwayError: as of `claim`.
        """
        spans = self._undecided(topics, hidden)
        for _ in range(_CLEARINGS):
            if not spans:
                return
            _LOG.warning("%d partitions hide records from their readers, the first is %s[%d]", len(spans), *min(spans))
            for shard, places in self._left_by(spans, hidden.firsts(spans)).items():
                self._in_session(shard, partial(ProducerSession.abort_in, places=places, mark=self._mark(shard)))
            spans = self._undecided(topics, hidden)
        if spans:
            raise _still_hidden(len(spans), *min(spans))

    def _left_by(self, places: Iterable[Place], firsts: Mapping[Place, Fingerprint]) -> Mapping[int, list[Place]]:
        """Returns by shard the partitions where it may have left a transaction undecided.

        A record does not show its sender, so each shard aborts there. An aborted mark does show it, and then no other
        shard aborts, because the marker of each abort can be lost too.
        """
        marks = {fingerprint(ABORTED_KEY, self._mark(shard)): shard for shard in range(self.ledger.partitions())}
        left = defaultdict[int, list[Place]](list)
        for place in sorted(places):
            sender = marks.get(firsts[place]) if place in firsts else None
            for shard in marks.values() if sender is None else [sender]:
                left[shard].append(place)
        return left

    def _mark(self, shard: int) -> bytes:
        return self.names.transactional_id(shard).encode()

    def _undecided(self, topics: Collection[str], hidden: HiddenPort) -> Mapping[Place, OffsetSpan]:
        """Returns the partitions that hide records, once markers had time to be written."""
        waited, spans = 0.0, hidden.spans(topics)
        while spans and waited < GRACE_SECONDS:
            self.sleep(LOOK_AGAIN_SECONDS)
            waited += LOOK_AGAIN_SECONDS
            spans = hidden.spans({topic for topic, _ in spans})
        return spans

    def set_log_start(self, outbox: str, sequence: int, transaction: int) -> int:
        """Records in the ledger that no instance sends what a registry did up to a transaction.

        Nothing is written when the ledger contains already up to which transaction the log was sent.

        Returns:
            The transaction up to which the log counts as sent: `transaction`, or the ledger's.

        Raises:
            FencedError: another sender fenced this one four times in a row.
            BrokersAwayError: the brokers stayed away.
        """
        self.ledger.prepare(1)
        known = _sent_position(self.ledger.read(0))
        if known is not None:
            return known

        def begin(session: ProducerSession) -> int:
            known = _sent_position(self.ledger.read_committed(0))
            if known is None:
                entry = LedgerEntry(outbox, sequence, 0, 0, 0, -1, transaction, datetime.now(UTC), True)
                commit_row(session, self.ledger, 0, entry)
            return transaction if known is None else known

        return self._in_session(0, begin)

    def _claim_shard(self, shard: int, outbox: str, sequence: int, session: ProducerSession) -> bool:
        """Claims one shard; returns False when a later outbox has it by now."""
        before = self.ledger.read_committed(shard)
        if _order_of(before, outbox, sequence) == "later":
            return False
        commit_row(session, self.ledger, shard, _claimed(outbox, sequence, before))
        return True

    def _in_session(self, shard: int, act: Callable[[ProducerSession], _Done]) -> _Done:
        """Acts as the shard's only sender; repeats it after a fencing, because the ledger may then have another row."""
        for wait in FENCED_WAITS_SECONDS:
            try:
                return self._try_in_session(shard, act)
            except FencedError as failure:
                _LOG.warning("fenced while the ledger was written; repeating it in %.0f s: %s", wait, failure.message)
                self.sleep(wait)
        return self._try_in_session(shard, act)

    def _try_in_session(self, shard: int, act: Callable[[ProducerSession], _Done]) -> _Done:
        session = open_session(
            self.settings,
            self.names.transactional_id(shard),
            self.broker_wait,
            ledger_topic=self.ledger.topic,
            open_producer=self.open_producer,
        )
        try:
            session.initialise()
            return act(session)
        except SendAgainError as failure:
            step = "clear the task: claiming again does no harm"
            raise RetriableError(failure.error.message, next_step=step) from failure
        finally:
            session.close()


def _still_hidden(partitions: int, topic: str, partition: int) -> RetriableError:
    return RetriableError(
        f"a transaction hides the records of {partitions} partitions, the first is {topic}[{partition}], and aborting "
        f"it {_CLEARINGS} times changed nothing",
        next_step="clear the task: it aborts again; if that does not help, another program has it open, or the brokers "
        "lose markers (search their logs for 'likely deleted already')",
    )


def _order_of(entry: LedgerEntry | None, outbox: str, sequence: int) -> str:
    if entry is None or entry.sequence < sequence:
        return "earlier"
    if entry.sequence > sequence:
        return "later"
    if entry.outbox != outbox:
        raise sequence_taken(entry, outbox)
    return "same"


def _sent_position(entry: LedgerEntry | None) -> int | None:
    return None if entry is None else entry.source_transaction


def _claimed(outbox: str, sequence: int, before: LedgerEntry | None) -> LedgerEntry:
    """Returns the row of a claim. The sent position of a registry's log stays in it, because a claim sends nothing."""
    position = before.source_transaction if before else None
    deletions = before.source_deletions if before else False
    return LedgerEntry(outbox, sequence, 0, 0, 0, -1, position, datetime.now(UTC), deletions)
