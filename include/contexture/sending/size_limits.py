"""The topics that a publication requires, and which records would be refused for their size.

Refusals are known before anything is sent.

The client compares key, value and headers before compression; topics compare a batch, and brokers a request, after it.

Three limits are passed in order, and the lowest stops a record: the client compares key, value and headers
before compression with `message.max.bytes`; the topic compares them after compression with `max.message.bytes`; and no
request to a broker may be larger than its `socket.request.max.bytes`. What a connection or a publication says itself is
never overruled: it is the limit then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from contexture.errors import ConfigurationError, ContextureError
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.settings import ClientSettings, Option
from contexture.kafka.topics import DEFAULT_COPIES, TopicSpec
from contexture.publications import Publication, SdmxPublication
from contexture.sending.dead_letters import DeadLetters
from contexture.sending.interfaces import ShardReader

LARGEST_RECORD_BYTES: Final = 209_715_200
"""Key, value and headers of the largest record of a structure publication, before compression (200 MiB)."""

# A record that does not compress travels with a header of its batch, and a codec may add a little.
_TOPIC_BYTES: Final = LARGEST_RECORD_BYTES + 1_048_576
# Room for a largest record beside those that wait to be delivered.
_QUEUE_SHARE: Final = 1.25
_KBYTE: Final = 1024

_TIMEOUT_MS: Final = 120_000
# Brokers allow no more by default (transaction.max.timeout.ms).
_LONGEST_TIMEOUT_MS: Final = 900_000
_SLOWEST_BYTES_A_SECOND: Final = 10_000_000


def for_structures(settings: ClientSettings, transaction_bytes: int = 0) -> ClientSettings:
    """Returns the connection with room for the largest artefact, and time for the largest transaction.

    Args:
        settings: the connection; what it says itself stays.
        transaction_bytes: keys and values of the largest transaction. A transaction lives no longer than
            `transaction.timeout.ms`, and when its sender dies readers are held back that long: so only what needs more
            than two minutes at 10 MB/s gets more, up to the 15 minutes that brokers allow by default.
    """
    given = settings.options
    record_bytes = int(given.get("message.max.bytes", LARGEST_RECORD_BYTES))
    timeout_ms = max(_TIMEOUT_MS, min(_LONGEST_TIMEOUT_MS, transaction_bytes * 1000 // _SLOWEST_BYTES_A_SECOND))
    room: dict[str, Option] = {
        "message.max.bytes": record_bytes,
        "queue.buffering.max.kbytes": int(max(record_bytes, LARGEST_RECORD_BYTES) * _QUEUE_SHARE) // _KBYTE,
        "transaction.timeout.ms": timeout_ms,
    }
    return ClientSettings(MappingProxyType({**room, **given}))


def structure_topic_config(config: Mapping[str, str]) -> dict[str, str]:
    """Returns the configuration of a new topic with room for the largest artefact; the publication's own word wins."""
    return {"max.message.bytes": str(_TOPIC_BYTES), **config}


LimitName = Literal["client", "topic", "broker"]
_CLIENT, _TOPIC, _REQUEST = "message.max.bytes", "max.message.bytes", "socket.request.max.bytes"
_CLIENT_DEFAULT_BYTES, _TOPIC_DEFAULT_BYTES = 1_000_000, 1_048_588
# Headers, and the further bytes of a record's batch and its request.
_AROUND_BYTES = {"client": 128, "topic": 256, "broker": 4096}


