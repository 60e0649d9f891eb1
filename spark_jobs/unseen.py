"""The second look: what a walk did not meet although the broker counts it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.outbox.schemas import LANDING
from contexture.outbox.storage import Storage
from spark_jobs.landed import Landed
from spark_jobs.sources.landing_rows import landing_rows

if TYPE_CHECKING:
    from contexture.ngsi.broker import Broker, Page
    from spark_jobs.sources.selection import Walk


def land_unseen(
    broker: Broker, walk: Walk, landed: Landed, storage: Storage, folder: str, deadline_seconds: float
) -> int:
    """Sweeps a walk's selection by page numbers and lands the rows of entities that the walk did not meet.

    An entity that has no time of creation never matches a condition on it, and one whose time is hidden by an attribute
    of that name may be passed over: both are found here. Rows that were met are not landed again.

    Returns:
        How many rows were landed.

    Raises:
        ContextureError: as `Broker.sweep`.
    """
    first, batches = landed.following(walk.number), []
    for page in _unseen(broker, walk, landed, deadline_seconds):
        batches.append(landing_rows(page, service=broker.service, walk=walk.number, first=first, bodies=walk.bodies))
        first += len(page.entities)
    if not batches:
        return 0
    table = pa.Table.from_batches(batches, LANDING)
    path = storage.path(f"{folder}/part-unseen-{walk.number:05}.parquet")
    pq.write_table(table, path, filesystem=storage.filesystem, compression="zstd")
    return int(table.num_rows)


def _unseen(broker: Broker, walk: Walk, landed: Landed, deadline_seconds: float) -> Iterator[Page]:
    met = landed.met(walk.number)
    for page in broker.sweep(walk.query, deadline_seconds=deadline_seconds):
        fresh = []
        for index, sighting in enumerate(page.sightings):
            if sighting.identity not in met:
                met.add(sighting.identity)
                fresh.append(index)
        if fresh:
            yield page.only(tuple(fresh))
