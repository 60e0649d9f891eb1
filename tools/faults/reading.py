"""A reader that shares no code with Contexture: confluent-kafka's own consumer, read-committed, from the beginning."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import closing

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from tools.faults.loads import MARK
from tools.faults.verdict import Found

_SECONDS = 60.0
_CALL_SECONDS = 10.0
# Brokers are killed here: that a connection was lost is no news, 20 times a second.
_SILENT = logging.getLogger("tools.faults.reading.client")
_SILENT.setLevel(logging.CRITICAL + 1)


def read_topics(bootstrap: str, topics: Sequence[str]) -> list[Found]:
    """Returns all that is committed in the topics; waits until no open transaction hides anything.

    Raises:
        TimeoutError: something stays hidden, or brokers are silent.
    """
    ends = _ends(bootstrap, topics)
    records: list[Found] = []
    with closing(consumer(bootstrap, "read_committed")) as reader:
        reader.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in ends])
        deadline = time.monotonic() + _SECONDS
        while ends:
            if time.monotonic() > deadline:
                raise TimeoutError(f"a transaction stays open: {sorted(ends)} can't be read to their ends")
            for message in reader.consume(500, 0.1):
                error, place = message.error(), (str(message.topic()), int(message.partition() or 0))
                if error is None:
                    records.append(found(message, place))
                elif error.code() == KafkaError._PARTITION_EOF and int(message.offset() or 0) >= ends.get(place, 0):
                    ends.pop(place, None)
    return records


def found(message: Message, place: tuple[str, int]) -> Found:
    """Returns a message as the checkers take it."""
    mark = dict(message.headers() or ()).get(MARK, b"")
    assert isinstance(mark, bytes)
    return Found(mark, *place, message.key(), message.value(), int(message.offset() or 0))


def _ends(bootstrap: str, topics: Sequence[str]) -> dict[tuple[str, int], int]:
    """Returns where each partition ends, open transactions included."""
    with closing(consumer(bootstrap, "read_uncommitted")) as reader:
        listed = reader.list_topics(timeout=_CALL_SECONDS).topics
        places = [(topic, partition) for topic in topics for partition in listed[topic].partitions]
        return {place: reader.get_watermark_offsets(TopicPartition(*place), _CALL_SECONDS)[1] for place in places}


def consumer(bootstrap: str, isolation: str) -> Consumer:
    """Returns a plain one that says where partitions end."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "fault-matrix",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "check.crcs": True,
        },
        logger=_SILENT,
    )
