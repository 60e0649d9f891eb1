"""From a candidate to the records it will be: topics, key, value and headers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from contexture.errors import RejectedError
from contexture.events import parse_json
from contexture.records.cloudevents.change_events import Occasion
from contexture.records.messages.envelopes import HeaderValues, envelope
from contexture.records.messages.rendering import Rendered, renderer
from contexture.records.topics import TopicNameError
from contexture.sources.ngsi.notifications import notified_form
from contexture.sources.ngsi.rules import Violation
from spark_jobs.preparation.candidates import Candidate
from spark_jobs.preparation.landed_rows import LandedRow
from spark_jobs.preparation.settings import Preparation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Made(NamedTuple):
    """One event as it will be sent: the same to each of its topics; headers as in `Preparation.headers`."""

    topics: tuple[str, ...]
    key: bytes | None
    value: bytes
    headers: HeaderValues


class RecordMaker:
    """Makes the records of one publication."""

    def __init__(self, preparation: Preparation) -> None:
        self._render = renderer(preparation.publication)
        self._envelope = envelope(preparation.publication)
        self._maximum_bytes = preparation.maximum_record_bytes

    def __call__(self, candidate: Candidate) -> Made | Violation:
        """The records of a candidate, or the rule by which it can't be sent."""
        try:
            made = self._enveloped(candidate, self._rendered(candidate))
        except TopicNameError as error:
            return Violation("topic-length", "error", error.message[:200])
        except RejectedError as error:
            return Violation("body", "error", error.message[:200])
        size = len(made.value) + len(made.key or b"")
        size += self._envelope.size(made.headers) if self._envelope is not None else 0
        if size <= self._maximum_bytes:
            return made
        message = f"the record has {size} bytes, more than the {self._maximum_bytes} that Kafka takes"
        return Violation("size", "error", message)

    def _rendered(self, candidate: Candidate) -> Rendered:
        parsed, row = candidate.parsed, candidate.row
        return self._render(
            parsed.identity,
            parsed.entity,
            candidate.attribute,
            row.received_at // 1000,
            parsed.linked_data,
            _context_element(row),
        )

    def _enveloped(self, candidate: Candidate, rendered: Rendered) -> Made:
        if self._envelope is None:
            return Made(*rendered, ())
        value, headers = self._envelope.upsert(
            candidate.parsed.identity,
            candidate.attribute,
            rendered.value,
            content_hash=candidate.content_hash,
            occasion=_occasion(candidate),
            key=candidate.key,
        )
        return Made(rendered.topics, rendered.key, value, headers)


def _occasion(candidate: Candidate) -> Occasion:
    if candidate.modified_at is None:
        # Its place in the landing: what may have been sent is never landed again.
        return Occasion(otherwise=f"{candidate.row.received_at} {candidate.row.ordinal}")
    return Occasion(modified_at=_EPOCH + timedelta(microseconds=candidate.modified_at))


def _context_element(row: LandedRow) -> Mapping[str, object] | None:
    """The NGSIv1 element as it was received, where the row came as one."""
    if notified_form(row.media_type) != "ngsiv1":
        return None
    element = parse_json(row.body)
    return element if isinstance(element, dict) else None
