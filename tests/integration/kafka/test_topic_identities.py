"""What Kafka says of topics that were removed, on a real broker."""

from __future__ import annotations

from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from builders.plain_kafka import made_topic, remove_topics
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.kafka.topic_identities import topic_ids
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(kafka: EmbeddedKafka) -> ClientSettings:
    return ClientSettings.from_extra(kafka.client_settings())


def test_a_topic_that_is_made_again_has_another_id_and_a_missing_one_none(
    kafka: EmbeddedKafka, settings: ClientSettings
) -> None:
    names = [f"identities-{uuid4().hex[:8]}" for _ in range(3)]
    ensure_topics(settings, [TopicSpec(name, 1, 1) for name in names])
    before = topic_ids(settings, names, all_exist=True)
    assert sorted(before) == sorted(names)
    assert len(set(before.values())) == 3

    remove_topics(kafka.client_settings(), names[0], names[1])
    ensure_topics(settings, [TopicSpec(names[1], 1, 1)])
    after = topic_ids(settings, names)

    assert sorted(after) == sorted(names[1:])
    assert after[names[1]] != before[names[1]]
    assert after[names[2]] == before[names[2]]


def test_brokers_refuse_to_delete_records_of_a_compacted_topic(kafka: EmbeddedKafka) -> None:
    """So no guard is needed for a topic with keep: latest whose beginning is gone."""
    topic = made_topic(kafka, **{"cleanup.policy": "compact"})
    admin = AdminClient(kafka.client_settings())
    (refused,) = admin.delete_records([TopicPartition(topic, 0, 0)]).values()
    with pytest.raises(KafkaException) as error:
        refused.result(60)
    assert error.value.args[0].name() == "POLICY_VIOLATION"
