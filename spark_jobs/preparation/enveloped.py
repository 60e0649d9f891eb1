"""The headers of tombstones, made from the state rows that they end."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from contexture.records.cloudevents.change_events import Occasion
from contexture.records.messages.envelopes import Envelope, HeaderValues
from contexture.storage.schemas import HEADER_PREFIX

_READ = ("identity", "content_hash", "modified_at")


def with_tombstone_headers(gone: Any, envelope: Envelope | None) -> Any:
    """State rows with the headers of their tombstones; as they are where records have no envelope."""
    if envelope is None:
        return gone
    rows = zip(*(gone.column(name).to_pylist() for name in _READ), _places(gone), strict=True)
    headers = [_headers(envelope, *row) for row in rows]
    for place, name in enumerate(envelope.columns):
        values = pa.array([values[place] for values in headers], pa.binary())
        gone = gone.append_column(f"{HEADER_PREFIX}{name}", values)
    return gone


def _headers(envelope: Envelope, identity: bytes, content_hash: bytes, modified_at: Any, place: str) -> HeaderValues:
    occasion = Occasion(modified_at=modified_at, otherwise=place)
    return envelope.deletion(identity, content_hash=content_hash, occasion=occasion)


def _places(gone: Any) -> list[str]:
    """Where the source doesn't say when content was changed: the outbox that told it last, and the event that ended it.

    In one run the same content may come and go several times; then the deletion was notified, and is an event.
    """
    sequences = gone.column("sequence").to_pylist()
    events = gone.column("event").to_pylist() if "event" in gone.column_names else [""] * len(sequences)
    return [f"{sequence} {event}" for sequence, event in zip(sequences, events, strict=True)]
