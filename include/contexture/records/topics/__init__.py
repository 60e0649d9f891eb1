"""Topic names: which topic an entity, an attribute or a whole service goes to, and what Kafka accepts as a name."""

from __future__ import annotations

from contexture.records.topics.encodings import MAXIMUM_LENGTH, TopicNameError, check_legal
from contexture.records.topics.names import TopicNamer, TopicNaming, topic_name, topic_names

__all__ = [
    "MAXIMUM_LENGTH",
    "TopicNameError",
    "TopicNamer",
    "TopicNaming",
    "check_legal",
    "topic_name",
    "topic_names",
]
