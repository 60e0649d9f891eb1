"""What Kafka gets: the bytes of values and keys, and the headers of events."""

from __future__ import annotations

from contexture.records.messages.content import MessageError

__all__ = ["MessageError"]
