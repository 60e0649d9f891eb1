"""Topics, producers and consumers of Kafka that share no code with ours."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, cast
from uuid import uuid4

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from contexture.records.cloudevents import Record
from contexture_sandbox.kafka import EmbeddedKafka


def made_topic(kafka: EmbeddedKafka, partitions: int = 1, **config: str) -> str:
    name = f"events-{uuid4().hex[:8]}"
    admin = AdminClient(kafka.client_settings())
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(60)
    return name


def remove_topics(brokers: Mapping[str, str], *names: str) -> None:
    """Removes topics, and waits until brokers list them no more: they hear of it after the answer."""
    # The client has to live until the answer is there.
    admin = AdminClient(dict(brokers))
    for done in admin.delete_topics(list(names)).values():
        done.result(60)
    until = time.monotonic() + 60
    while set(names) & set(admin.list_topics(timeout=60).topics):
        assert time.monotonic() < until, "a removed topic stays"
        time.sleep(0.05)


def produce(kafka: EmbeddedKafka, topic: str, *records: Record) -> None:
    producer = Producer({**kafka.client_settings(), "linger.ms": 0})
    for record in records:
        producer.produce(topic, record.value, record.key, headers=cast(Any, record.headers))
    assert producer.flush(60) == 0


def consumed(kafka: EmbeddedKafka, topic: str) -> list[Message]:
    """All that is in the only partition, by a plain consumer."""
    settings = {"group.id": uuid4().hex, "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({**kafka.client_settings(), **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            consumer.close()
            return found
        found.append(message)
