"""Kafka: settings, topics, the transactional publisher with its ledger, the replica reader, the partitioner.

Importing this package costs nothing and needs no Kafka client: Spark executors take `partition_for` from it. Each name
is loaded from its module when it is first asked for, and `confluent_kafka` only when a client is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture.kafka.attempts import AfterFailure
    from contexture.kafka.claims import ClaimReport, Claims
    from contexture.kafka.connection import ConnectionReport, test_connection
    from contexture.kafka.encoding import Delivered, Encode, encoded_values, one_after_the_other, partitioned
    from contexture.kafka.errors import (
        BrokersAwayError,
        DamagedRecordsError,
        FencedError,
        KafkaConfigurationError,
        OffsetGoneError,
        SequenceTakenError,
    )
    from contexture.kafka.group_member import GroupMember
    from contexture.kafka.ledger import Ledger
    from contexture.kafka.ledger_entry import LedgerEntry
    from contexture.kafka.partitioner import partition_for, shards_for
    from contexture.kafka.ports import ShardReader
    from contexture.kafka.progress import Progress, SendProgress
    from contexture.kafka.publisher import Publisher
    from contexture.kafka.record_size import LARGEST_RECORD_BYTES, for_structures, structure_topic_config
    from contexture.kafka.record_times import timed_by_sending
    from contexture.kafka.replica import ReplicaRecord, read_committed
    from contexture.kafka.replica_reader import ReplicaReader
    from contexture.kafka.senders import SenderNames
    from contexture.kafka.settings import ClientSettings
    from contexture.kafka.starts import GroupOffsets
    from contexture.kafka.tally import ShardResult
    from contexture.kafka.topic_filter import TopicFilter
    from contexture.kafka.topics import TopicSpec, TopicsReport, ensure_topics

_MODULES = {
    "AfterFailure": "attempts",
    "ClaimReport": "claims",
    "Claims": "claims",
    "BrokersAwayError": "errors",
    "ClientSettings": "settings",
    "ConnectionReport": "connection",
    "DamagedRecordsError": "errors",
    "Delivered": "encoding",
    "Encode": "encoding",
    "FencedError": "errors",
    "GroupMember": "group_member",
    "GroupOffsets": "starts",
    "KafkaConfigurationError": "errors",
    "LARGEST_RECORD_BYTES": "record_size",
    "Ledger": "ledger",
    "LedgerEntry": "ledger_entry",
    "OffsetGoneError": "errors",
    "Progress": "progress",
    "Publisher": "publisher",
    "ReplicaReader": "replica_reader",
    "ReplicaRecord": "replica",
    "SendProgress": "progress",
    "SenderNames": "senders",
    "SequenceTakenError": "errors",
    "ShardReader": "ports",
    "ShardResult": "tally",
    "TopicFilter": "topic_filter",
    "TopicSpec": "topics",
    "TopicsReport": "topics",
    "encoded_values": "encoding",
    "ensure_topics": "topics",
    "for_structures": "record_size",
    "one_after_the_other": "encoding",
    "partition_for": "partitioner",
    "partitioned": "encoding",
    "read_committed": "replica",
    "shards_for": "partitioner",
    "structure_topic_config": "record_size",
    "test_connection": "connection",
    "timed_by_sending": "record_times",
}

__all__ = [
    "LARGEST_RECORD_BYTES",
    "AfterFailure",
    "BrokersAwayError",
    "ClaimReport",
    "Claims",
    "ClientSettings",
    "ConnectionReport",
    "DamagedRecordsError",
    "Delivered",
    "Encode",
    "FencedError",
    "GroupMember",
    "GroupOffsets",
    "KafkaConfigurationError",
    "Ledger",
    "LedgerEntry",
    "OffsetGoneError",
    "Progress",
    "Publisher",
    "ReplicaReader",
    "ReplicaRecord",
    "SendProgress",
    "SenderNames",
    "SequenceTakenError",
    "ShardReader",
    "ShardResult",
    "TopicFilter",
    "TopicSpec",
    "TopicsReport",
    "encoded_values",
    "ensure_topics",
    "for_structures",
    "one_after_the_other",
    "partition_for",
    "partitioned",
    "read_committed",
    "shards_for",
    "structure_topic_config",
    "test_connection",
    "timed_by_sending",
]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
