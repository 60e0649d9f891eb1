"""The second look: what a walk did not meet although the broker counts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.sources.ngsi.entity_head import Sighting, moment
from contexture.storage.home import Storage
from contexture.storage.schemas import LANDING
from spark_jobs.landed import Landed, Stretch
from spark_jobs.sources.landing_rows import landing_rows

if TYPE_CHECKING:
    from contexture.sources.ngsi.broker import Broker, Page
    from spark_jobs.sources.selection import Walk

_Identity = tuple[str | None, str | None, str | None]


class SecondLook:
    """One more walk through a selection, whole, that lands what the walks before it did not meet.

    It goes along the time first. If that meets fewer than are expected, a sweep by page numbers follows: an entity that
    has no time of creation never matches a condition on it, and one whose time is hidden by an attribute of that name
    may be passed over. Rows that were met before are not landed again.

    Args:
        broker: the source.
        walk: what to look through.
        landed: what was met before.
        expected: how many entities the broker counted just before this look.
        deadline_seconds: for the walk, and again for the sweep.
    """

    def __init__(self, broker: Broker, walk: Walk, landed: Landed, expected: int, deadline_seconds: float) -> None:
        self._broker = broker
        self._walk = walk
        self._landed = landed
        self._expected = expected
        self._deadline_seconds = deadline_seconds
        self._created: dict[_Identity, datetime | None] = {}
        self._versions: Counter[tuple[_Identity, str | None]] = Counter()

    def land(self, storage: Storage, folder: str, name: str) -> None:
        """Lands the rows of entities not met before, if there are any, as a file of this name.

        Raises:
            ContextureError: as `Broker.walk` and `Broker.sweep`.
        """
        first, batches = self._landed.following(self._walk.number), []
        number, bodies, service = self._walk.number, self._walk.bodies, self._broker.service
        for page in self._unseen():
            batches.append(landing_rows(page, service=service, walk=number, first=first, bodies=bodies))
            first += len(page.entities)
        if batches:
            table, path = pa.Table.from_batches(batches, LANDING), storage.path(f"{folder}/{name}")
            pq.write_table(table, path, filesystem=storage.filesystem, compression="zstd")

    def identities(self, newcomers: Stretch | None = None, *, repeats: bool = False) -> int:
        """How many different entities this look alone met; arguments as of `Landed.identities`."""
        most = Counter[_Identity]()
        for (identity, _), count in self._versions.items():
            most[identity] = max(most[identity], count)
        met = {identity for identity, created in self._created.items() if not _is_within(created, newcomers)}
        return sum(most[identity] for identity in met) if repeats else len(met)

    def _unseen(self) -> Iterator[Page]:
        met = self._landed.met(self._walk.number)
        for page in self._pages():
            fresh = []
            for index, sighting in enumerate(page.sightings):
                self._note(sighting)
                if sighting.identity not in met:
                    met.add(sighting.identity)
                    fresh.append(index)
            if fresh:
                yield page.only(tuple(fresh))

    def _pages(self) -> Iterator[Page]:
        query, seconds = self._walk.query, self._deadline_seconds
        yield from self._broker.walk(query, deadline_seconds=seconds)
        if len(self._created) < self._expected:
            yield from self._broker.sweep(query, deadline_seconds=seconds)

    def _note(self, sighting: Sighting) -> None:
        self._created[sighting.identity] = moment(sighting.created)
        self._versions[sighting.identity, sighting.modified] += 1


def _is_within(created: datetime | None, stretch: Stretch | None) -> bool:
    return created is not None and stretch is not None and stretch[0] < created <= stretch[1]
