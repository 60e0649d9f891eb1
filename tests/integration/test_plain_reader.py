"""The demo's reader on a real broker: what it gives, and what it shares with the sender (nothing)."""

from __future__ import annotations

import subprocess
import sys
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, Producer

from builders.plain_kafka import made_topic
from contexture_sandbox.demo.plain_reader import PlainRecord, read_topics
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration


def test_committed_records_are_read_in_their_order_and_aborted_ones_are_not(kafka: EmbeddedKafka) -> None:
    topic = made_topic(kafka)
    producer = Producer({**kafka.client_settings(), "transactional.id": f"plain-{uuid4().hex[:8]}"})
    producer.init_transactions(60)
    for value, ends in ((b"1", "commit"), (b"lost", "abort"), (None, "commit")):
        producer.begin_transaction()
        producer.produce(topic, value=value, key=b"k", headers=[("h", b"x"), ("none", None)])
        producer.flush(60)
        _ = producer.commit_transaction(60) if ends == "commit" else producer.abort_transaction(60)

    found = list(read_topics(kafka.client_settings(), [topic]))

    headers = (("h", b"x"), ("none", b""))
    assert found == [PlainRecord(topic, b"k", b"1", headers), PlainRecord(topic, b"k", None, headers)]


def test_a_topic_that_is_not_there_is_an_error_and_is_not_made(kafka: EmbeddedKafka) -> None:
    name = f"absent-{uuid4().hex[:8]}"
    for _ in range(2):
        with pytest.raises(KafkaException, match="does not exist"):
            list(read_topics(kafka.client_settings(), [name]))


def test_it_loads_nothing_of_the_code_that_sends() -> None:
    code = (
        "import sys, contexture_sandbox.demo.plain_reader\n"
        "ours = ('contexture.kafka', 'contexture.sending', 'contexture.storage')\n"
        "print([name for name in sys.modules if name.startswith(ours)])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert shown.stdout.strip() == "[]"
