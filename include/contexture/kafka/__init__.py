"""Kafka as a client library: settings, security, topics, transactional producer, readers, partitioner.

Importing this package costs nothing and needs no Kafka client: Spark executors take `partition_for` from it. Each name
is loaded from its module when it is first requested, and `confluent_kafka` only when a client is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.lazy_names import load_on_request

if TYPE_CHECKING:
    from contexture.kafka.connection_check import ConnectionReport as ConnectionReport
    from contexture.kafka.connection_check import test_connection as test_connection
    from contexture.kafka.consumer_group import CommittedReader as CommittedReader
    from contexture.kafka.consumer_group import TopicFilter as TopicFilter
    from contexture.kafka.errors import BrokersAwayError as BrokersAwayError
    from contexture.kafka.errors import DamagedRecordsError as DamagedRecordsError
    from contexture.kafka.errors import FencedError as FencedError
    from contexture.kafka.errors import KafkaConfigurationError as KafkaConfigurationError
    from contexture.kafka.errors import OffsetGoneError as OffsetGoneError
    from contexture.kafka.errors import SequenceTakenError as SequenceTakenError
    from contexture.kafka.partitioner import partition_for as partition_for
    from contexture.kafka.reader import GroupOffsets as GroupOffsets
    from contexture.kafka.reader import TopicRecord as TopicRecord
    from contexture.kafka.reader import read_committed as read_committed
    from contexture.kafka.settings import ClientSettings as ClientSettings
    from contexture.kafka.topics import TopicSpec as TopicSpec
    from contexture.kafka.topics import ensure_topics as ensure_topics

__getattr__ = load_on_request(
    __name__,
    {
        "connection_check": "ConnectionReport test_connection",
        "consumer_group": "CommittedReader TopicFilter",
        "errors": "BrokersAwayError DamagedRecordsError FencedError KafkaConfigurationError OffsetGoneError "
        "SequenceTakenError",
        "partitioner": "partition_for",
        "reader": "GroupOffsets TopicRecord read_committed",
        "settings": "ClientSettings",
        "topics": "TopicSpec ensure_topics",
    },
)
