"""Inside a sender's process: reports each moment over a pipe, and holds at the one that was chosen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from contexture.sending.context import SendProgress
from tools.faults.moments import Moment

_FLUSH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Aim:
    """Where a sender holds.

    Attributes:
        moment: at which moment.
        transaction: of which transaction, counted from the first that this sender begins.
        record: for `mid produce`, after how many records of it.
    """

    moment: Moment
    transaction: int = 0
    record: int = 1


class Probe:
    """Reports each moment as it is reached; at the aim it waits until it is released.

    Args:
        pipe: to the process that watches.
        aim: where to hold; None for nowhere.
        gives_up: after which record of which transaction to give it up, once; None for never.
    """

    def __init__(self, pipe: Connection, aim: Aim | None, gives_up: Aim | None = None) -> None:
        self._pipe = pipe
        self._aim = aim
        self._gives_up = gives_up
        self._transactions = 0

    def reached(self, moment: Moment, record: int = 0) -> None:
        """Reports that the sender is at a moment; holds where that is the aim."""
        self.send("at", moment)
        if self._is_aim(moment, record):
            self._aim = None
            self.send("holding", moment)
            # Within commit the client is busy: an attack that aims there comes while it runs.
            if moment is not Moment.IN_COMMIT:
                self._await_word()
        if moment is Moment.AFTER_COMMIT:
            self._transactions += 1

    def wants(self, record: int) -> bool:
        """Returns whether the sender holds after this record of the open transaction."""
        return self._is_aim(Moment.MID_PRODUCE, record)

    def gives_up(self, record: int) -> bool:
        """Returns whether the transaction is given up after this record of it; True once."""
        aim = self._gives_up
        if aim is None or (aim.transaction, aim.record) != (self._transactions, record):
            return False
        self._gives_up = None
        return True

    def progress(self, progress: SendProgress) -> None:
        """For the publisher: passes on why something is done again."""
        if progress.step == "again":
            self.send("again", progress.detail)

    def send(self, *words: object) -> None:
        """Sends words to the supervisor; a sender whose supervisor is gone ends."""
        try:
            self._pipe.send(words)
        except OSError:
            os._exit(1)

    def _is_aim(self, moment: Moment, record: int) -> bool:
        aim = self._aim
        if aim is None or aim.moment is not moment or aim.transaction != self._transactions:
            return False
        return moment is not Moment.MID_PRODUCE or aim.record == record

    def _await_word(self) -> None:
        try:
            self._pipe.recv()
        except (EOFError, OSError):
            os._exit(1)


class ProbedProducer:
    """A producer that reports its moments to the probe.

    Brokers have all of its records before it reports a moment inside a transaction, so that the transaction is open
    there too.
    """

    # Any: confluent-kafka's producer, whose further methods are passed through.
    def __init__(self, producer: Any, probe: Probe, ledger_topic: str) -> None:
        self._producer, self._probe, self._ledger_topic = producer, probe, ledger_topic
        self._is_initialised = self._is_committing = False
        self._records = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def __len__(self) -> int:
        return len(self._producer)

    def init_transactions(self, timeout: float) -> None:
        """Between `before init` and `after init`; it is called again when it timed out."""
        if not self._is_initialised:
            self._probe.reached(Moment.BEFORE_INIT)
            self._is_initialised = True
        self._producer.init_transactions(timeout)
        self._probe.reached(Moment.AFTER_INIT)

    def begin_transaction(self) -> None:
        """Before `after begin`."""
        self._producer.begin_transaction()
        self._records, self._is_committing = 0, False
        self._probe.reached(Moment.AFTER_BEGIN)

    def produce(self, topic: str, *rest: object) -> None:
        """Around `mid produce`, and before the ledger's row."""
        if topic == self._ledger_topic:
            self._reached_with_all(Moment.BEFORE_LEDGER)
        self._producer.produce(topic, *rest)
        self._records += 1
        if topic != self._ledger_topic and self._probe.wants(self._records):
            self._reached_with_all(Moment.MID_PRODUCE)
        if self._probe.gives_up(self._records):
            self._producer.flush(_FLUSH_SECONDS)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "given up on purpose", txn_requires_abort=True))

    def commit_transaction(self, timeout: float) -> None:
        """From `before commit` to `after commit`; it is called again when it timed out."""
        if not self._is_committing:
            self._is_committing = True
            self._reached_with_all(Moment.BEFORE_COMMIT)
            self._probe.reached(Moment.IN_COMMIT)
        self._producer.commit_transaction(timeout)
        self._probe.reached(Moment.AFTER_COMMIT)

    def _reached_with_all(self, moment: Moment) -> None:
        self._producer.flush(_FLUSH_SECONDS)
        self._probe.reached(moment, self._records)


def said(words: Sequence[object], what: str) -> bool:
    """Returns whether a message of a probe is of a kind."""
    return bool(words) and words[0] == what
