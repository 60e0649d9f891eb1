"""Sending one shard: client after client, until all of it is in Kafka or no attempt is left.

The protocol (DESIGN section 7): fence earlier senders, read in the ledger how far the shard got, and from there put the
records of each transaction and the ledger's next row into one Kafka transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from contexture.errors import ContextureError, RejectedError, RetriableError
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.errors import BrokersAwayError, FencedError, SendAgainError
from contexture.kafka.producer import ProducerSession
from contexture.sending.context import SendContext, SendProgress, Step
from contexture.sending.dead_letters import DeadLetterSearch
from contexture.sending.interfaces import ShardReader
from contexture.sending.ledger import LedgerEntry
from contexture.sending.pieces import topics_until
from contexture.sending.restoration import Restoration
from contexture.sending.resume import ExpectedRow, Fencings, OwnCommits, ResumePoint, RowExpectation, find_resume_point
from contexture.sending.shard_records import ShardRecords
from contexture.sending.transactions import SendCounter, ShardResult, TransactionSender, check_end
from contexture.sending.unfinished import CLEANUP_SECONDS, TransactionRecovery

AfterFailure = Callable[[ContextureError], int | None]
"""Given a failure that counts: milliseconds to wait before the next attempt, or None when there is none left."""

# Transactions that outlive their time-out are done again for free, but not for ever.
_FREE_REPEATS = 3


class Attempts:
    """Those of one sending of a shard.

    Args:
        after_failure: decides about a failure that counts.
        patience: begins anew with each attempt.
        again: is told why something is done again.
        sleep: seconds.
    """

    def __init__(
        self,
        after_failure: AfterFailure,
        patience: BrokerWait,
        again: Callable[[str], None],
        sleep: Callable[[float], None],
    ) -> None:
        self._after_failure = after_failure
        self._patience = patience
        self._again = again
        self._sleep = sleep
        self._free_repeats = 0

    def succeeded(self) -> None:
        """A transaction is committed: the next one has all its free repeats."""
        self._free_repeats = 0

    def repeat(self, failure: SendAgainError) -> None:
        """Returns when the transaction may be done again: at once as long as that is free.

        Raises:
            ContextureError: no attempt is left.
        """
        self._free_repeats += 1
        if failure.counted or self._free_repeats > _FREE_REPEATS:
            self.count(failure.error)
            return
        self._again(f"doing the transaction again with a new client: {failure.error.message}")

    def count(self, error: ContextureError) -> None:
        """Returns when the next attempt is due.

        Raises:
            ContextureError: the failure itself: no attempt is left.
        """
        delay_ms = self._after_failure(error)
        if delay_ms is None:
            raise error
        self._free_repeats = 0
        self._patience.relieve()
        self._again(f"another attempt in {delay_ms} ms: {error.message}")
        self._sleep(delay_ms / 1000)


def attempts_from_delays(delays: Iterable[int]) -> AfterFailure:
    """Attempts after these delays (milliseconds), one after the other, whatever the failure."""
    waits = iter(delays)
    return lambda error: next(waits, None)


# From the last commit to the look whether readers see it: two questions to the brokers.
_SOON_SECONDS: Final = 1.0


class ShardSender:
    """One call of `Publisher.publish`, which says what is given and raised.

    Args:
        equipment: of the publication.
        reader: the shard.
        after_failure: decides about a failure that counts.
        committed: is told each transaction that became visible.
        skipped: is told how many transactions are in Kafka before anything is sent.
        row: what is known of the ledger's row of the shard.
    """

    def __init__(
        self,
        equipment: SendContext,
        reader: ShardReader,
        after_failure: AfterFailure,
        committed: Callable[[LedgerEntry], None],
        skipped: Callable[[int], None],
        row: ExpectedRow,
    ) -> None:
        self._equipment = equipment
        self._reader = reader
        self._committed = committed
        self._skipped = skipped
        self._tally = SendCounter()
        self._own = OwnCommits()
        self._row = RowExpectation(equipment.names, reader.shard, row)
        self._aside = DeadLetterSearch(equipment.dead_letters, reader, equipment.requests)
        self._transactions = TransactionSender(equipment, reader, self._tally, self._own, self._aside, self._note)
        records = ShardRecords(
            reader,
            equipment.encoded,
            equipment.names.transactional_id(reader.shard).encode(),
            equipment.dead_letters,
        )
        hidden, clock, sleep = equipment.hidden, equipment.clock, equipment.sleep
        longest = equipment.settings.transaction_timeout_seconds + CLEANUP_SECONDS
        self._settlement = TransactionRecovery(
            records, equipment.ledger, hidden, clock, sleep, longest_open_seconds=longest
        )
        self._restoration = Restoration(records, hidden, clock, sleep, longest_open_seconds=longest)
        self._attempts = Attempts(after_failure, equipment.patience, self._report_repetition, equipment.sleep)
        self._fencings = Fencings(self._own, equipment.ledger, reader.shard, self._report_repetition, equipment.sleep)
        self._ended_well = False
        self._looked_at = equipment.clock()

    def run(self) -> ShardResult:
        """Sends what is not yet sent."""
        started = self._equipment.clock()
        finished = False
        while not finished:
            try:
                finished = self._send()
            except RejectedError as refused:
                self._before_careful(refused)
            except FencedError as fenced:
                self._fencings.look_into(fenced)
            except BrokersAwayError as failure:
                self._attempts.count(failure)
            except SendAgainError as failure:
                self._before_again(failure)
        result = self._tally.result(self._reader, self._equipment.clock() - started)
        self.tell("done", f"sent {result.records_sent} records in {result.transactions} transactions")
        return result

    def tell(self, step: Step, detail: str) -> None:
        """Lets people see what goes on."""
        self._equipment.progress(
            SendProgress(step, self._reader.shard, self._tally.position, self._reader.records, detail)
        )

    def _send(self) -> bool:
        """Sends with one client; False when the rest needs another client."""
        after_own, self._ended_well = self._ended_well, False
        ledger, shard = self._equipment.ledger, self._reader.shard
        ledger.prepare(self._equipment.shards)
        # Another instance's sender is not fenced for nothing: it may be at what follows.
        if self._reader.registry and self._is_all_told(ledger.read(shard)):
            return True
        if self._own.outlived:
            self._own.check(ledger.hidden(shard) or ledger.read(shard))
        careful, session = self._aside.is_careful, self._open_session()
        try:
            # While all topics are listed, brokers end the last client's transaction in as many of them: a client that
            # begins before they have sleeps for half a second.
            session.initialise(self._transactions.topics)
            # What this sending left a moment ago with its last client is settled.
            entry = ledger.settled(shard) if after_own else None
            entry = entry or self._settled(session)
            if session.is_uncertain:
                return False
            if entry is None:
                self._row.check_missing(
                    self._settlement.is_first_committed,
                    lambda: (ledger.hidden(shard) or ledger.read(shard)) is not None,
                )
            elif not after_own:
                self._restore(session, entry)
                self._looked_at = self._equipment.clock()
            self._begin(self._start(entry), entry)
            if careful and not self._aside.is_careful:
                # The commit whose answer got lost did happen: the rest needs no such client.
                self._ended_well = True
                return False
            finished = self._tally.superseded or self._send_rest(session)
        except RejectedError:
            if self._aside.is_careful:
                session.await_reports(lambda: self._aside.has_found)
            raise
        else:
            self._ended_well = not session.is_uncertain
            return finished
        finally:
            session.close()

    def _open_session(self) -> ProducerSession:
        shard = self._reader.shard
        self.tell("connecting", f"starting sender {self._equipment.names.transactional_id(shard)}")
        return self._equipment.open_session(shard, careful=self._aside.is_careful)

    def _settled(self, session: ProducerSession) -> LedgerEntry | None:
        """The ledger's row to go on from, once what an earlier transaction left undecided is ended."""
        ledger, shard = self._equipment.ledger, self._reader.shard
        entry, hidden = ledger.settled(shard), ledger.hidden(shard)
        own = [row for row in ledger.unseen(shard) if row.outbox == self._reader.outbox_id]
        truth = self._settlement.truth(own, self._row.is_answered, is_undecided=hidden is not None)
        if truth is not None:
            entry = truth
            self._settlement.show(session, truth)
            if session.is_uncertain:
                return entry
        elif hidden is not None and hidden.outbox != self._reader.outbox_id:
            # Of a transaction that no one sends again: it counts, and becomes visible with the next one.
            entry, hidden = hidden, None
        start = self._start(entry)
        if not start.superseded:
            aborted = self._settlement.settle(session, start, hides_row=hidden is not None and truth is None)
            if aborted:
                # Its marker may be left out too: the next client looks again.
                raise _look_again(f"aborted what an earlier transaction left in {len(aborted)} partitions")
        return entry

    def _restore(self, session: ProducerSession, entry: LedgerEntry) -> None:
        """Sees that readers see, or will see, what the ledger calls done."""
        if not self._start(entry).own or not entry.position:
            return
        step = self._restoration.restore(session, entry)
        if step is not None:
            raise _look_again(step)

    def _is_all_told(self, entry: LedgerEntry | None) -> bool:
        start = self._start(entry)
        if not start.superseded and start.position < self._reader.records:
            return False
        self._begin(start, entry)
        if start.superseded:
            return True
        try:
            self._await_records()
        except SendAgainError:
            # Only a client of this sending can show them.
            return False
        return True

    def _start(self, entry: LedgerEntry | None) -> ResumePoint:
        # Backfills do not supersede each other: each interval has a ledger key of its own.
        return find_resume_point(self._reader, entry, alone=self._equipment.names.backfill is not None)

    def _begin(self, start: ResumePoint, entry: LedgerEntry | None) -> None:
        self._own.found(entry)
        self._tally.begun_at(start, entry)
        self._aside.begin_at(self._tally.position)
        if start.superseded:
            self.tell("done", "a later outbox was sent already: nothing of this one is sent")
            return
        if start.transactions:
            self._skipped(start.transactions)
            self.tell("sending", _told(start))
        self.tell("sending", f"sending from position {self._tally.position}")

    def _send_rest(self, session: ProducerSession) -> bool:
        self._row.begins()
        if not self._transactions.send(session):
            return False
        self._settlement.await_visible()
        self._await_records()
        check_end(self._tally.position, self._reader.records)
        return True

    def _await_records(self) -> None:
        """Waits until readers see the outbox's records, also those of an earlier task, which may not have looked."""
        earlier, topics = self._tally.sent_earlier, set(self._transactions.sent_topics)
        if earlier:
            topics |= topics_until(self._reader.batches(0), earlier)
        if not topics:
            return
        # A sender that stood still may have been taken for dead by another, which aborted what was undecided.
        stood_still = self._equipment.clock() - self._looked_at > _SOON_SECONDS
        hid = self._settlement.await_records(topics, 0 if earlier else self._tally.begun or 0)
        entry = self._equipment.ledger.read(self._reader.shard) if hid or stood_still else None
        if entry is None or not self._start(entry).own:
            return
        if self._restoration.is_short(topics, None if stood_still else hid, entry):
            raise _look_again("another sender aborted what Kafka had left undecided")

    def _note(self, entry: LedgerEntry) -> None:
        """A transaction is committed."""
        self._looked_at = self._equipment.clock()
        self._row.committed()
        self._attempts.succeeded()
        self._fencings.succeeded()
        self._tally.committed(entry)
        self._committed(entry)
        for position in self._aside.positions:
            self.tell("sending", f"position {position} went to the dead-letter topic: it can never be sent")
        self.tell("sending", f"{entry.position} of {self._reader.records} records are committed")

    def _before_careful(self, refused: ContextureError) -> None:
        if not self._aside.learns(refused, self._tally.position, len(self._tally.dead_letters)):
            raise refused
        self._report_repetition(f"doing the transaction again, to find what can't be sent: {refused.message}")

    def _before_again(self, failure: SendAgainError) -> None:
        if self._aside.has_found:
            self._before_careful(failure.error)
            return
        self._own.outlived = failure.outlived
        self._attempts.repeat(failure)

    def _report_repetition(self, why: str) -> None:
        self.tell("again", why)


def _look_again(step: str) -> SendAgainError:
    error = RetriableError(step, next_step="clear the task: it looks again whether readers see what was sent")
    return SendAgainError(error, counted=False)


def _told(start: ResumePoint) -> str:
    whose = "by an earlier send" if start.own else "with another outbox"
    return f"{start.transactions} transactions are in Kafka already, sent {whose}"
