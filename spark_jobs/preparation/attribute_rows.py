"""A row for each attribute of what was accepted, for expectations `on: attributes`; made only where there are such."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from contexture.events import AttributeName
from contexture.publications import Publication
from spark_jobs.preparation.candidates import Candidate
from spark_jobs.preparation.judged import type_and_number
from spark_jobs.preparation.settings import event_number

ATTRIBUTES_FOLDER = "attributes"
"""Where they lie, below the folder of a preparation."""

LONGEST_TEXT = 1000
"""Of a value; what a run is judged by should not be as large as the run."""

ATTRIBUTE_ROWS = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("identity", pa.string(), nullable=False),
        pa.field("service_path", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("dataset_id", pa.string()),
        pa.field("attribute_type", pa.string()),
        pa.field("number", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("modified_at", pa.timestamp("us", tz="UTC")),
        pa.field("received_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
"""`quality_combinations.ATTRIBUTE_COLUMNS` without the service, which is the same for all."""


def judges_attributes(publication: Publication) -> bool:
    """Whether something is expected of attributes."""
    return any(each.on == "attributes" for each in publication.quality.expectations)


def attribute_rows(candidate: Candidate) -> Iterator[tuple[object, ...]]:
    """The attributes of an event: all of an entity, or the one that the event is."""
    parsed, row = candidate.parsed, candidate.row
    identity, times = parsed.identity, (candidate.modified_at, row.received_at)
    for key, attribute in parsed.attributes.items():
        name = parsed.attribute_name(key)
        if candidate.attribute in {None, name}:
            who = (candidate.key.decode(), identity.service_path, identity.id, identity.type)
            event = event_number(row.ordinal, candidate.part)
            yield (event, *who, *_described(name, attribute), *times)


def _described(name: AttributeName, attribute: object) -> tuple[str | float | None, ...]:
    kind, number = type_and_number(attribute)
    return name.name, name.dataset_id, kind, number, _text(attribute)


def _text(attribute: object) -> str | None:
    value: Any = attribute.get("value") if isinstance(attribute, dict) else None
    return value[:LONGEST_TEXT] if isinstance(value, str) else None
