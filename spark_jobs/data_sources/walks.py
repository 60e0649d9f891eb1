"""Which task reads what: walks cut into slices where that is worth it, and distributed among the readers.

All types of a selection are asked for together, and a walk is cut along its times alone: so the rows have the order of
one walk whatever the number of readers, and a type that appears meanwhile is met too.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Protocol

from pyspark.sql.datasource import InputPartition

from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi.connect import Dialect, flavour_named
from contexture.sources.ngsi.paging import slice_boundaries, slice_count, sliced
from contexture.sources.ngsi.query import MAX_PAGE_SIZE, EntityQuery

WalkMode = Literal["full", "changes"]
MOST_READERS = 16


@dataclass(frozen=True)
class Walk:
    """One walk, or one slice of it.

    Attributes:
        number: its place among the walks of the read; the upper part of the ordinals of its rows.
        bodies: False gives rows that only say who is there.
        slice: its place among the slices of the walk; the next part of the ordinals.
    """

    number: int
    query: EntityQuery
    bodies: bool
    slice: int = 0


@dataclass(frozen=True)
class WalkShare(InputPartition):
    """What one task reads, one walk after the other."""

    walks: tuple[Walk, ...]


@dataclass(frozen=True)
class Selection:
    """The options of `spark.read.format("ngsi")`; lists are separated by commas.

    Attributes:
        url: the broker's address, when it needs no secret; else the connection comes by the environment.
        api: ngsiv2, or ngsi-ld.
        flavour: with ngsi-ld, whose habits the broker has: orion-ld, scorpio, stellio, or auto to ask it.
        context: with ngsi-ld, URL of the @context that names are written by.
        service: the tenant; the default one when empty.
        service_path: one walk for each; with ngsi-ld the scopes that one walk selects.
        mode: full goes along the time of creation, changes along that of modification, from `since` on.
        identities: adds walks that only tell who is there (rows with operation `present` and no body).
        parallel_readers: how many tasks read at once; each has one request under way at most.
        pause_milliseconds: how long each of them waits between two pages.
    """

    url: str = ""
    api: str = "ngsiv2"
    flavour: str = "auto"
    context: str = ""
    service: str = ""
    service_path: str = "/#"
    types: str = ""
    ids: str = ""
    id_pattern: str = ""
    type_pattern: str = ""
    q: str = ""
    mq: str = ""
    attributes: str = ""
    georel: str = ""
    geometry: str = ""
    coords: str = ""
    mode: str = "full"
    since: str = ""
    identities: str = "false"
    page_size: str = str(MAX_PAGE_SIZE)
    walk_deadline_seconds: str = "3600"
    parallel_readers: str = "2"
    pause_milliseconds: str = "0"

    def __post_init__(self) -> None:
        if self.api not in {"ngsiv2", "ngsi-ld"}:
            raise _mistake("api", self.api, "ngsiv2 or ngsi-ld")
        if self.mode not in {"full", "changes"}:
            raise _mistake("mode", self.mode, "full or changes")
        for name in ("identities",):
            if getattr(self, name) not in {"true", "false"}:
                raise _mistake(name, getattr(self, name), "true or false")
        if self.mode == "changes" and not self.since:
            raise _mistake("since", self.since, "the time to start from, as the broker writes times")
        for name in ("page_size", "walk_deadline_seconds", "parallel_readers", "pause_milliseconds"):
            if not getattr(self, name).isdecimal():
                raise _mistake(name, getattr(self, name), "a whole number")
        if not 1 <= int(self.parallel_readers) <= MOST_READERS:
            raise _mistake("parallel_readers", self.parallel_readers, f"a whole number from 1 to {MOST_READERS}")

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Selection:
        """The selection that the options of a read say.

        Raises:
            ConfigurationError: an option isn't known, or has a value that can't be used.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name.lower() not in known:
                near = difflib.get_close_matches(name.lower(), known, n=1)
                raise ConfigurationError(
                    f"the ngsi source has no option {name!r}",
                    next_step=f"use {near[0]}" if near else f"use one of {', '.join(known)}",
                )
        return cls(**{name.lower(): value for name, value in options.items()})

    def options(self) -> dict[str, str]:
        """The options that say this selection; `of` reads them back."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}

    @property
    def budget(self) -> RetryBudget:
        """How its readers treat the broker."""
        return RetryBudget(pause_seconds=int(self.pause_milliseconds) / 1000)

    @property
    def dialect(self) -> Dialect:
        """How the broker is spoken to."""
        return Dialect("ngsi-ld" if self.api == "ngsi-ld" else "ngsiv2", flavour_named(self.flavour), self.context)

    def spoken_to(self, flavour: str) -> Selection:
        """The same selection of a broker whose flavour is known."""
        return replace(self, flavour=flavour) if self.api == "ngsi-ld" else self

    def walks(self) -> tuple[Walk, ...]:
        """The walks of the read, in the order of their rows.

        Raises:
            ConfigurationError: a part of the selection is none that a broker takes.
        """
        kinds = [(self.mode == "changes", True), *([(False, False)] if self.identities == "true" else [])]
        paths = _parts(self.service_path)
        # An entity may have several scopes, so that walks apart would meet it more than once.
        if self.api == "ngsi-ld":
            paths = (",".join(paths),)
        planned = [(path, *kind) for path in paths for kind in kinds]
        return tuple(
            Walk(number, self._query(path, changes=changes, bodies=bodies), bodies)
            for number, (path, changes, bodies) in enumerate(planned)
        )

    def _query(self, service_path: str, *, changes: bool, bodies: bool) -> EntityQuery:
        return EntityQuery(
            service_path=service_path,
            types=_parts(self.types),
            ids=_parts(self.ids),
            id_pattern=self.id_pattern or None,
            type_pattern=self.type_pattern or None,
            q=self.q or None,
            mq=self.mq or None,
            attributes=_parts(self.attributes),
            georel=self.georel or None,
            geometry=self.geometry or None,
            coords=self.coords or None,
            field="dateModified" if changes else "dateCreated",
            since=self.since if changes else None,
            page_size=int(self.page_size),
            identities_only=not bodies,
        )


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _mistake(option: str, value: str, expected: str) -> ConfigurationError:
    return ConfigurationError(
        f"the ngsi source can not use {value!r} for {option}", next_step=f"give the option {option} {expected}"
    )


_log = logging.getLogger(__name__)


class SourceCounts(Protocol):
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


def counted(broker: SourceCounts, walks: Sequence[Walk]) -> dict[int, int]:
    """How many entities each walk will meet that starts at the first one, by its number."""
    return {walk.number: broker.count(walk.query) for walk in walks if walk.query.since is None}


def shared(
    broker: SourceCounts, walks: Sequence[Walk], counts: Mapping[int, int], readers: int
) -> tuple[WalkShare, ...]:
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
    return tuple(WalkShare(tuple(sorted(load.walks, key=lambda walk: (walk.number, walk.slice)))) for load in loads)


def _pieces(broker: SourceCounts, walk: Walk, entities: int, fair: int, readers: int) -> Iterator[tuple[Walk, int]]:
    """The slices of a walk, none much above what is fair, each with the entities it is expected to meet."""
    wanted = min(readers, -(-entities // fair)) if fair else 1
    slices = slice_count(entities, walk.query.page_size, wanted)
    queries = (
        sliced(walk.query, _cuts(broker, walk.query, slice_boundaries(entities, slices)))
        if slices > 1
        else (walk.query,)
    )
    for number, query in enumerate(queries):
        yield replace(walk, query=query, slice=number), entities // len(queries)


def _cuts(broker: SourceCounts, query: EntityQuery, places: Sequence[int]) -> Iterator[str | None]:
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
