"""The rendering of a candidate to its records: topics, key, value and headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import RejectedError
from contexture.events import AttributeName, content_hash, identity_hash, identity_key, parse_json
from contexture.events.rules import Violation
from contexture.publications import NgsiPublication
from contexture.records.cloudevents.change_events import RunReference
from contexture.records.messages.envelopes import Envelope, HeaderValues, envelope
from contexture.records.messages.rendering import Rendered, renderer
from contexture.records.topics import TopicNameError
from contexture.sources.ngsi.entity import ParsedEntity
from contexture.sources.ngsi.notifications.notification import notified_form
from contexture.storage.schemas import HEADER_PREFIX
from spark_jobs.shared.context import StageContext


class LandedRow(msgspec.Struct, frozen=True, gc=False):
    """A landing row; `number` counts within its record batch, times are microseconds since 1970."""

    number: int
    ordinal: int
    operation: str
    path: str
    id: str
    type: str
    body: bytes
    media_type: str
    modified_at: int | None
    received_at: int


def landed_rows(rows: Any, first: int) -> Iterator[LandedRow]:
    """Returns the rows of a record batch, numbered from `first`; an absent path is the root, other fields are empty."""
    columns = [
        rows.column("ordinal"),
        rows.column("operation"),
        *(pc.fill_null(rows.column(name), absent) for name, absent in (("path", "/"), ("id", ""), ("type", ""))),
        pc.fill_null(rows.column("body"), b""),
        pc.fill_null(rows.column("media_type"), ""),
        rows.column("modified_at").cast(pa.int64()),
        rows.column("received_at").cast(pa.int64()),
    ]
    return map(LandedRow, range(first, first + rows.num_rows), *(column.to_pylist() for column in columns))


_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """An event that no rule has refused, before state shows whether the target has it already.

    `part` is its place among the events of its entity. `warnings` are the rules that its entity breaks as warnings.
    `modified_at` is its own time of change in microseconds since 1970, or that of its entity if its own is not known.
    """

    row: LandedRow
    part: int
    parsed: ParsedEntity
    attribute: AttributeName | None
    key: bytes
    identity_hash: bytes
    entity_hash: bytes
    content_hash: bytes
    warnings: str | None
    modified_at: int | None


def whole(row: LandedRow, parsed: ParsedEntity, warnings: str | None) -> Candidate:
    """Builds the one event of an entity."""
    key = identity_key(parsed.identity)
    hashed = identity_hash(key)
    content = content_hash(parsed.entity)
    return Candidate(row, 0, parsed, None, key, hashed, hashed, content, warnings, row.modified_at)


def parts(row: LandedRow, parsed: ParsedEntity, warnings: str | None) -> Iterator[Candidate]:
    """Builds an event for each attribute of an entity."""
    entity_hash = identity_hash(identity_key(parsed.identity))
    for part, (name, value) in enumerate(parsed.attributes.items()):
        attribute = parsed.attribute_name(name)
        key = identity_key(parsed.identity, attribute)
        content, hashed = content_hash({name: value}), identity_hash(key)
        modified_at = _own_time(parsed, name, row.modified_at)
        yield Candidate(row, part, parsed, attribute, key, hashed, entity_hash, content, warnings, modified_at)


def _own_time(parsed: ParsedEntity, attribute: str, of_entity: int | None) -> int | None:
    time = (parsed.attribute_times or {}).get(attribute)
    return of_entity if time is None else (time - _EPOCH) // _MICROSECOND


_READ = ("identity", "content_hash", "modified_at")


def with_tombstone_headers(gone: Any, envelope: Envelope | None) -> Any:
    """Adds the headers of their tombstones to state rows; without an envelope the rows stay as they are."""
    if envelope is None:
        return gone
    rows = zip(*(gone.column(name).to_pylist() for name in _READ), _deletion_references(gone), strict=True)
    headers = [_headers(envelope, *row) for row in rows]
    for place, name in enumerate(envelope.columns):
        values = pa.array([values[place] for values in headers], pa.binary())
        gone = gone.append_column(f"{HEADER_PREFIX}{name}", values)
    return gone


def _headers(envelope: Envelope, identity: bytes, content_hash: bytes, modified_at: Any, place: str) -> HeaderValues:
    occasion = RunReference(modified_at=modified_at, otherwise=place)
    return envelope.deletion(identity, content_hash=content_hash, occasion=occasion)


def _deletion_references(gone: Any) -> list[str]:
    """Returns what identifies each deletion without a time of change: the outbox that sent the content, and the event.

    In one run the same content may be created and deleted several times. Then the deletion was notified, and so is an
    event.
    """
    sequences = gone.column("sequence").to_pylist()
    events = gone.column("event").to_pylist() if "event" in gone.column_names else [""] * len(sequences)
    return [f"{sequence} {event}" for sequence, event in zip(sequences, events, strict=True)]


class RenderedCandidate(NamedTuple):
    """An event as it will be sent to each of its topics; headers as in `StageContext.headers`."""

    topics: tuple[str, ...]
    key: bytes | None
    value: bytes
    headers: HeaderValues


class RecordRenderer:
    """Renders the records of one publication."""

    def __init__(self, context: StageContext) -> None:
        self._render = renderer(NgsiPublication.of(context.publication))
        self._envelope = envelope(context.publication)
        self._maximum_bytes = context.maximum_record_bytes

    def __call__(self, candidate: Candidate) -> RenderedCandidate | Violation:
        """Renders a candidate, or returns the rule because of which it cannot be sent."""
        try:
            rendered = self._add_envelope(candidate, self._render_body(candidate))
        except TopicNameError as error:
            return Violation("topic-length", "error", error.message[:200])
        except RejectedError as error:
            return Violation("body", "error", error.message[:200])
        size = len(rendered.value) + len(rendered.key or b"")
        size += self._envelope.size(rendered.headers) if self._envelope is not None else 0
        if size <= self._maximum_bytes:
            return rendered
        message = f"the record has {size} bytes, more than the {self._maximum_bytes} that Kafka accepts"
        return Violation("size", "error", message)

    def _render_body(self, candidate: Candidate) -> Rendered:
        parsed, row = candidate.parsed, candidate.row
        return self._render(
            parsed.identity,
            parsed.entity,
            candidate.attribute,
            row.received_at // 1000,
            parsed.linked_data,
            _context_element(row),
        )

    def _add_envelope(self, candidate: Candidate, rendered: Rendered) -> RenderedCandidate:
        if self._envelope is None:
            return RenderedCandidate(*rendered, ())
        value, headers = self._envelope.upsert(
            candidate.parsed.identity,
            candidate.attribute,
            rendered.value,
            content_hash=candidate.content_hash,
            occasion=_occasion(candidate),
            key=candidate.key,
        )
        return RenderedCandidate(rendered.topics, rendered.key, value, headers)


def _occasion(candidate: Candidate) -> RunReference:
    if candidate.modified_at is None:
        # The place in the landing identifies it, because an event that may have been sent is never landed again.
        return RunReference(otherwise=f"{candidate.row.received_at} {candidate.row.ordinal}")
    return RunReference(modified_at=_EPOCH + timedelta(microseconds=candidate.modified_at))


def _context_element(row: LandedRow) -> Mapping[str, object] | None:
    """Returns the NGSIv1 element as it was received; None if the row is of another format."""
    if notified_form(row.media_type) != "ngsiv1":
        return None
    element = parse_json(row.body)
    return element if isinstance(element, dict) else None
