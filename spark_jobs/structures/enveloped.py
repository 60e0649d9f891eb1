"""The values and headers of planned records: bodies as they are, or in the envelope of their publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from contexture.records.cloudevents.change_events import Occasion
from contexture.records.messages.envelopes import Content, StructureEnvelope
from contexture.storage.schemas import HEADER_PREFIX
from spark_jobs.structures.bodies import Bodies, Place

_TOLD = ("key", "media_type", "content_hash", "source_transaction", "happened_at", "occasion")


class _Last(NamedTuple):
    """The event that was made last, which may go to several topics."""

    place: Place
    content: Content
    value: bytes


class Wrapping:
    """Puts structures into envelopes.

    Args:
        envelope: of the publication; None leaves bodies as they are.

    Attributes:
        columns: the headers that vary from record to record.
    """

    def __init__(self, envelope: StructureEnvelope | None) -> None:
        self._envelope = envelope
        self._last: _Last | None = None
        self.columns = () if envelope is None else envelope.columns

    def values(self, rows: Any, bodies: Bodies) -> list[Any]:
        """The values of planned rows, as buffers or bytes; None for a tombstone."""
        if self._envelope is None or not self._envelope.is_structured:
            return [bodies.at(place) if place else None for place in _places(rows)]
        return [
            self._event(self._envelope, content, place, bodies) if place else None
            for content, place in zip(_contents(rows), _places(rows), strict=True)
        ]

    def headers(self, rows: Any) -> Mapping[str, Any]:
        """The columns of the headers that an envelope adds."""
        if self._envelope is None:
            return {}
        found = [
            self._envelope.headers(content) if place else self._envelope.deletion(content)
            for content, place in zip(_contents(rows), _places(rows), strict=True)
        ]
        return {
            f"{HEADER_PREFIX}{name}": pa.array([values[number] for values in found], pa.binary())
            for number, name in enumerate(self.columns)
        }

    def _event(self, envelope: StructureEnvelope, content: Content, place: Place, bodies: Bodies) -> bytes:
        last = self._last
        if last is None or (last.place, last.content) != (place, content):
            # Two large ones at once would be one too many.
            self._last = last = None
            last = _Last(place, content, envelope.event(content, bodies.at(place).to_pybytes()))
            self._last = last
        return last.value


def _contents(rows: Any) -> Iterator[Content]:
    columns = (rows.column(name).to_pylist() for name in _TOLD)
    for key, media_type, content_hash, transaction, at, otherwise in zip(*columns, strict=True):
        occasion = Occasion(registry_transaction=transaction, modified_at=at, otherwise=otherwise)
        yield Content(key.decode(), media_type, content_hash, occasion)


def _places(rows: Any) -> Iterator[Place | None]:
    for place in zip(*(rows.column(name).to_pylist() for name in Place._fields), strict=True):
        yield Place(*place) if place[0] is not None else None
