"""Errors in place of records after which reading on would leave records out in silence, or take wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contexture.kafka.error_table import Meaning, meaning, translated
from contexture.kafka.errors import DamagedRecordsError
from contexture.kafka.ports import KafkaErrorLike
from contexture.kafka.starts import Place, offset_gone

if TYPE_CHECKING:
    from confluent_kafka import Message

_GONE: Final = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"})
_DAMAGED: Final = frozenset({"_BAD_MSG", "_BAD_COMPRESSION", "INVALID_MSG"})


def raise_unreadable(error: KafkaErrorLike, message: Message, doing: str = "reading") -> None:
    """Returns where the client itself tries again.

    Args:
        error: what came in place of a record.
        message: that it came in.
        doing: what was tried.

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
    if meaning(error) in {Meaning.CONFIGURATION, Meaning.FATAL}:
        raise translated(error, doing, topic=message.topic(), needs="READ and DESCRIBE")


def _damaged(error: KafkaErrorLike, place: Place) -> DamagedRecordsError:
    topic, partition = place
    return DamagedRecordsError(
        f"records of {topic}[{partition}] are damaged: {error.name()}: {error.str()}",
        next_step="look at the disks of the brokers that hold this partition, and let another replica lead it; without "
        "one, make the topic anew and run the publication in mode full. Large records of codec zstd need "
        "receive.message.max.bytes above their size",
        topic=topic,
        partition=partition,
    )
