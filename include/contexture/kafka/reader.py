"""Reading committed records of topics: from where, up to where, and the newest of each partition."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import connect, reader
from contexture.kafka.error_codes import ErrorClass, classify_error, translate_error
from contexture.kafka.errors import DamagedRecordsError, KafkaConfigurationError, OffsetGoneError
from contexture.kafka.interfaces import KafkaErrorLike, Place
from contexture.kafka.settings import ClientSettings

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """The committed offsets of a consumer group; reading from them commits nothing."""

    group: str


Start = Mapping[Place, int] | datetime | GroupOffsets | None
"""Offsets of partitions (those not named are read from their beginning), a moment (the first record of that time or
later, with time zone), a group (partitions for which it has committed nothing are read from their beginning), or None
for the beginning."""


OutOfRange = Literal["fail", "earliest", "latest"]
"""What a reader does whose offset is not there, because retention removed it or the topic is a new one of that name.

`fail` raises `OffsetGoneError`; `earliest` continues at the first record that is there, `latest` behind the last."""

RESETS: Final[Mapping[OutOfRange, str]] = MappingProxyType(
    {"fail": "error", "earliest": "earliest", "latest": "latest"}
)
"""The client's `auto.offset.reset` of each."""

_LOG: Final = logging.getLogger(__name__)


def starts_of(
    admin: TopicAdmin, consumer: Consumer, places: Sequence[Place], start: Start, out_of_range: OutOfRange = "fail"
) -> dict[Place, int]:
    """Returns the first offset to read of each partition; one that is out of range is logged or refused.

    Raises:
        OffsetGoneError: one that is asked for is not there any more, or not yet, and `out_of_range` is `fail`.
    """
    if isinstance(start, datetime):
        return admin.offsets_at(places, start)
    earliest = admin.beginnings(places)
    if start is None:
        return earliest
    asked = _committed(consumer, places) if isinstance(start, GroupOffsets) else dict(start)
    latest = admin.ends([place for place in places if place in asked], committed=False)
    for place, offset in list(asked.items()):
        if place in earliest and not earliest[place] <= offset <= latest[place]:
            why = f"offset {offset} does not exist: the partition has {earliest[place]} to {latest[place]}"
            if out_of_range == "fail":
                raise offset_gone(place, why)
            asked[place] = earliest[place] if out_of_range == "earliest" else latest[place]
            _LOG.warning("%s[%d] is read from offset %d, records are left out: %s", *place, asked[place], why)
    return {place: asked.get(place, earliest[place]) for place in places}


def offset_gone(place: Place, why: str) -> OffsetGoneError:
    """Returns the error for an offset out of range: continuing at another one would leave records out silently."""
    topic, partition = place
    return OffsetGoneError(
        f"{topic}[{partition}] cannot be read from the requested offset: {why}",
        next_step="records were deleted (retention, or a new topic of that name): read from the beginning, or from a "
        "time, then verify the replica or resynchronise it; a program may accept the loss by out_of_range",
        topic=topic,
        partition=partition,
    )


def raise_uncommitted(found: Iterable[TopicPartition]) -> None:
    """Fails where the brokers did not say what a group has committed for a partition: that is not the same as nothing.

    Raises:
        ContextureError: what the error means.
    """
    for place in found:
        if place.error is not None:
            raise translate_error(place.error, "finding where the group is", topic=place.topic)


def _committed(consumer: Consumer, places: Sequence[Place]) -> dict[Place, int]:
    from confluent_kafka import TopicPartition

    found = consumer.committed([TopicPartition(*place) for place in places], timeout=30)
    raise_uncommitted(found)
    return {(place.topic, place.partition): place.offset for place in found if place.offset >= 0}


_GONE: Final = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"})
_DAMAGED: Final = frozenset({"_BAD_MSG", "_BAD_COMPRESSION", "INVALID_MSG"})


def raise_unreadable(error: KafkaErrorLike, message: Message, doing: str = "reading") -> None:
    """Raises what an error in place of a record means; returns where the client itself repeats the request.

    Raises:
        OffsetGoneError: what should be read was deleted.
        DamagedRecordsError: what is there is not what was written, or can't be unpacked.
        KafkaConfigurationError: this user may not read it, or it is not there.
    """
    place: Place = (str(message.topic()), int(message.partition() or 0))
    if error.name() in _GONE:
        raise offset_gone(place, error.str())
    if error.name() in _DAMAGED:
        raise _damaged(error, place)
    if classify_error(error) in {ErrorClass.CONFIGURATION, ErrorClass.FATAL}:
        raise translate_error(error, doing, topic=message.topic(), needs="READ and DESCRIBE")


