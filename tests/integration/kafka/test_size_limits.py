"""The limits of a broker and of its topics are those that it reports."""

from __future__ import annotations

from uuid import uuid4

import pytest

from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.sending.size_limits import size_limits
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration


def test_topics_that_exist_have_their_own_limit_and_new_ones_get_that_of_the_publication(kafka: EmbeddedKafka):
    settings = ClientSettings.from_extra(kafka.client_settings())
    there, new = f"sizes-{uuid4().hex[:8]}", f"sizes-{uuid4().hex[:8]}"
    ensure_topics(settings, [TopicSpec(there, config={"max.message.bytes": "12345"})])
    found = size_limits(settings, [there, new], {"max.message.bytes": "777777"})
    assert found.topic_bytes == {there: 12345, new: 777777}
    assert (found.unknown, found.request_bytes) == ("", 250_000_000)
