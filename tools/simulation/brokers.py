"""The brokers of a run: topics, the coordinator, and what befalls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tools.simulation.coordinator import Coordinator, Place, TransactionState
from tools.simulation.events import Events
from tools.simulation.network import Network
from tools.simulation.partitions import Batch, Partition

_MARKER_SECONDS = 0.002
_RETRY_SECONDS = 0.1
LEDGERS = "contexture.ledger."


@dataclass(slots=True)
class Topic:
    """A topic; `id` is another one when it is made again."""

    name: str
    id: str
    config: dict[str, str]
    partitions: list[Partition] = field(default_factory=list)


class Brokers:
    """A cluster.

    Args:
        events: of the run.
        network: which its answers go through.
        timeout_check_seconds: how often the coordinator looks for transactions that are open for too long.
    """

    def __init__(self, events: Events, network: Network, timeout_check_seconds: float = 1.0) -> None:
        self.events = events
        self.network = network
        self.topics: dict[str, Topic] = {}
        self.coordinator = Coordinator(events.after, self._write_markers, timeout_check_seconds)
        self.on_visible: Callable[[Partition], None] = lambda partition: None
        self._made = 0

    def make(self, name: str, partitions: int, config: dict[str, str] | None = None) -> None:
        """Makes a topic."""
        self._made += 1
        made = self.topics[name] = Topic(name, f"id-{self._made}", dict(config or {}))
        made.partitions.extend(Partition(name, number) for number in range(partitions))
        self.events.note(f"    topic {name} is made with {partitions} partitions")

    def grow(self, name: str, partitions: int) -> None:
        """Gives a topic more partitions."""
        topic = self.topics[name]
        topic.partitions.extend(Partition(name, number) for number in range(len(topic.partitions), partitions))

    def partition(self, place: Place) -> Partition | None:
        """One by its place; None where there is none."""
        topic = self.topics.get(place[0])
        return topic.partitions[place[1]] if topic is not None and place[1] < len(topic.partitions) else None

    def produce(self, place: Place, batch: Batch, *, ongoing: bool = True) -> str:
        """Produce: one batch; gives the name of an error, or NO_ERROR."""
        partition = self.partition(place)
        if partition is None:
            return "UNKNOWN_TOPIC_OR_PART"
        self.strike("Produce", place)
        if not partition.is_led:
            return "NOT_LEADER_FOR_PARTITION"
        if not partition.has_ongoing(batch.producer, batch.epoch):
            state = partition.producers.get(batch.producer)
            if state is not None and batch.epoch < state.epoch:
                return "INVALID_PRODUCER_EPOCH"
            if not self.coordinator.holds(batch.producer, batch.epoch, place):
                return "INVALID_TXN_STATE"
        return partition.append(batch, self.events.now)

    def end(self, name: str, producer: int, epoch: int, *, commits: bool) -> str:
        """EndTxn."""
        places = sorted(self.coordinator.transactions[name].places)
        if places and self.network.weather.leader_lost.get("EndTxn"):
            ledgers = [place for place in places if place[0].startswith(LEDGERS)]
            draw = self.events.random
            self.strike("EndTxn", draw.choice(ledgers if ledgers and draw.random() < 0.6 else places))
        return self.coordinator.end(name, producer, epoch, commits=commits)

    def strike(self, kind: str, place: Place) -> None:
        """Takes the leader of a partition away for a while, if that is to happen now."""
        weather = self.network.weather
        if weather.leader_lost and self.network.happens(weather.leader_lost, kind):
            self.lose_leader(place, 0.05 + weather.leaderless_seconds * self.events.random.random() ** 2)

    def lose_leader(self, place: Place, seconds: float) -> None:
        """A partition has no leader for a while; what is in its log stays."""
        partition = self.partition(place)
        if partition is None or not partition.is_led:
            return
        partition.is_led = False
        partition.leader_epoch += 1
        self.events.note(f"    {place[0]}[{place[1]}] has no leader for {seconds:.2f} s")

        def back() -> None:
            partition.is_led = True
            partition.leader_epoch += 1
            self.events.note(f"    {place[0]}[{place[1]}] has a leader again")

        self.events.after(seconds, back)

    def _write_markers(self, transaction: TransactionState, places: list[Place], commits: bool) -> None:
        epoch = transaction.epoch
        for place in places:
            self.events.after(self._delay(), lambda place=place: self._mark(transaction, place, epoch, commits))  # type: ignore[misc]

    def _delay(self) -> float:
        draw, weather = self.events.random.random, self.network.weather
        soon = _MARKER_SECONDS * (0.2 + draw())
        late = weather.late_markers > 0 and draw() < weather.late_markers
        return soon + (weather.late_seconds * draw() ** 2 if late else 0.0)

    def _mark(self, transaction: TransactionState, place: Place, epoch: int, commits: bool) -> None:
        partition = self.partition(place)
        if partition is not None and not partition.is_led:
            lost = self.network.weather.lost_markers
            if not (lost > 0 and self.events.random.random() < lost):
                self.events.after(_RETRY_SECONDS, lambda: self._mark(transaction, place, epoch, commits))
                return
            self.events.note(f"    {place[0]}[{place[1]}] has no leader: its marker is left out")
        elif partition is not None:
            partition.mark(transaction.producer, epoch, committed=commits)
            kind = "commit" if commits else "abort"
            self.events.say(lambda: f"    {kind} marker of {transaction.producer}/{epoch} in {place[0]}[{place[1]}]")
            self.on_visible(partition)
        self.coordinator.marked(transaction, place)
