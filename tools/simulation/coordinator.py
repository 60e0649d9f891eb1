"""The transaction coordinator: producers' epochs, and transactions of protocol version 1.

Of version 1, as librdkafka 2.16 speaks it: the epoch of a producer stays the same from transaction to transaction. So
nothing in an EndTxn request says which of them it is to end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Place = tuple[str, int]

EMPTY = "Empty"
ONGOING = "Ongoing"
COMMITTING = "PrepareCommit"
ABORTING = "PrepareAbort"
COMMITTED = "CompleteCommit"
ABORTED = "CompleteAbort"
_PREPARING = frozenset({COMMITTING, ABORTING})
_LIKE = {True: (COMMITTING, COMMITTED), False: (ABORTING, ABORTED)}


@dataclass(slots=True)
class TransactionState:
    """The state of a transactional id at its coordinator."""

    producer: int
    epoch: int = -1
    state: str = EMPTY
    places: set[Place] = field(default_factory=set)
    timeout: float = 60.0
    number: int = 0
    unmarked: set[Place] = field(default_factory=set)


WriteMarkers = Callable[[TransactionState, list[Place], bool], None]
After = Callable[[float, Callable[[], None]], None]


class Coordinator:
    """Of all transactional ids.

    Args:
        after: lets something happen later.
        write_markers: sends them to the partitions; calls `marked` for each.
        check_seconds: how often time-outs are looked for.
    """

    def __init__(self, after: After, write_markers: WriteMarkers, check_seconds: float) -> None:
        self._after = after
        self._write_markers = write_markers
        self._check_seconds = check_seconds
        self.transactions: dict[str, TransactionState] = {}

    def init_producer(self, name: str, timeout: float) -> tuple[str, int, int]:
        """InitProducerId: a new epoch, once what was open is ended. Gives the error, the producer's id and epoch."""
        transaction = self.transactions.setdefault(name, TransactionState(1000 + len(self.transactions)))
        if transaction.state == ONGOING:
            # The producer that has it open is fenced immediately; the new one repeats this until it is aborted.
            transaction.epoch += 1
            self._prepare(transaction, commits=False)
            return "CONCURRENT_TRANSACTIONS", -1, -1
        if transaction.state in _PREPARING:
            return "CONCURRENT_TRANSACTIONS", -1, -1
        transaction.epoch += 1
        transaction.state, transaction.timeout = EMPTY, timeout
        return "NO_ERROR", transaction.producer, transaction.epoch

    def add_partitions(self, name: str, producer: int, epoch: int, places: set[Place]) -> str:
        """AddPartitionsToTxn: the first one of a transaction begins it, for all that brokers know."""
        transaction = self.transactions[name]
        if producer != transaction.producer:
            return "INVALID_PRODUCER_ID_MAPPING"
        if epoch != transaction.epoch:
            return "INVALID_PRODUCER_EPOCH"
        if transaction.state in _PREPARING:
            return "CONCURRENT_TRANSACTIONS"
        if transaction.state != ONGOING:
            transaction.state, transaction.places = ONGOING, set()
            transaction.number += 1
            self._watch_timeout(transaction)
        transaction.places |= places
        return "NO_ERROR"

    def holds(self, producer: int, epoch: int, place: Place) -> bool:
        """Returns what a partition's broker asks before it takes the first record of a transaction."""
        return any(
            each.producer == producer and each.epoch == epoch and each.state == ONGOING and place in each.places
            for each in self.transactions.values()
        )

    def end(self, name: str, producer: int, epoch: int, *, commits: bool) -> str:
        """EndTxn: answered as soon as it is decided; the markers follow."""
        transaction = self.transactions[name]
        if producer != transaction.producer:
            return "INVALID_PRODUCER_ID_MAPPING"
        if epoch != transaction.epoch:
            return "INVALID_PRODUCER_EPOCH"
        if transaction.state == ONGOING:
            self._prepare(transaction, commits=commits)
            return "NO_ERROR"
        preparing, complete = _LIKE[commits]
        if transaction.state == preparing:
            return "CONCURRENT_TRANSACTIONS"
        return "NO_ERROR" if transaction.state == complete else "INVALID_TXN_STATE"

    def marked(self, transaction: TransactionState, place: Place) -> None:
        """A partition has its marker, or will never have one."""
        transaction.unmarked.discard(place)
        if not transaction.unmarked and transaction.state in _PREPARING:
            transaction.state = COMMITTED if transaction.state == COMMITTING else ABORTED
            transaction.places = set()

    def _prepare(self, transaction: TransactionState, *, commits: bool) -> None:
        transaction.state = COMMITTING if commits else ABORTING
        transaction.unmarked = set(transaction.places)
        places = sorted(transaction.places)
        if places:
            self._write_markers(transaction, places, commits)
        else:
            transaction.state = COMMITTED if commits else ABORTED

    def _watch_timeout(self, transaction: TransactionState) -> None:
        number = transaction.number

        def over() -> None:
            if transaction.number == number and transaction.state == ONGOING:
                transaction.epoch += 1
                self._prepare(transaction, commits=False)

        self._after(transaction.timeout + self._check_seconds, over)
