"""What a structure's message takes in a record: as it is, or in the envelope of its publication."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from contexture.records.cloudevents.change_events import Occasion
from contexture.records.messages.envelopes import Content, StructureEnvelope

Message = Callable[[], bytes]
RecordSize = Callable[[str, str, int, Message], tuple[int, Message]]
"""From a structure's URN, media type, size and message to the size and value of its record, the key left out."""

_AT_SOME_TIME = Occasion(modified_at=datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC))


def bare(urn: str, media_type: str, size: int, message: Message) -> tuple[int, Message]:
    """A message as it is."""
    return size, message


def enveloped(envelope: StructureEnvelope) -> RecordSize:
    """What a message is in an envelope: with headers, or within an event."""

    def sent_as(urn: str, media_type: str, size: int, message: Message) -> tuple[int, Message]:
        # Ids and times have one length, whatever they say.
        content = Content(urn, media_type, b"", _AT_SOME_TIME)
        headers = envelope.size(envelope.headers(content))
        if not envelope.is_structured:
            return size + headers, message
        event = envelope.event(content, message())
        return len(event) + headers, lambda: event

    return sent_as
