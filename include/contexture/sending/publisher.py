"""Sends the shards of an outbox to Kafka, each record once for read-committed readers, whatever is killed when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.clients import transactional_producer
from contexture.kafka.interfaces import Delivered, OpenProducer
from contexture.kafka.settings import ClientSettings
from contexture.sending.context import Encode, Progress, SendContext, ignore_progress
from contexture.sending.dead_letters import DeadLetters, RequestLimit
from contexture.sending.interfaces import HiddenPort, LedgerPort, ShardReader
from contexture.sending.ledger import Ledger, LedgerEntry, SenderNames
from contexture.sending.open_transactions import OpenTransactions
from contexture.sending.resume import ExpectedRow
from contexture.sending.shard_sender import AfterFailure, ShardSender, attempts_from_delays
from contexture.sending.transactions import ShardResult


class Publisher:
    """Sends the shards of a publication's outboxes; one call of `publish` for each shard.

    Args:
        settings: the connection.
        names: the publication's transactional ids and ledger.
        shards: how many shards the outbox has; the ledger gets a partition for each.
        broker_wait_seconds: how long brokers are waited for before an attempt counts as failed.
        progress: receives each step.
        encode: changes rows before they are sent (`contexture.sending.context`).
        delivered: receives each record that a broker has taken or not.
        dead_letters: where records go that can never be sent; without it they stop the sending. Not for registries,
            whose transactions would have holes.
        ledger, hidden, open_producer, clock, sleep: for tests.
    """

    def __init__(
        self,
        settings: ClientSettings,
        names: SenderNames,
        *,
        shards: int,
        broker_wait_seconds: float = 300.0,
        progress: Progress = ignore_progress,
        encode: Encode | None = None,
        delivered: Delivered | None = None,
        dead_letters: DeadLetters | None = None,
        ledger: LedgerPort | None = None,
        hidden: HiddenPort | None = None,
        open_producer: OpenProducer = transactional_producer,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._sending: ShardSender | None = None
        broker_wait = BrokerWait(broker_wait_seconds, self._waiting, clock=clock)
        self._context = SendContext(
            settings=settings,
            names=names,
            shards=shards,
            broker_wait=broker_wait,
            ledger=ledger or Ledger(settings, names, broker_wait=broker_wait),
            hidden=hidden or OpenTransactions(settings, broker_wait),
            requests=RequestLimit(settings, broker_wait),
            progress=progress,
            encode=encode,
            delivered=delivered,
            dead_letters=dead_letters,
            open_producer=open_producer,
            clock=clock,
            sleep=sleep,
        )

    def publish(
        self,
        reader: ShardReader,
        *,
        attempts: Iterable[int] | AfterFailure = (),
        committed: Callable[[LedgerEntry], None] = lambda entry: None,
        skipped: Callable[[int], None] = lambda transactions: None,
        row: ExpectedRow = ExpectedRow.NONE,
    ) -> ShardResult:
        """Sends what is not yet sent of a shard.

        Args:
            reader: the shard.
            attempts: milliseconds to wait before each further attempt after a failed one, or a function that returns
                them for a failure; a caller that persists its counter does so there. When none is left, the failure is
                raised; what the function itself raises ends the sending. Waiting for brokers and repeating an outlived
                transaction take none until `broker_wait_seconds` are over.
            committed: receives each transaction that became visible; must return soon and not raise.
            skipped: receives how many transactions, from the first on, are in Kafka before anything is sent.
            row: what is known of the ledger's row of the shard: where one must be, its absence is an error.

        Raises:
            LedgerLostError: the ledger's row of the shard is gone.
            RetriableError: the brokers stayed away, or the attempts are used up; the outbox stays as it is.
            FencedError: another sender took over the shard.
            SequenceTakenError: another outbox of the same sequence was sent.
            RejectedError: a record can never be sent (`.context["topic"]`); nothing of its transaction is visible. With
                `dead_letters`: more such records than may be left out.
            KafkaConfigurationError: a person must change the connection, a topic or a permission.
        """
        after_failure = attempts if callable(attempts) else attempts_from_delays(attempts)
        self._sending = ShardSender(self._context, reader, after_failure, committed, skipped, row)
        self._context.broker_wait.reset()
        return self._sending.run()

    def _waiting(self, sentence: str) -> None:
        if self._sending is not None:
            self._sending.report("waiting", sentence)
