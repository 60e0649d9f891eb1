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
class Standing:
    """What a coordinator keeps of a transactional id."""

    producer: int
    epoch: int = -1
    state: str = EMPTY
    places: set[Place] = field(default_factory=set)
    timeout: float = 60.0
    number: int = 0
    unmarked: set[Place] = field(default_factory=set)


WriteMarkers = Callable[[Standing, list[Place], bool], None]
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
        self.standings: dict[str, Standing] = {}

    def init_producer(self, name: str, timeout: float) -> tuple[str, int, int]:
        """InitProducerId: a new epoch, once what was open is ended. Gives the error, the producer's id and epoch."""
        standing = self.standings.setdefault(name, Standing(1000 + len(self.standings)))
        if standing.state == ONGOING:
            # Whoever has it open is fenced at once, and asked again until it is aborted.
            standing.epoch += 1
            self._prepare(standing, commits=False)
            return "CONCURRENT_TRANSACTIONS", -1, -1
        if standing.state in _PREPARING:
            return "CONCURRENT_TRANSACTIONS", -1, -1
        standing.epoch += 1
        standing.state, standing.timeout = EMPTY, timeout
        return "NO_ERROR", standing.producer, standing.epoch

    def add_partitions(self, name: str, producer: int, epoch: int, places: set[Place]) -> str:
        """AddPartitionsToTxn: the first one of a transaction begins it, for all that brokers know."""
        standing = self.standings[name]
        if producer != standing.producer:
            return "INVALID_PRODUCER_ID_MAPPING"
        if epoch != standing.epoch:
            return "INVALID_PRODUCER_EPOCH"
        if standing.state in _PREPARING:
            return "CONCURRENT_TRANSACTIONS"
        if standing.state != ONGOING:
            standing.state, standing.places = ONGOING, set()
            standing.number += 1
            self._watch_timeout(standing)
        standing.places |= places
        return "NO_ERROR"

    def holds(self, producer: int, epoch: int, place: Place) -> bool:
        """What a partition's broker asks before it takes the first record of a transaction."""
        return any(
            each.producer == producer and each.epoch == epoch and each.state == ONGOING and place in each.places
            for each in self.standings.values()
        )

    def end(self, name: str, producer: int, epoch: int, *, commits: bool) -> str:
        """EndTxn: answered as soon as it is decided; the markers follow."""
        standing = self.standings[name]
        if producer != standing.producer:
            return "INVALID_PRODUCER_ID_MAPPING"
        if epoch != standing.epoch:
            return "INVALID_PRODUCER_EPOCH"
        if standing.state == ONGOING:
            self._prepare(standing, commits=commits)
            return "NO_ERROR"
        preparing, complete = _LIKE[commits]
        if standing.state == preparing:
            return "CONCURRENT_TRANSACTIONS"
        return "NO_ERROR" if standing.state == complete else "INVALID_TXN_STATE"

    def marked(self, standing: Standing, place: Place) -> None:
        """A partition has its marker, or will never have one."""
        standing.unmarked.discard(place)
        if not standing.unmarked and standing.state in _PREPARING:
            standing.state = COMMITTED if standing.state == COMMITTING else ABORTED
            standing.places = set()

    def _prepare(self, standing: Standing, *, commits: bool) -> None:
        standing.state = COMMITTING if commits else ABORTING
        standing.unmarked = set(standing.places)
        places = sorted(standing.places)
        if places:
            self._write_markers(standing, places, commits)
        else:
            standing.state = COMMITTED if commits else ABORTED

    def _watch_timeout(self, standing: Standing) -> None:
        number = standing.number

        def over() -> None:
            if standing.number == number and standing.state == ONGOING:
                standing.epoch += 1
                self._prepare(standing, commits=False)

        self._after(standing.timeout + self._check_seconds, over)
