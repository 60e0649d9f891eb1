"""Which task reads what: walks cut into slices where that is worth it, and shared out among the readers.

All types of a selection are asked for together, and a walk is cut along its times alone: so the rows have the order of
one walk whatever the number of readers, and a type that appears meanwhile is met too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from contexture.errors import RetriableError
from contexture.sources.ngsi.paging import cut_places, slice_count, sliced
from contexture.sources.ngsi.query import EntityQuery
from spark_jobs.sources.selection import Share, Walk

_log = logging.getLogger(__name__)


class Counts(Protocol):
    """What is asked of a broker before a read is shared out."""

    def count(self, query: EntityQuery) -> int:
        """How many entities a query selects."""

    def time_at(self, query: EntityQuery, place: int) -> str | None:
        """The time that the entity at a place of a walk's order shows."""


@dataclass(slots=True)
class _Load:
    """A share under construction, with the entities it is expected to meet."""

    entities: int = 0
    walks: list[Walk] = field(default_factory=list)


def counted(broker: Counts, walks: Sequence[Walk]) -> dict[int, int]:
    """How many entities each walk will meet that starts at the first one, by its number."""
    return {walk.number: broker.count(walk.query) for walk in walks if walk.query.since is None}


def shared(broker: Counts, walks: Sequence[Walk], counts: Mapping[int, int], readers: int) -> tuple[Share, ...]:
    """What each reader reads; no more shares than readers.

    Args:
        broker: asked for the times at which to cut.
        walks: all that is to be read.
        counts: about how many entities walks will meet, by their number; those without are taken to be short.
        readers: how many tasks may read at once.

    Raises:
        ConfigurationError: the broker refuses us or the query.
    """
    fair = -(-sum(counts.values()) // readers)
    pieces = [piece for walk in walks for piece in _pieces(broker, walk, counts.get(walk.number, 0), fair, readers)]
    loads = [_Load() for _ in range(min(readers, len(pieces)))]
    for piece, entities in sorted(pieces, key=lambda found: -found[1]):
        load = min(loads, key=lambda one: (one.entities, len(one.walks)))
        load.entities += entities
        load.walks.append(piece)
    return tuple(Share(tuple(sorted(load.walks, key=lambda walk: (walk.number, walk.slice)))) for load in loads)


def _pieces(broker: Counts, walk: Walk, entities: int, fair: int, readers: int) -> Iterator[tuple[Walk, int]]:
    """The slices of a walk, none much above what is fair, each with the entities it is expected to meet."""
    wanted = min(readers, -(-entities // fair)) if fair else 1
    slices = slice_count(entities, walk.query.page_size, wanted)
    queries = (
        sliced(walk.query, _cuts(broker, walk.query, cut_places(entities, slices))) if slices > 1 else (walk.query,)
    )
    for number, query in enumerate(queries):
        yield replace(walk, query=query, slice=number), entities // len(queries)


def _cuts(broker: Counts, query: EntityQuery, places: Sequence[int]) -> Iterator[str | None]:
    """The times at these places, as far as the broker can tell them.

    A place far down an order without an index may be beyond a broker that has no trouble with the walk itself.
    """
    try:
        for place in places:
            yield broker.time_at(query, place)
    except RetriableError as error:
        _log.warning(
            "%s is read by fewer readers: no entity far down its order was shown (%s)", query.service_path, error
        )
