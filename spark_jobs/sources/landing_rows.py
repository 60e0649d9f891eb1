"""Pages of a broker as rows of landing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from contexture.sources.ngsi.entity_head import moment
from contexture.storage.schemas import LANDING

if TYPE_CHECKING:
    from contexture.sources.ngsi.broker import Page

WALK_BITS = 36
"""Rows of one walk that an ordinal has room for: 2 to the power of this."""

SLICE_BITS = 30
"""Rows of one slice of a walk, likewise: so there is room for 64 slices."""

MEDIA_TYPE = "application/json"


def landing_rows(page: Page, *, service: str, walk: int, first: int, bodies: bool) -> pa.RecordBatch:
    """One page as a record batch of the landing schema.

    Args:
        walk: the number of the walk.
        first: the number of the first row within the walk.
        bodies: False gives sightings: rows with operation `present` and no body.
    """
    rows = len(page.entities)
    start = (walk << WALK_BITS) + first
    columns = {
        "ordinal": range(start, start + rows),
        "operation": ["upsert" if bodies else "present"] * rows,
        "scope": [service] * rows,
        "path": [sighting.path for sighting in page.sightings],
        "id": [sighting.id for sighting in page.sightings],
        "type": [sighting.type for sighting in page.sightings],
        "version": [sighting.modified for sighting in page.sightings],
        "body": page.entities if bodies else [None] * rows,
        "media_type": [MEDIA_TYPE] * rows,
        "created_at": [moment(sighting.created) for sighting in page.sightings],
        "modified_at": [moment(sighting.modified) for sighting in page.sightings],
        "source_transaction": [None] * rows,
        "received_at": [page.received_at] * rows,
    }
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in LANDING], schema=LANDING)
