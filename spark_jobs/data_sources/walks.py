"""The distribution of a read over tasks: large walks are cut into slices, and all are shared among the readers.

One walk queries all types of a selection, and only times cut it into slices. So the rows have the order of one walk for
any number of readers, and a type that appears during the read is read too.
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
    """A walk, or one slice of a walk.

    Attributes:
        number: its position among the walks of the read, which is the upper part of the ordinals of its rows.
        bodies: False reads only the identities of entities.
        slice: its position among the slices of the walk, which is the next part of the ordinals.
    """

    number: int
    query: EntityQuery
    bodies: bool
    slice: int = 0


@dataclass(frozen=True)
class WalkShare(InputPartition):
    """The walks that one task reads in order."""

    walks: tuple[Walk, ...]


@dataclass(frozen=True)
class WalkSelection:
    """The options of `spark.read.format("ngsi")`, in which commas separate the items of a list.

    Attributes:
        url: the broker's address, if it requires no secret; otherwise the connection comes from the environment.
        api: ngsiv2, or ngsi-ld.
        flavour: with ngsi-ld, the product: orion-ld, scorpio, stellio, or auto to detect it.
        context: with ngsi-ld, the URL of the @context that defines the names.
        service: the tenant; the default tenant if empty.
        service_path: paths, each read by a walk of its own; with ngsi-ld the scopes that one walk selects.
        mode: full reads by time of creation, changes by time of modification, from `since` on.
        identities: adds walks that read only identities (rows with operation `present` and no body).
        parallel_readers: how many tasks read in parallel; each has at most one open request.
        pause_milliseconds: how long each task waits between two pages.
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
            raise _option_error("api", self.api, "ngsiv2 or ngsi-ld")
        if self.mode not in {"full", "changes"}:
            raise _option_error("mode", self.mode, "full or changes")
        if self.identities not in {"true", "false"}:
            raise _option_error("identities", self.identities, "true or false")
        if self.mode == "changes" and not self.since:
            raise _option_error("since", self.since, "the time to start from, as the broker writes times")
        for name in ("page_size", "walk_deadline_seconds", "parallel_readers", "pause_milliseconds"):
            if not getattr(self, name).isdecimal():
                raise _option_error(name, getattr(self, name), "a whole number")
        if not 1 <= int(self.parallel_readers) <= MOST_READERS:
            raise _option_error("parallel_readers", self.parallel_readers, f"a whole number from 1 to {MOST_READERS}")

    @classmethod
    def of(cls, options: Mapping[str, str]) -> WalkSelection:
        """Returns the selection that the options of a read specify.

        Raises:
            ConfigurationError: an option is unknown, or has an invalid value.
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
        """Returns the options of this selection, which `of` reads back."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}

    @property
    def budget(self) -> RetryBudget:
        """The pause between requests, and the limits of retries."""
        return RetryBudget(pause_seconds=int(self.pause_milliseconds) / 1000)

    @property
    def dialect(self) -> Dialect:
        """The API, flavour and context of the broker."""
        return Dialect("ngsi-ld" if self.api == "ngsi-ld" else "ngsiv2", flavour_named(self.flavour), self.context)

    def with_flavour(self, flavour: str) -> WalkSelection:
        """Returns the same selection for a broker whose flavour is known."""
        return replace(self, flavour=flavour) if self.api == "ngsi-ld" else self

    def walks(self) -> tuple[Walk, ...]:
        """Returns the walks of the read, in the order of their rows.

        Raises:
            ConfigurationError: no broker accepts a part of the selection.
        """
        kinds = [(self.mode == "changes", True), *([(False, False)] if self.identities == "true" else [])]
        paths = _parts(self.service_path)
        # Separate walks would read an entity more than once, because it may have several scopes.
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


def _option_error(option: str, value: str, expected: str) -> ConfigurationError:
    return ConfigurationError(
        f"the ngsi source cannot use {value!r} for {option}", next_step=f"set the option {option} to {expected}"
    )


_log = logging.getLogger(__name__)


class SourceCounts(Protocol):
    """A broker that is queried for counts and times before a read is distributed."""

    def count(self, query: EntityQuery) -> int:
        """Returns how many entities a query selects."""

    def time_at(self, query: EntityQuery, place: int) -> str | None:
        """Returns the time of the entity at a place of a walk's order."""


@dataclass(slots=True)
class _Load:
    """A share under construction, with the number of entities that it is expected to read."""

    entities: int = 0
    walks: list[Walk] = field(default_factory=list)


def count_walks(broker: SourceCounts, walks: Sequence[Walk]) -> dict[int, int]:
    """Returns how many entities each walk without a start time will read, by its number."""
    return {walk.number: broker.count(walk.query) for walk in walks if walk.query.since is None}


def share_walks(
    broker: SourceCounts, walks: Sequence[Walk], counts: Mapping[int, int], readers: int
) -> tuple[WalkShare, ...]:
    """Distributes walks over at most as many shares as there are readers.

    Args:
        broker: is queried for the times at which to cut.
        walks: all walks of the read.
        counts: about how many entities walks will read, by their number; a walk without a count is taken to be short.
        readers: how many tasks may read in parallel.

    Raises:
        ConfigurationError: the broker refuses our credentials or the query.
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
    """Returns the slices of a walk, none much above a fair share, each with the number of entities it should read."""
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
    """Returns the times at these places, up to the first that the broker cannot show.

    A broker may fail at a place far down an order without an index, though it can read the walk itself.
    """
    try:
        for place in places:
            yield broker.time_at(query, place)
    except RetriableError as error:
        _log.warning(
            "%s is read by fewer readers: no entity far down its order was shown (%s)", query.service_path, error
        )
