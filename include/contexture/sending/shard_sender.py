"""Sending one shard: client after client, until all of it is in Kafka or no attempt is left.

The protocol (DESIGN section 7): fence earlier senders, read in the ledger how far the shard got, and from there put the
records of each transaction and the ledger's next row into one Kafka transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
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
"""Takes a failure that counts; returns milliseconds to wait before the next attempt, or None when none is left."""

# Transactions that outlive their time-out are repeated for free, but only so often.
_FREE_REPEATS = 3


@dataclass
class Attempts:
    """The attempts of one sending of a shard; the wait for brokers begins anew with each."""

    after_failure: AfterFailure
    broker_wait: BrokerWait
    again: Callable[[str], None]
    sleep: Callable[[float], None]
    free_repeats: int = 0

    def succeeded(self) -> None:
        """A transaction is committed: the next one has all its free repeats."""
        self.free_repeats = 0

    def repeat(self, failure: SendAgainError) -> None:
        """Returns when the transaction may be repeated: immediately as long as that is free.

        Raises:
            ContextureError: no attempt is left.
        """
        self.free_repeats += 1
        if failure.counted or self.free_repeats > _FREE_REPEATS:
            self.count(failure.error)
            return
        self.again(f"repeating the transaction with a new client: {failure.error.message}")

    def count(self, error: ContextureError) -> None:
        """Returns when the next attempt is due.

        Raises:
            ContextureError: the failure itself: no attempt is left.
        """
        delay_ms = self.after_failure(error)
        if delay_ms is None:
            raise error
        self.free_repeats = 0
        self.broker_wait.reset()
        self.again(f"another attempt in {delay_ms} ms: {error.message}")
        self.sleep(delay_ms / 1000)


def attempts_from_delays(delays: Iterable[int]) -> AfterFailure:
    """Returns attempts after these delays (milliseconds), in order, whatever the failure."""
    waits = iter(delays)
    return lambda error: next(waits, None)


# From the last commit to the look whether readers see it: two questions to the brokers.
_SOON_SECONDS: Final = 1.0


class ShardSender:
    """One call of `Publisher.publish`, which describes arguments and errors."""

    def __init__(
        self,
        context: SendContext,
        reader: ShardReader,
        after_failure: AfterFailure,
        committed: Callable[[LedgerEntry], None],
        skipped: Callable[[int], None],
        row: ExpectedRow,
    ) -> None:
        self._context = context
        self._reader = reader
        self._committed = committed
        self._skipped = skipped
        self._counter = SendCounter()
        self._own = OwnCommits()
        self._row = RowExpectation(context.names, reader.shard, row)
        self._aside = DeadLetterSearch(context.dead_letters, reader, context.requests)
        self._transactions = TransactionSender(context, reader, self._counter, self._own, self._aside, self._note)
        records = ShardRecords(
            reader,
            context.encoded,
            context.names.transactional_id(reader.shard).encode(),
            context.dead_letters,
        )
        hidden, clock, sleep = context.hidden, context.clock, context.sleep
        longest = context.settings.transaction_timeout_seconds + CLEANUP_SECONDS
        self._recovery = TransactionRecovery(
            records, context.ledger, hidden, clock, sleep, longest_open_seconds=longest
        )
        self._restoration = Restoration(records, hidden, clock, sleep, longest_open_seconds=longest)
        self._attempts = Attempts(after_failure, context.broker_wait, self._report_repetition, context.sleep)
        self._fencings = Fencings(self._own, context.ledger, reader.shard, self._report_repetition, context.sleep)
        self._ended_well = False
        self._looked_at = context.clock()

    def run(self) -> ShardResult:
        """Sends what is not yet sent."""
        started = self._context.clock()
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
        result = self._counter.result(self._reader, self._context.clock() - started)
        self.report("done", f"sent {result.records_sent} records in {result.transactions} transactions")
        return result

    def report(self, step: Step, detail: str) -> None:
        self._context.progress(
            SendProgress(step, self._reader.shard, self._counter.position, self._reader.records, detail)
        )

    def _send(self) -> bool:
        """Sends with one client; False when the rest needs another client."""
        after_own, self._ended_well = self._ended_well, False
        ledger, shard = self._context.ledger, self._reader.shard
        ledger.prepare(self._context.shards)
        # Another instance's sender is not fenced without need, because it may be sending what follows.
        if self._reader.registry and self._is_all_sent(ledger.read(shard)):
            return True
        if self._own.outlived:
            self._own.check(ledger.read_uncommitted(shard) or ledger.read(shard))
        careful, session = self._aside.is_careful, self._open_session()
        try:
            # While all topics are listed, brokers end the last client's transaction in as many of them: a client that
            # begins before they have sleeps for half a second.
            session.initialise(self._transactions.topics)
            # What this sending left a moment ago with its last client is settled.
            entry = ledger.read_committed(shard) if after_own else None
            entry = entry or self._settled(session)
            if session.is_uncertain:
                return False
            if entry is None:
                self._row.check_missing(
                    self._recovery.is_first_committed,
                    lambda: (ledger.read_uncommitted(shard) or ledger.read(shard)) is not None,
                )
            elif not after_own:
                self._restore(session, entry)
                self._looked_at = self._context.clock()
            self._begin(self._start(entry), entry)
            if careful and not self._aside.is_careful:
                # The commit whose answer got lost did happen: the rest needs no such client.
                self._ended_well = True
                return False
            finished = self._counter.superseded or self._send_rest(session)
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
        self.report("connecting", f"starting sender {self._context.names.transactional_id(shard)}")
        return self._context.open_session(shard, careful=self._aside.is_careful)

    def _settled(self, session: ProducerSession) -> LedgerEntry | None:
        """Returns the ledger's row to go on from, once what an earlier transaction left undecided is ended."""
        ledger, shard = self._context.ledger, self._reader.shard
        entry, hidden = ledger.read_committed(shard), ledger.read_uncommitted(shard)
        own = [row for row in ledger.read_unseen(shard) if row.outbox == self._reader.outbox_id]
        truth = self._recovery.truth(own, self._row.is_answered, is_undecided=hidden is not None)
        if truth is not None:
            entry = truth
            self._recovery.show(session, truth)
            if session.is_uncertain:
                return entry
        elif hidden is not None and hidden.outbox != self._reader.outbox_id:
            # Of a transaction that no one sends again: it counts, and becomes visible with the next one.
            entry, hidden = hidden, None
        start = self._start(entry)
        if not start.superseded:
            aborted = self._recovery.finish_open_transaction(
                session, start, hides_row=hidden is not None and truth is None
            )
            if aborted:
                # Its marker may be left out too: the next client looks again.
                raise _look_again(f"aborted what an earlier transaction left in {len(aborted)} partitions")
        return entry

    def _restore(self, session: ProducerSession, entry: LedgerEntry) -> None:
        """Restores what the ledger calls done and readers would never see."""
        if not self._start(entry).own or not entry.position:
            return
        step = self._restoration.restore(session, entry)
        if step is not None:
            raise _look_again(step)

    def _is_all_sent(self, entry: LedgerEntry | None) -> bool:
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
        return find_resume_point(self._reader, entry, alone=self._context.names.backfill is not None)

    def _begin(self, start: ResumePoint, entry: LedgerEntry | None) -> None:
        self._own.found(entry)
        self._counter.start_at(start, entry)
        self._aside.begin_at(self._counter.position)
        if start.superseded:
            self.report("done", "a later outbox was sent already: nothing of this one is sent")
            return
        if start.transactions:
            self._skipped(start.transactions)
            self.report("sending", _describe_sent(start))
        self.report("sending", f"sending from position {self._counter.position}")

    def _send_rest(self, session: ProducerSession) -> bool:
        self._row.begins()
        if not self._transactions.send(session):
            return False
        self._recovery.await_visible()
        self._await_records()
        check_end(self._counter.position, self._reader.records)
        return True

    def _await_records(self) -> None:
        """Waits until readers see the outbox's records, also those of an earlier task, which may not have looked."""
        earlier, topics = self._counter.sent_earlier, set(self._transactions.sent_topics)
        if earlier:
            topics |= topics_until(self._reader.batches(0), earlier)
        if not topics:
            return
        # Another sender may have taken one that was paused for dead, and aborted what was undecided.
        was_paused = self._context.clock() - self._looked_at > _SOON_SECONDS
        hid = self._recovery.await_records(topics, 0 if earlier else self._counter.begun or 0)
        entry = self._context.ledger.read(self._reader.shard) if hid or was_paused else None
        if entry is None or not self._start(entry).own:
            return
        if self._restoration.is_short(topics, None if was_paused else hid, entry):
            raise _look_again("another sender aborted what Kafka had left undecided")

    def _note(self, entry: LedgerEntry) -> None:
        """A transaction is committed."""
        self._looked_at = self._context.clock()
        self._row.committed()
        self._attempts.succeeded()
        self._fencings.succeeded()
        self._counter.committed(entry)
        self._committed(entry)
        for position in self._aside.positions:
            self.report("sending", f"position {position} went to the dead-letter topic: it can never be sent")
        self.report("sending", f"{entry.position} of {self._reader.records} records are committed")

    def _before_careful(self, refused: ContextureError) -> None:
        if not self._aside.narrow(refused, self._counter.position, len(self._counter.dead_letters)):
            raise refused
        self._report_repetition(f"repeating the transaction to find the records that cannot be sent: {refused.message}")

    def _before_again(self, failure: SendAgainError) -> None:
        if self._aside.has_found:
            self._before_careful(failure.error)
            return
        self._own.outlived = failure.outlived
        self._attempts.repeat(failure)

    def _report_repetition(self, why: str) -> None:
        self.report("again", why)


def _look_again(step: str) -> SendAgainError:
    error = RetriableError(step, next_step="clear the task: it checks again whether readers see what was sent")
    return SendAgainError(error, counted=False)


def _describe_sent(start: ResumePoint) -> str:
    whose = "by an earlier send" if start.own else "with another outbox"
    return f"{start.transactions} transactions are in Kafka already, sent {whose}"