def _damaged(error: KafkaErrorLike, place: Place) -> DamagedRecordsError:
    topic, partition = place
    return DamagedRecordsError(
        f"records of {topic}[{partition}] are damaged: {error.name()}: {error.str()}",
        next_step="check the disks of the brokers that hold this partition, and make another replica its leader; "
        "without one, create the topic again and run the publication in mode full. Large records of codec "
        "zstd need receive.message.max.bytes above their size",
        topic=topic,
        partition=partition,
    )


_CONNECT_SECONDS = 2.0
# `consume` waits that long for a full batch, also at the end.
_BATCH_SECONDS = 0.1
_BATCH = 1_000
PARTITIONS_AT_ONCE = 500
"""Partitions read at a time: what a client holds in memory grows with them, not with what the topics hold."""


@dataclass(frozen=True, slots=True)
class TopicRecord:
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
) -> Iterator[TopicRecord]:
    """Yields all records a read-committed consumer gets from the topics, from their beginnings to their ends of now.

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
    broker_wait = BrokerWait(timeout_seconds)
    admin = TopicAdmin(settings, broker_wait)
    places = places_of(admin, sorted(set(topics)))
    for some in in_groups(places):
        yield from read_places(settings, broker_wait, _beginnings(some), admin.ends(some, committed=False))


def read_up_to(
    settings: ClientSettings, ends: Mapping[Place, int], *, timeout_seconds: float = 60.0
) -> Iterator[TopicRecord]:
    """Yields the same as `read_committed` up to the first offset that is not read, of these partitions alone.

    Raises:
        KafkaConfigurationError: a topic may not be read.
        BrokersAwayError: brokers were silent for too long.
    """
    broker_wait, places = BrokerWait(timeout_seconds), sorted(ends)
    for some in in_groups(places):
        yield from read_places(settings, broker_wait, _beginnings(some), {place: ends[place] for place in some})


def read_places(
    settings: ClientSettings,
    broker_wait: BrokerWait,
    starts: Mapping[Place, int],
    ends: Mapping[Place, int],
    *,
    isolation: str = "read_committed",
    out_of_range: OutOfRange = "fail",
) -> Generator[TopicRecord, None, None]:
    """Yields the records of partitions between two offsets each, the first included (below 0: the first that is there).

    Raises:
        OffsetGoneError: what should come next was deleted, and `out_of_range` is `fail`.
        DamagedRecordsError: the brokers gave other bytes than were written.
        KafkaConfigurationError: a topic may not be read.
        BrokersAwayError: brokers were silent for too long, or an open transaction hides the rest.
    """
    yield from _Reading(settings, broker_wait, isolation, out_of_range).records(starts, ends)


def in_groups(places: Sequence[Place]) -> Iterator[Sequence[Place]]:
    """Yields partitions in groups of those that are read at a time."""
    for at in range(0, len(places), PARTITIONS_AT_ONCE):
        yield places[at : at + PARTITIONS_AT_ONCE]


def _beginnings(places: Iterable[Place]) -> dict[Place, int]:
    from confluent_kafka import OFFSET_BEGINNING

    return dict.fromkeys(places, OFFSET_BEGINNING)


def places_of(admin: TopicAdmin, topics: list[str]) -> list[Place]:
    listed = admin.listed(topics[0] if len(topics) == 1 else None)
    missing = [name for name in topics if name not in listed]
    if missing:
        raise KafkaConfigurationError(
            f"{len(missing)} topics do not exist, or this user may not see them; the first is {missing[0]}",
            next_step="check the topics' names and this user's DESCRIBE permission",
            topic=missing[0],
        )
    return [(name, partition) for name in topics for partition in range(listed[name].partitions)]


class _Reading:
    """Reads some partitions to their ends."""

    def __init__(
        self, settings: ClientSettings, broker_wait: BrokerWait, isolation: str, out_of_range: OutOfRange = "fail"
    ) -> None:
        self._settings = settings
        self._broker_wait = broker_wait
        self._isolation = isolation
        self._out_of_range = out_of_range
        self._watch = ClientCallbacks()

    def records(self, starts: Mapping[Place, int], ends: Mapping[Place, int]) -> Iterator[TopicRecord]:
        from confluent_kafka import TopicPartition

        left = {place: end for place, end in ends.items() if end > max(0, starts[place])}
        if not left:
            return
        own = {"auto.offset.reset": RESETS[self._out_of_range]}
        with closing(reader(self._settings, self._watch, isolation=self._isolation, own=own)) as consumer:
            connect(consumer, None, _CONNECT_SECONDS)
            consumer.assign([TopicPartition(*place, starts[place]) for place in left])
            while left:
                yield from self._some(consumer, left)

    def _some(self, consumer: Consumer, left: dict[Place, int]) -> Iterator[TopicRecord]:
        from confluent_kafka import KafkaError

        messages = consumer.consume(_BATCH, _BATCH_SECONDS)
        if not messages:
            self._nothing_came(left)
        for message in messages:
            error = message.error()
            place = (str(message.topic()), int(message.partition() or 0))
            if error is None:
                if place in left and int(message.offset() or 0) < left[place]:
                    self._broker_wait.reset()
                    yield record_of(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                # The end may be an offset that holds no record (a transaction's marker): the position shows.
                if int(message.offset() or 0) >= left.get(place, 0):
                    left.pop(place, None)
            else:
                raise_unreadable(error, message)
                # The broker did respond, so only repetition shows that the error does not end.
                self._broker_wait.check(f"{error.name()}: {error.str()}", report_immediately=False)

    def _nothing_came(self, left: dict[Place, int]) -> None:
        self._watch.raise_refusal("reading")
        topic, partition = next(iter(left))
        error = self._watch.last
        cause = (
            f"{error.name()}: {error.str()}" if error else f"an open transaction on {topic}[{partition}] hides the rest"
        )
        self._broker_wait.check(cause)


def record_of(message: Message) -> TopicRecord:
    kind, timestamp = message.timestamp()
    return TopicRecord(
        topic=str(message.topic()),
        partition=int(message.partition() or 0),
        offset=int(message.offset() or 0),
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),  # type: ignore[arg-type]
        timestamp_ms=timestamp if kind else None,
    )


# Offsets are also taken by the ends of transactions, and by records that compaction removed.
_OFFSETS_OF_A_RECORD = 2
_FURTHER_BACK = 16


def newest_records(
    settings: ClientSettings, topics: Iterable[str], count: int, *, timeout_seconds: float = 60.0
) -> list[TopicRecord]:
    """Returns the last records that a read-committed consumer gets of topics, by their time, the newest last.

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
    broker_wait = BrokerWait(timeout_seconds)
    admin = TopicAdmin(settings, broker_wait)
    places = places_of(admin, sorted(set(topics)))
    newest: list[TopicRecord] = []
    for some in in_groups(places):
        reach = _Reach(admin.beginnings(some), admin.ends(some, committed=True))
        newest = sorted([*newest, *reach.tails(settings, broker_wait, count)], key=_order)[-count:]
    return newest


