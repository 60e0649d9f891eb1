"""What is looked at before topics are made."""

from __future__ import annotations

import pytest

from contexture.kafka import KafkaConfigurationError, TopicSpec
from contexture.kafka.admin import ListedTopic
from contexture.kafka.topics import check_retention, check_room, find_loss

HELD = {"old": ListedTopic(partitions=10, replication_factor=2, usable=True)}


def test_brokers_get_no_more_partitions_than_they_can_hold():
    specs = [TopicSpec(f"t{number}", partitions=4, replication_factor=3) for number in range(10)]
    check_room(2, HELD, specs, 70)
    with pytest.raises(
        KafkaConfigurationError, match=r"10 new topics with 120 partitions.* about 70 partitions"
    ) as caught:
        check_room(2, HELD, specs, 69)
    assert "topics.max_broker_partitions (69)" in caught.value.message
    assert "data_model" in caught.value.next_step


@pytest.mark.parametrize(("default_copies", "partitions"), [(1, 10), (3, 30)])
def test_topics_that_name_no_number_of_copies_count_as_the_brokers_default(default_copies: int, partitions: int):
    specs = [TopicSpec(f"t{number}", partitions=1, replication_factor=-1) for number in range(10)]
    check_room(1, {}, specs, partitions, default_copies)
    with pytest.raises(KafkaConfigurationError):
        check_room(1, {}, specs, partitions - 1, default_copies)


WEEK = {"retention.ms": "604800000", "retention.bytes": "-1"}
FOREVER = {"retention.ms": "-1", "retention.bytes": "-1"}


@pytest.mark.parametrize(
    ("keep", "policy", "limits", "loss"),
    [
        ("history", "delete", WEEK, None),
        ("history", "compact", FOREVER, "cleanup.policy is compact: compaction removes all but the newest record"),
        ("history", "compact,delete", WEEK, "cleanup.policy is compact,delete: compaction removes"),
        ("latest", "compact", WEEK, None),
        ("latest", "delete", FOREVER, None),
        ("latest", "delete", WEEK, "cleanup.policy is delete and retention.ms is 604800000: Kafka removes"),
        ("latest", "compact, delete", WEEK, "retention.ms is 604800000: Kafka removes what has not changed for long"),
        ("latest", "delete", {"retention.ms": "-1", "retention.bytes": "5"}, "delete and retention.bytes is 5"),
    ],
)
def test_an_existing_topic_that_would_lose_records_is_found_by_its_policy_and_limits(keep, policy, limits, loss):
    found = find_loss(TopicSpec("cars", keep=keep), {"cleanup.policy": policy, **limits})
    assert (found is None) if loss is None else (loss in found)


def test_topics_that_would_lose_records_are_refused_with_what_to_do():
    specs = [TopicSpec(name, keep="latest") for name in ("a", "b", "c")]
    lossy = {"cleanup.policy": "delete", **WEEK}
    with pytest.raises(KafkaConfigurationError) as caught:
        check_retention(specs, {"a": {"cleanup.policy": "compact"}, "b": lossy, "c": lossy})
    assert caught.value.message == (
        "topic b would lose records that topics.keep: latest must keep: cleanup.policy is delete and retention.ms is "
        "604800000: Kafka removes what has not changed for long; also c"
    )
    assert "contexture topics apply" in caught.value.next_step
    assert "--entity-name b --add-config cleanup.policy=compact" in caught.value.next_step
