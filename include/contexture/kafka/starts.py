"""Where reading begins: at the beginning, at offsets, at a time, or where a consumer group stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from contexture.kafka.error_table import translated
from contexture.kafka.errors import OffsetGoneError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

    from contexture.kafka.topic_admin import TopicAdmin

Place = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """Where a consumer group stands; nothing is committed by reading from there."""

    group: str


Start = Mapping[Place, int] | datetime | GroupOffsets | None
"""Offsets of partitions (those not named are read from their beginning), a moment (the first record of that time or
later, with time zone), a group (partitions for which it has committed nothing are read from their beginning), or None
for the beginning."""


def starts_of(admin: TopicAdmin, consumer: Consumer, places: Sequence[Place], start: Start) -> dict[Place, int]:
    """The first offset to read of each partition.

    Raises:
        OffsetGoneError: one that is asked for is not there any more, or not yet.
    """
    if isinstance(start, datetime):
        return admin.offsets_at(places, start)
    earliest = admin.beginnings(places)
    if start is None:
        return earliest
    asked = _committed(consumer, places) if isinstance(start, GroupOffsets) else dict(start)
    latest = admin.ends([place for place in places if place in asked], committed=False)
    for place, offset in asked.items():
        if place in earliest and not earliest[place] <= offset <= latest[place]:
            raise offset_gone(place, f"offset {offset} is not there: it has {earliest[place]} to {latest[place]}")
    return {place: asked.get(place, earliest[place]) for place in places}


def offset_gone(place: Place, why: str) -> OffsetGoneError:
    """The error for an offset out of range: going on at another one would leave records out in silence."""
    topic, partition = place
    return OffsetGoneError(
        f"{topic}[{partition}] can not be read from where it should: {why}",
        next_step="records were deleted (retention, or a new topic of that name): read from the beginning, or from a "
        "time, and have the replica verified or resynchronised",
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
            raise translated(place.error, "finding where the group is", topic=place.topic)


def _committed(consumer: Consumer, places: Sequence[Place]) -> dict[Place, int]:
    from confluent_kafka import TopicPartition

    found = consumer.committed([TopicPartition(*place) for place in places], timeout=30)
    raise_uncommitted(found)
    return {(place.topic, place.partition): place.offset for place in found if place.offset >= 0}
