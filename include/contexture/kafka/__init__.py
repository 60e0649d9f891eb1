"""Kafka as a client library: settings, security, topics, transactional producer, readers, partitioner.

Importing this package costs nothing and needs no Kafka client: Spark executors take `partition_for` from it. Each name
is loaded from its module when it is first requested, and `confluent_kafka` only when a client is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture.kafka.connection import ConnectionReport, test_connection
    from contexture.kafka.delivered import Delivered
    from contexture.kafka.errors import (
        BrokersAwayError,
        DamagedRecordsError,
        FencedError,
        KafkaConfigurationError,
        OffsetGoneError,
        SequenceTakenError,
    )
    from contexture.kafka.group_member import GroupMember
    from contexture.kafka.partitioner import partition_for, shards_for
    from contexture.kafka.replica import ReplicaRecord, read_committed
    from contexture.kafka.replica_reader import ReplicaReader
    from contexture.kafka.settings import ClientSettings
    from contexture.kafka.starts import GroupOffsets
    from contexture.kafka.topic_filter import TopicFilter
    from contexture.kafka.topics import TopicSpec, TopicsReport, ensure_topics

_MODULES = {
    "BrokersAwayError": "errors",
    "ClientSettings": "settings",
    "ConnectionReport": "connection",
    "DamagedRecordsError": "errors",
    "Delivered": "delivered",
    "FencedError": "errors",
    "GroupMember": "group_member",
    "GroupOffsets": "starts",
    "KafkaConfigurationError": "errors",
    "OffsetGoneError": "errors",
    "ReplicaReader": "replica_reader",
    "ReplicaRecord": "replica",
    "SequenceTakenError": "errors",
    "TopicFilter": "topic_filter",
    "TopicSpec": "topics",
    "TopicsReport": "topics",
    "ensure_topics": "topics",
    "partition_for": "partitioner",
    "read_committed": "replica",
    "shards_for": "partitioner",
    "test_connection": "connection",
}

__all__ = [
    "BrokersAwayError",
    "ClientSettings",
    "ConnectionReport",
    "DamagedRecordsError",
    "Delivered",
    "FencedError",
    "GroupMember",
    "GroupOffsets",
    "KafkaConfigurationError",
    "OffsetGoneError",
    "ReplicaReader",
    "ReplicaRecord",
    "SequenceTakenError",
    "TopicFilter",
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