@dataclass(frozen=True, slots=True)
class Exceeded:
    """One limit that a record is above.

    Attributes:
        limit: whose it is.
        name: of the setting that holds it.
        allowed_bytes: the limit.
        topic: of a topic's limit.
    """

    limit: LimitName
    name: str
    allowed_bytes: int
    topic: str | None = None

    def is_below(self, size: int) -> bool:
        """Returns whether key and value of so many bytes are above it."""
        return size + _AROUND_BYTES[self.limit] > self.allowed_bytes

    def __str__(self) -> str:
        whose = f"topic {self.topic}" if self.topic else f"the {self.limit}"
        return f"{self.name} of {whose} is {self.allowed_bytes:,}"


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The limits that records of some topics meet.

    Attributes:
        client_bytes: of key, value and headers, before compression.
        topic_bytes: of a batch, compressed, by topic.
        request_bytes: of a request, compressed; None where it isn't known.
        compression: how the client compresses.
        unknown: why the brokers were not asked, where they weren't.
    """

    client_bytes: int
    topic_bytes: Mapping[str, int]
    request_bytes: int | None = None
    compression: str = "lz4"
    unknown: str = ""

    def exceeded(self, size: int, compressed: Callable[[], int], topics: Sequence[str]) -> tuple[Exceeded, ...]:
        """Returns the limits that a record is above, in the order in which it meets them.

        Args:
            size: bytes of its key and value.
            compressed: the same after compression; asked for only where that matters.
            topics: that it goes to.
        """
        client = Exceeded("client", _CLIENT, self.client_bytes)
        found = (client,) if client.is_below(size) else ()
        later = [
            Exceeded("topic", _TOPIC, self.topic_bytes[topic], topic) for topic in topics if topic in self.topic_bytes
        ]
        if self.request_bytes is not None:
            later.append(Exceeded("broker", _REQUEST, self.request_bytes))
        if not any(limit.is_below(size) for limit in later):
            return found
        packed = compressed()
        return (*found, *(limit for limit in later if limit.is_below(packed)))


def size_limits(
    settings: ClientSettings | None,
    topics: Sequence[str],
    new_topic_config: Mapping[str, str],
    *,
    wait_seconds: float = 15.0,
) -> SizeLimits:
    """Returns the limits of a connection, and of its brokers where they answer.

    Brokers that don't answer are no error: what the connection and the publication say is known without them.

    Args:
        settings: the connection, as a sender will use it; None where it isn't known: the largest artefact then.
        topics: whose limits are wanted.
        new_topic_config: what topics that don't exist would be made with.
        wait_seconds: how long brokers are waited for.
    """
    wanted = dict.fromkeys(topics, int(new_topic_config.get(_TOPIC, _TOPIC_DEFAULT_BYTES)))
    if settings is None:
        return SizeLimits(LARGEST_RECORD_BYTES, wanted, unknown="there is no connection to Kafka in the environment")
    options = settings.producer()
    client_bytes = int(options.get(_CLIENT, _CLIENT_DEFAULT_BYTES))
    compression = str(options.get("compression.type", "none"))
    try:
        admin = TopicAdmin(settings, BrokerWait(wait_seconds))
        listed = admin.listed()
        configs = admin.configs([topic for topic in topics if topic in listed])
        request_bytes = admin.lowest_of_brokers(_REQUEST)
    except ContextureError as error:
        return SizeLimits(
            client_bytes, wanted, None, compression, f"the limits of the brokers are unknown: {error.message}"
        )
    there = {name: int(config[_TOPIC]) for name, config in configs.items() if config.get(_TOPIC, "").isdecimal()}
    return SizeLimits(client_bytes, {**wanted, **there}, request_bytes, compression)


def compressed_size(message: bytes, codec: str) -> int:
    """Returns the bytes of a message as a client compresses it."""
    if codec == "none":
        return len(message)
    import pyarrow as pa

    return int(pa.compress(message, codec=codec).size)


def check_records(reader: ShardReader, limits: SizeLimits) -> None:
    """Checks that each value of a shard is below the limits of its topic; nothing is sent.

    Raises:
        ConfigurationError: one is above a limit.
    """
    for batch in reader.batches(0):
        for topic, value in zip(*(batch.column(name).to_pylist() for name in ("topic", "value")), strict=True):
            if value is not None:
                _check_record(str(topic), value, limits)


def _check_record(topic: str, value: bytes, limits: SizeLimits) -> None:
    exceeded = limits.exceeded(len(value), lambda: compressed_size(value, limits.compression), [topic])
    if exceeded:
        raise ConfigurationError(
            f"a record for topic {topic} has {len(value):,} bytes, and {' and '.join(map(str, exceeded))}; nothing was "
            "sent",
            next_step="raise what is named (docs/how-to/publish-large-structures.md), then clear this task; or set "
            "message.bundle: artefact, or select or route fewer structures, and start a new run",
            topic=topic,
            bytes=len(value),
        )


_DAY_MS: Final = 86_400_000


def topic_spec(publication: Publication, topic: str) -> TopicSpec:
    """One topic of a publication; those of a registry have room for the largest structure."""
    wanted = publication.topics
    return TopicSpec(
        name=topic,
        partitions=wanted.partitions,
        replication_factor=wanted.replication_factor or DEFAULT_COPIES,
        config=structure_topic_config(wanted.config) if isinstance(publication, SdmxPublication) else wanted.config,
        keep=wanted.keep,
    )


def dead_letters_of(publication: Publication) -> DeadLetters | None:
    """Returns where a publication's records go that can never be sent; None where they stop the sending."""
    topic = publication.dead_letter_topic
    return None if topic is None else DeadLetters(topic, publication.publish.max_dead_letters)


def dead_letter_spec(publication: Publication) -> TopicSpec | None:
    """Returns the publication's dead-letter topic, if it has one: every letter is kept for as long as its run."""
    if publication.dead_letter_topic is None:
        return None
    return TopicSpec(
        name=publication.dead_letter_topic,
        replication_factor=publication.topics.replication_factor or DEFAULT_COPIES,
        config={"retention.ms": str(publication.retention.archive_days * _DAY_MS)},
    )
