"""Reading one record back, as a read-committed reader does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from contexture.kafka.clients import client_error, error_in, reader
from contexture.kafka.error_table import Meaning, meaning, translated
from contexture.kafka.patience import Patience
from contexture.kafka.settings import ClientSettings
from contexture.kafka.watch import ClientWatch

_POLL_SECONDS: Final = 0.5
_END: Final = "_PARTITION_EOF"
_HEALED_BY_WAITING: Final = frozenset({Meaning.SAME_CALL_AGAIN, Meaning.SEND_AGAIN, Meaning.BROKERS_AWAY})


@dataclass(frozen=True, slots=True)
class ReadBack:
    """A record as it lies in its topic; whether its timestamp is the broker's."""

    value: bytes = field(repr=False)
    timestamp_ms: int
    is_brokers_time: bool


def read_back(settings: ClientSettings, topic: str, start: int, key: bytes, seconds: float) -> ReadBack:
    """The first committed record with a key in partition 0 of a topic.

    Args:
        settings: the connection.
        topic: the topic.
        start: the offset to begin at.
        key: of the record.
        seconds: how long it is waited for.

    Raises:
        BrokersAwayError: it does not come.
        KafkaConfigurationError: this user may not read it.
    """
    from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, TopicPartition

    watch, patience = ClientWatch(), Patience(seconds)
    consumer = reader(settings, watch)
    try:
        consumer.assign([TopicPartition(topic, 0, start)])
        while True:
            message = consumer.poll(_POLL_SECONDS)
            watch.raise_refusal("reading back")
            error = message.error() if message is not None else None
            if message is None or (error is not None and error.name() == _END):
                patience.waited("the committed record does not come")
            elif error is not None:
                if meaning(error) not in _HEALED_BY_WAITING:
                    raise translated(error, "reading back", topic=topic, needs="READ")
                patience.waited(f"{error.name()}: {error.str()}")
            elif message.key() == key:
                kind, moment = message.timestamp()
                return ReadBack(message.value() or b"", moment, kind == TIMESTAMP_LOG_APPEND_TIME)
    except client_error() as failure:
        raise translated(error_in(failure), "reading back", topic=topic, needs="READ") from failure
    finally:
        consumer.close()
