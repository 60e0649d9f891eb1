"""What is looked at before topics are made."""

from __future__ import annotations

import pytest

from contexture.kafka import KafkaConfigurationError, TopicSpec
from contexture.kafka.topic_listing import ListedTopic
from contexture.kafka.topics import check_room

HELD = {"old": ListedTopic(partitions=10, replication_factor=2, usable=True)}


def test_brokers_get_no_more_partitions_than_they_can_hold():
    specs = [TopicSpec(f"t{number}", partitions=4, replication_factor=3) for number in range(10)]
    check_room(2, HELD, specs, 70)
    with pytest.raises(
        KafkaConfigurationError, match=r"10 new topics with 120 partitions.* about 70 partitions"
    ) as told:
        check_room(2, HELD, specs, 69)
    assert "topics.max_broker_partitions (69)" in told.value.message
    assert "data_model" in told.value.next_step


def test_the_brokers_own_number_of_copies_counts_as_one():
    specs = [TopicSpec(f"t{number}", partitions=1, replication_factor=-1) for number in range(10)]
    check_room(1, {}, specs, 10)
    with pytest.raises(KafkaConfigurationError):
        check_room(1, {}, specs, 9)
