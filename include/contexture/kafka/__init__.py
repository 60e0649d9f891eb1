"""Kafka as a client library: settings, security, topics, transactional producer, readers, partitioner.

Importing this package costs nothing and needs no Kafka client: Spark executors take `partition_for` from it. Each name
is loaded from its module when it is first requested, and `confluent_kafka` only when a client is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture.kafka.connection_check import ConnectionReport, test_connection
    from contexture.kafka.consumer_group import CommittedReader, GroupMember, TopicFilter
    from contexture.kafka.errors import (
        BrokersAwayError,
        DamagedRecordsError,
        FencedError,
        KafkaConfigurationError,
        OffsetGoneError,
        SequenceTakenError,
    )
    from contexture.kafka.interfaces import Delivered
    from contexture.kafka.partitioner import partition_for, shards_for
    from contexture.kafka.reader import GroupOffsets, TopicRecord, read_committed
    from contexture.kafka.settings import ClientSettings
    from contexture.kafka.topics import TopicSpec, TopicsReport, ensure_topics

_MODULES = {
    "BrokersAwayError": "errors",
    "ClientSettings": "settings",
    "ConnectionReport": "connection_check",
    "DamagedRecordsError": "errors",
    "Delivered": "interfaces",
    "FencedError": "errors",
    "GroupMember": "consumer_group",
    "GroupOffsets": "reader",
    "KafkaConfigurationError": "errors",
    "OffsetGoneError": "errors",
    "CommittedReader": "consumer_group",
    "TopicRecord": "reader",
    "SequenceTakenError": "errors",
    "TopicFilter": "consumer_group",
    "TopicSpec": "topics",
    "TopicsReport": "topics",
    "ensure_topics": "topics",
    "partition_for": "partitioner",
    "read_committed": "reader",
    "shards_for": "partitioner",
    "test_connection": "connection_check",
}

__all__ = [
    "BrokersAwayError",
    "ClientSettings",
    "CommittedReader",
    "ConnectionReport",
    "DamagedRecordsError",
    "Delivered",
    "FencedError",
    "GroupMember",
    "GroupOffsets",
    "KafkaConfigurationError",
    "OffsetGoneError",
    "SequenceTakenError",
    "TopicFilter",
    "TopicRecord",
    "TopicSpec",
    "TopicsReport",
    "ensure_topics",
    "partition_for",
    "read_committed",
    "shards_for",
    "test_connection",
]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