def first_records(
    settings: ClientSettings, topics: Iterable[str], count: int, *, timeout_seconds: float = 60.0
) -> list[TopicRecord]:
    """Returns the first records that topics still have, as a read-committed consumer gets them.

    Records of one partition come in their order; partitions are mixed. Reading ends after `count` records; arguments,
    errors and the rest are those of `newest_records`.
    """
    broker_wait = BrokerWait(timeout_seconds)
    admin = TopicAdmin(settings, broker_wait)
    first: list[TopicRecord] = []
    for some in in_groups(places_of(admin, sorted(set(topics)))):
        records = read_places(settings, broker_wait, _beginnings(some), admin.ends(some, committed=True))
        with closing(records):
            first += islice(records, count - len(first))
        if len(first) == count:
            break
    return first


class _Reach:
    """Some partitions, from where they begin to where they end."""

    def __init__(self, first: Mapping[Place, int], ends: Mapping[Place, int]) -> None:
        self._first = first
        self._ends = ends

    def tails(self, settings: ClientSettings, broker_wait: BrokerWait, count: int) -> Iterator[TopicRecord]:
        """Yields the last records of each partition; read from further back where there were fewer."""
        left, back = list(self._ends), _OFFSETS_OF_A_RECORD * count
        while left:
            starts = {place: max(self._first[place], self._ends[place] - back) for place in left}
            found: dict[Place, deque[TopicRecord]] = {place: deque(maxlen=count) for place in left}
            for record in read_places(settings, broker_wait, starts, {place: self._ends[place] for place in left}):
                found[record.topic, record.partition].append(record)
            whole = {place for place in left if len(found[place]) == count or starts[place] == self._first[place]}
            for place in whole:
                yield from found[place]
            left, back = [place for place in left if place not in whole], back * _FURTHER_BACK


def _order(record: TopicRecord) -> tuple[int, str, int, int]:
    return record.timestamp_ms or 0, record.topic, record.partition, record.offset
