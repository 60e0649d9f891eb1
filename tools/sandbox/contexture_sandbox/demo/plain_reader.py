"""A reader that shares no code with Contexture's sender: confluent-kafka's own consumer, read-committed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple, cast
from uuid import uuid4

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

_SILENT_SECONDS = 60.0
_CALL_SECONDS = 10.0
_BATCH = 500
_BATCH_SECONDS = 0.1
_PARTITIONS_AT_ONCE = 500
"""The vehicles of the demo have a topic each: what a client holds in memory grows with the partitions it reads."""


class PlainRecord(NamedTuple):
    """A record as the client gives it; `value` None is a tombstone."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def read_topics(brokers: Mapping[str, str | int | float | bool], topics: Iterable[str]) -> Iterator[PlainRecord]:
    """Gives all committed records of topics, each partition in its order, up to their ends at the time of the call.

    Args:
        brokers: the client's own properties, `bootstrap.servers` and what logs in.
        topics: their names; each is there.

    Raises:
        TimeoutError: an open transaction hides the rest, or brokers are silent.
        KafkaException: a topic is not there, or may not be read.
    """
    ends = _ends(brokers, sorted(set(topics)))
    places = sorted(ends)
    for first in range(0, len(places), _PARTITIONS_AT_ONCE):
        yield from _read(brokers, {place: ends[place] for place in places[first : first + _PARTITIONS_AT_ONCE]})


def _read(brokers: Mapping[str, str | int | float | bool], ends: dict[tuple[str, int], int]) -> Iterator[PlainRecord]:
    with closing(_consumer(brokers, "read_committed")) as consumer:
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in ends])
        heard = time.monotonic()
        while ends:
            messages = consumer.consume(_BATCH, _BATCH_SECONDS)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() > heard + _SILENT_SECONDS:
                raise TimeoutError(f"an open transaction hides the rest of {sorted(ends)[0]}, or brokers are silent")
            for message in messages:
                error, place = message.error(), (str(message.topic()), int(message.partition() or 0))
                if error is None:
                    named = cast(Sequence[tuple[str, str | bytes | None]], message.headers() or ())
                    headers = tuple((name, _bytes(value)) for name, value in named)
                    yield PlainRecord(place[0], message.key(), message.value(), headers)
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                elif int(message.offset() or 0) >= ends.get(place, 0):
                    ends.pop(place, None)


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


def _ends(brokers: Mapping[str, str | int | float | bool], topics: list[str]) -> dict[tuple[str, int], int]:
    """Where each partition ends, open transactions included."""
    with closing(_consumer(brokers, "read_uncommitted")) as consumer:
        listed = consumer.list_topics(timeout=_CALL_SECONDS).topics
        missing = [topic for topic in topics if topic not in listed]
        if missing:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"{missing[0]} does not exist"))
        places = [(topic, partition) for topic in topics for partition in listed[topic].partitions]
        return {place: consumer.get_watermark_offsets(TopicPartition(*place), _CALL_SECONDS)[1] for place in places}


def _consumer(brokers: Mapping[str, str | int | float | bool], isolation: str) -> Consumer:
    return Consumer(
        {
            **brokers,
            # It takes part in no group and commits nothing; the client wants a name all the same.
            "group.id": f"plain-reader-{uuid4().hex}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
    )
