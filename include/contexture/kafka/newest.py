"""The newest records of topics: for a person who wants to see what is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from contexture.kafka.patience import Patience
from contexture.kafka.replica import PARTITIONS_AT_ONCE, ReplicaRecord, places_of, read_places
from contexture.kafka.settings import ClientSettings
from contexture.kafka.starts import Place
from contexture.kafka.topic_admin import TopicAdmin

# Offsets are also taken by the ends of transactions, and by records that compaction removed.
_OFFSETS_OF_A_RECORD = 2
_FURTHER_BACK = 16


def newest_records(
    settings: ClientSettings, topics: Iterable[str], count: int, *, timeout_seconds: float = 60.0
) -> list[ReplicaRecord]:
    """The last records that a read-committed consumer gets of topics, by their time, the newest last.

    Only the ends of the topics are read, and nothing is left behind in the cluster. What an open transaction holds
    back is not waited for.

    Args:
        settings: the connection.
        topics: their names.
        count: of records, of all topics together.
        timeout_seconds: how long brokers may be silent before it is given up.

    Raises:
        KafkaConfigurationError: a topic is not there, or may not be read.
        BrokersAwayError: brokers were silent for too long.
    """
    patience = Patience(timeout_seconds)
    admin = TopicAdmin(settings, patience)
    places = places_of(admin, sorted(set(topics)))
    newest: list[ReplicaRecord] = []
    for at in range(0, len(places), PARTITIONS_AT_ONCE):
        some = places[at : at + PARTITIONS_AT_ONCE]
        reach = _Reach(admin.beginnings(some), admin.ends(some, committed=True))
        newest = sorted([*newest, *reach.tails(settings, patience, count)], key=_order)[-count:]
    return newest


class _Reach:
    """Some partitions, from where they begin to where they end."""

    def __init__(self, first: Mapping[Place, int], ends: Mapping[Place, int]) -> None:
        self._first = first
        self._ends = ends

    def tails(self, settings: ClientSettings, patience: Patience, count: int) -> Iterator[ReplicaRecord]:
        """The last records of each partition; read from further back where there were fewer."""
        left, back = list(self._ends), _OFFSETS_OF_A_RECORD * count
        while left:
            starts = {place: max(self._first[place], self._ends[place] - back) for place in left}
            found: dict[Place, deque[ReplicaRecord]] = {place: deque(maxlen=count) for place in left}
            for record in read_places(settings, patience, starts, {place: self._ends[place] for place in left}):
                found[record.topic, record.partition].append(record)
            whole = {place for place in left if len(found[place]) == count or starts[place] == self._first[place]}
            for place in whole:
                yield from found[place]
            left, back = [place for place in left if place not in whole], back * _FURTHER_BACK


def _order(record: ReplicaRecord) -> tuple[int, str, int, int]:
    return record.timestamp_ms or 0, record.topic, record.partition, record.offset
