"""The limits of a broker and of its topics are those that it reports."""

from __future__ import annotations

from os import urandom
from uuid import uuid4

import pytest

from builders.structure_publications import structures
from contexture.errors import ConfigurationError
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.sending.size_limits import size_limits
from contexture.sending.target import KafkaTarget
from contexture.sending.testing import MemoryShard, OutboxRow
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration


def test_topics_that_exist_have_their_own_limit_and_new_ones_get_that_of_the_publication(kafka: EmbeddedKafka):
    settings = ClientSettings.from_extra(kafka.client_settings())
    there, new = f"sizes-{uuid4().hex[:8]}", f"sizes-{uuid4().hex[:8]}"
    ensure_topics(settings, [TopicSpec(there, config={"max.message.bytes": "12345"})])
    found = size_limits(settings, [there, new], {"max.message.bytes": "777777"})
    assert found.topic_bytes == {there: 12345, new: 777777}
    assert (found.unknown, found.request_bytes) == ("", 250_000_000)


def test_a_message_above_the_limit_of_its_topic_is_known_before_it_is_sent(kafka: EmbeddedKafka):
    settings = ClientSettings.from_extra(kafka.client_settings())
    topic = f"sizes-{uuid4().hex[:8]}"
    ensure_topics(settings, [TopicSpec(topic, keep="history", config={"max.message.bytes": "2000"})])
    target = KafkaTarget(settings, structures(topics={"topics": [topic], "keep": "history"}))

    target.check_sizes(MemoryShard([OutboxRow(topic, None, b"x" * 1500)]), [topic], 1500)
    # What compresses well passes.
    target.check_sizes(MemoryShard([OutboxRow(topic, None, b"x" * 9000)]), [topic], 9000)
    with pytest.raises(
        ConfigurationError, match=r"has 9,000 bytes, and max.message.bytes of topic .* is 2,000"
    ) as caught:
        target.check_sizes(MemoryShard([OutboxRow(topic, None, urandom(9000))]), [topic], 9000)
    assert "message.bundle: artefact" in caught.value.next_step
