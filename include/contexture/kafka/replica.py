"""An independent look at what a read-committed reader of the topics gets, to their ends at the time of the call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contexture.kafka.clients import connect, reader
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.patience import Patience
from contexture.kafka.settings import ClientSettings
from contexture.kafka.starts import Place
from contexture.kafka.topic_admin import TopicAdmin
from contexture.kafka.unreadable import raise_unreadable
from contexture.kafka.watch import ClientWatch

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_CONNECT_SECONDS = 2.0
# `consume` waits that long for a full batch, also at the end.
_BATCH_SECONDS = 0.1
_BATCH = 1_000
PARTITIONS_AT_ONCE = 500
"""Partitions read at a time: what a client holds in memory grows with them, not with what the topics hold."""


@dataclass(frozen=True, slots=True)
class ReplicaRecord:
    """A record as a consumer sees it; `value` None is a tombstone, `timestamp_ms` is None when Kafka has none."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int | None


def read_committed(
    settings: ClientSettings, topics: Iterable[str], *, timeout_seconds: float = 60.0
) -> Iterator[ReplicaRecord]:
    """All records a read-committed consumer gets from the topics, from their beginnings to their ends of now.

    Records of one partition come in their order; partitions are mixed. Nothing is left behind in the cluster: no
    committed offset, no group member. Memory stays the same however much there is.

    Args:
        settings: the connection.
        topics: their names.
        timeout_seconds: how long brokers may be silent, or a transaction stay open, before it is given up.

    Raises:
        KafkaConfigurationError: a topic is not there, or may not be read.
        BrokersAwayError: brokers were silent for too long, or an open transaction hides the rest.
    """
    patience = Patience(timeout_seconds)
    admin = TopicAdmin(settings, patience)
    places = places_of(admin, sorted(set(topics)))
    for at in range(0, len(places), PARTITIONS_AT_ONCE):
        some = places[at : at + PARTITIONS_AT_ONCE]
        yield from read_places(settings, patience, _beginnings(some), admin.ends(some, committed=False))


def read_up_to(
    settings: ClientSettings, ends: Mapping[Place, int], *, timeout_seconds: float = 60.0
) -> Iterator[ReplicaRecord]:
    """The same up to given ends, of these partitions alone: what is committed later is not looked at.

    Args:
        settings: the connection.
        ends: topic and partition to the offset that is no longer read.
        timeout_seconds: as of `read_committed`.

    Raises:
        KafkaConfigurationError: a topic may not be read.
        BrokersAwayError: brokers were silent for too long.
    """
    patience, places = Patience(timeout_seconds), sorted(ends)
    for at in range(0, len(places), PARTITIONS_AT_ONCE):
        some = {place: ends[place] for place in places[at : at + PARTITIONS_AT_ONCE]}
        yield from read_places(settings, patience, _beginnings(some), some)


def read_places(
    settings: ClientSettings,
    patience: Patience,
    starts: Mapping[Place, int],
    ends: Mapping[Place, int],
    *,
    isolation: str = "read_committed",
) -> Iterator[ReplicaRecord]:
    """The records of partitions between two offsets each, the first included (below 0: the first that is there).

    Raises:
        OffsetGoneError: what should come first was deleted.
        DamagedRecordsError: the brokers gave other bytes than were written.
        KafkaConfigurationError: a topic may not be read.
        BrokersAwayError: brokers were silent for too long, or an open transaction hides the rest.
    """
    yield from _Reading(settings, patience, isolation).records(starts, ends)


def _beginnings(places: Iterable[Place]) -> dict[Place, int]:
    from confluent_kafka import OFFSET_BEGINNING

    return dict.fromkeys(places, OFFSET_BEGINNING)


def places_of(admin: TopicAdmin, topics: list[str]) -> list[Place]:
    listed = admin.listed(topics[0] if len(topics) == 1 else None)
    missing = [name for name in topics if name not in listed]
    if missing:
        raise KafkaConfigurationError(
            f"{len(missing)} topics are not there or may not be seen, the first is {missing[0]}",
            next_step="check the topics' names and this user's DESCRIBE permission",
            topic=missing[0],
        )
    return [(name, partition) for name in topics for partition in range(listed[name].partitions)]


class _Reading:
    """Reads some partitions to their ends."""

    def __init__(self, settings: ClientSettings, patience: Patience, isolation: str) -> None:
        self._settings = settings
        self._patience = patience
        self._isolation = isolation
        self._watch = ClientWatch()

    def records(self, starts: Mapping[Place, int], ends: Mapping[Place, int]) -> Iterator[ReplicaRecord]:
        from confluent_kafka import TopicPartition

        left = {place: end for place, end in ends.items() if end > max(0, starts[place])}
        if not left:
            return
        own = {"auto.offset.reset": "error"}
        with closing(reader(self._settings, self._watch, isolation=self._isolation, own=own)) as consumer:
            connect(consumer, None, _CONNECT_SECONDS)
            consumer.assign([TopicPartition(*place, starts[place]) for place in left])
            while left:
                yield from self._some(consumer, left)

    def _some(self, consumer: Consumer, left: dict[Place, int]) -> Iterator[ReplicaRecord]:
        from confluent_kafka import KafkaError

        messages = consumer.consume(_BATCH, _BATCH_SECONDS)
        if not messages:
            self._nothing_came(left)
        for message in messages:
            error = message.error()
            place = (str(message.topic()), int(message.partition() or 0))
            if error is None:
                if place in left and int(message.offset() or 0) < left[place]:
                    self._patience.relieve()
                    yield record_of(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                # The end may be an offset that holds no record (a transaction's marker): the position tells.
                if int(message.offset() or 0) >= left.get(place, 0):
                    left.pop(place, None)
            else:
                raise_unreadable(error, message)
                # An answer all the same, so that nothing but its own repetition tells that it does not end.
                self._patience.waited(f"{error.name()}: {error.str()}", said_at_once=False)

    def _nothing_came(self, left: dict[Place, int]) -> None:
        self._watch.raise_refusal("reading")
        topic, partition = next(iter(left))
        told = self._watch.last
        cause = (
            f"{told.name()}: {told.str()}" if told else f"an open transaction on {topic}[{partition}] hides the rest"
        )
        self._patience.waited(cause)


def record_of(message: Message) -> ReplicaRecord:
    kind, timestamp = message.timestamp()
    return ReplicaRecord(
        topic=str(message.topic()),
        partition=int(message.partition() or 0),
        offset=int(message.offset() or 0),
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),  # type: ignore[arg-type]
        timestamp_ms=timestamp if kind else None,
    )
