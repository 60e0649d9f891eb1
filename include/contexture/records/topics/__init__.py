"""Topic names: the topic of an entity, an attribute or a whole service, and which names Kafka accepts."""

from __future__ import annotations

from contexture.records.topics.encodings import MAXIMUM_LENGTH, TopicNameError, check_legal
from contexture.records.topics.names import TopicNamer

__all__ = [
    "MAXIMUM_LENGTH",
    "TopicNameError",
    "TopicNamer",
    "check_legal",
]
