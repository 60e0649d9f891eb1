"""The read of entities from the source into the landing, as they arrived; later phases do not read the source."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from contexture.errors import ContextureError, DefectError
from contexture.publications import NgsiPublication, Publication
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.broker import Broker
from contexture.sources.ngsi.connect import open_broker
from contexture.sources.ngsi.entity_head import EntityHead, moment
from contexture.sources.ngsi.paging import CLOCK_MARGIN, broker_text
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import LANDING
from spark_jobs.data_sources.ngsi import landing_rows, ngsi_rows
from spark_jobs.data_sources.walks import Walk, WalkSelection, WalkShare, share_walks
from spark_jobs.entities.landing import ScannedLanding, TimeSpan
from spark_jobs.entities.notifications import empty_landing, land_notifications
from spark_jobs.session import to_contexture_error
from spark_jobs.shared.context import store_of
from spark_jobs.shared.parquet_rows import write_rows

if TYPE_CHECKING:
    import httpx
    from pyspark.sql import DataFrame, SparkSession

    from contexture.sources.ngsi.broker import EntityPage

_Identity = tuple[str | None, str | None, str | None]


class RepeatedWalk:
    """One more complete walk through a selection, which lands the entities that the walks before it missed.

    It first reads in order of time. If that returns fewer entities than expected, it reads by page numbers too, because
    an entity without a time of creation never matches a condition on it, and one whose time is hidden by an attribute
    of that name may be skipped. Rows that were seen before are not landed again.

    Args:
        broker: the source.
        walk: the walk to repeat.
        landed: what was landed before.
        expected: the number of entities that the broker counted just before this walk.
        deadline_seconds: for the read by time, and again for the read by page numbers.
    """

    def __init__(
        self, broker: Broker, walk: Walk, landed: ScannedLanding, expected: int, deadline_seconds: float
    ) -> None:
        self._broker = broker
        self._walk = walk
        self._landed = landed
        self._expected = expected
        self._deadline_seconds = deadline_seconds
        self._created: dict[_Identity, datetime | None] = {}
        self._versions: Counter[tuple[_Identity, str | None]] = Counter()

    def read_missed_entities(self, landing: StoredFolder, name: str) -> None:
        """Lands the rows of entities that were not seen before, if there are any, as a file of this name.

        Raises:
            ContextureError: as `Broker.scan` and `Broker.scan_by_id`.
        """
        first, batches = self._landed.next_number(self._walk.number), []
        number, bodies, service = self._walk.number, self._walk.bodies, self._broker.service
        for page in self._missed_pages():
            batches.append(landing_rows(page, service=service, walk=number, first=first, bodies=bodies))
            first += len(page.entities)
        if batches:
            landing.write_part(name, pa.Table.from_batches(batches, LANDING))

    def count_identities(self, newcomers: TimeSpan | None = None, *, repeats: bool = False) -> int:
        """Counts the different entities that this walk alone returned, as `ScannedLanding.count_identities` does."""
        most = Counter[_Identity]()
        for (identity, _), count in self._versions.items():
            most[identity] = max(most[identity], count)
        seen = {identity for identity, created in self._created.items() if not _is_within(created, newcomers)}
        return sum(most[identity] for identity in seen) if repeats else len(seen)

    def _missed_pages(self) -> Iterator[EntityPage]:
        seen = self._landed.seen_identities(self._walk.number)
        for page in self._pages():
            missed = []
            for index, head in enumerate(page.heads):
                self._add(head)
                if head.identity not in seen:
                    seen.add(head.identity)
                    missed.append(index)
            if missed:
                yield page.only(tuple(missed))

    def _pages(self) -> Iterator[EntityPage]:
        query, seconds = self._walk.query, self._deadline_seconds
        yield from self._broker.scan(query, deadline_seconds=seconds)
        if len(self._created) < self._expected:
            yield from self._broker.scan_by_id(query, deadline_seconds=seconds)

    def _add(self, head: EntityHead) -> None:
        self._created[head.identity] = moment(head.created)
        self._versions[head.identity, head.modified] += 1


def _is_within(created: datetime | None, span: TimeSpan | None) -> bool:
    return created is not None and span is not None and span[0] < created <= span[1]


_DATE_RESOLUTION = timedelta(seconds=1)
_REPEATED_WALKS = 2
_log = logging.getLogger(__name__)

Land = Callable[[WalkSelection, Sequence[WalkShare]], None]


@dataclass(frozen=True, slots=True)
class _EntityCounts:
    """The broker at one moment: its clock, and the number of entities that each walk would return, by its number."""

    time: datetime
    counts: Mapping[int, int]

    @property
    def second_after(self) -> datetime:
        """The earliest moment that was certainly later, because the clock is truncated to seconds."""
        return self.time + _DATE_RESOLUTION


def read_entities(
    spark: SparkSession, order: StageOrder, connection: BrokerConnection, watermark: str | None
) -> LandingManifest:
    """Reads the source into the run's landing folder; a run that already has its manifest is not read again.

    Notifications that arrived before the read begins land before it. A run in mode `notifications` lands only those.

    Args:
        spark: the session that reads and writes.
        order: what to read, and where to write it.
        connection: the context broker.
        watermark: the newest known change, as the broker wrote it; None reads everything.

    Raises:
        RetriableError: the broker, its database or the storage is unavailable. No manifest is left.
        ConfigurationError: the broker refuses our credentials or the selection.
    """
    store = store_of(order)
    landing = store.landing(order.run)
    stored = landing.find_manifest()
    if stored is not None:
        return stored
    landing.remove()
    claim = store.inbox.claim()
    if order.mode == "notifications":
        read = empty_landing(order)
    else:

        def land(selection: WalkSelection, shares: Sequence[WalkShare]) -> None:
            _write(ngsi_rows(spark, selection, connection, shares), landing)

        read = read_source(order, connection, watermark, land)
    manifest = land_notifications(store, order, claim, read)
    landing.write_manifest(manifest)
    return manifest


def read_source(
    order: StageOrder,
    connection: BrokerConnection,
    watermark: str | None,
    land: Land,
    *,
    transport: httpx.BaseTransport | None = None,
) -> LandingManifest:
    """Reads the source as it is now; returns what was landed, whether it is complete, and the new watermark.

    Args:
        order: what to read, and where to write it.
        connection: the context broker.
        watermark: as `read_entities` takes it.
        land: reads the shares and writes their rows as Parquet files into the run's landing folder.
        transport: replaces the network for the requests beside the walks of the shares.

    Raises:
        ContextureError: as `read_entities`, and what `land` raises.
    """
    started_at = datetime.now(UTC)
    selection = selection_of(order, watermark)
    walks = selection.walks()
    whole_walks = [walk for walk in walks if walk.query.since is None]
    landing = store_of(order).landing(order.run)
    budget = selection.budget
    with open_broker(connection, selection.service, selection.dialect, budget=budget, transport=transport) as broker:
        # The flavour of the broker is requested once, and not by every task.
        selection = selection.with_flavour(broker.flavour)
        queries = tuple(broker.describe(walk.query) for walk in walks)
        before = _count_entities(broker, walks)
        expected = {walk.number: before.counts[walk.number] for walk in whole_walks}
        shares = share_walks(broker, walks, expected, int(selection.parallel_readers))
        land(selection, shares)
        seconds = float(selection.walk_deadline_seconds)
        short, landed, after = _repeat_short_walks(broker, walks, before, landing, seconds)
        # A run that reads only changes also counts the whole source, because an empty response must not look healthy.
        counted = whole_walks or whole_selection(order.publication).walks()
        counts = after.counts if whole_walks else _count_entities(broker, counted).counts
        source_count = sum(counts[walk.number] for walk in counted)
    is_behind = any(walk.bodies for walk in short)
    return LandingManifest(
        run=order.run,
        mode=order.mode,
        source=connection.address,
        queries=queries,
        watermark_from=watermark,
        # An entity that a walk missed may be older than those that it returned.
        watermark_to=watermark if is_behind else _watermark(watermark, landed.newest_version(before.second_after)),
        rows=landed.rows,
        present=landed.present,
        source_count=source_count,
        complete=bool(whole_walks) and landed.has_identities and not any(walk in whole_walks for walk in short),
        started_at=started_at,
        finished_at=datetime.now(UTC),
        broker_time=after.time,
        files=landed.files,
        digest=landed.digest,
    )


def selection_of(order: StageOrder, watermark: str | None) -> WalkSelection:
    """Returns what to read of the source for an order.

    Raises:
        DefectError: the order reads no source, or the watermark is no time.
    """
    if order.mode == "backfill":
        raise DefectError("a backfill reads no source", next_step="report this", run=order.run)
    whole = whole_selection(order.publication)
    if order.mode == "full" or watermark is None:
        return whole
    source = NgsiPublication.of(order.publication).source
    reached = _time(watermark) - timedelta(seconds=source.overlap_seconds)
    identities = "true" if source.detect_deletions else "false"
    return replace(whole, mode="changes", since=broker_text(reached), identities=identities)


def whole_selection(publication: Publication) -> WalkSelection:
    """Returns the selection that reads everything of a publication's source."""
    source = NgsiPublication.of(publication).source
    return WalkSelection(
        api=source.api,
        flavour=source.flavour,
        context=source.context or "",
        service=source.service,
        service_path=",".join(source.service_path),
        types=",".join(source.types),
        ids=",".join(source.ids),
        id_pattern=source.id_pattern or "",
        type_pattern=source.type_pattern or "",
        q=source.query or "",
        mq=source.metadata_query or "",
        attributes=",".join(source.attributes),
        georel=source.georel or "",
        geometry=source.geometry or "",
        coords=source.coords or "",
        page_size=str(source.page_size),
        walk_deadline_seconds=str(source.walk_deadline_seconds),
        parallel_readers=str(source.parallel_readers),
        pause_milliseconds=str(source.pause_milliseconds),
    )


def _count_entities(broker: Broker, walks: Sequence[Walk], since: _EntityCounts | None = None) -> _EntityCounts:
    """Counts twice, with the probe between, because a broker without its database responds to a count with 0 and 200.

    Args:
        broker: the source.
        walks: what to count.
        since: excludes from counts of changes what was modified after this; a walk begun later has to return the rest.
    """
    until = None if since is None else broker_text(since.time)
    queries = {walk.number: replace(walk.query, until=until if walk.query.since else None) for walk in walks}
    once = {number: broker.count(query) for number, query in queries.items()}
    time = broker.probe()
    return _EntityCounts(time, {number: max(once[number], broker.count(query)) for number, query in queries.items()})


def _write(rows: DataFrame, landing: StoredFolder) -> None:
    try:
        write_rows(rows, landing, LANDING)
    except ContextureError:
        raise
    except Exception as error:
        # Spark wraps what a task raised into its own text, several layers deep; only our sentence is useful.
        raise to_contexture_error(error) from None


def _repeat_short_walks(
    broker: Broker, walks: Sequence[Walk], before: _EntityCounts, landing: StoredFolder, deadline_seconds: float
) -> tuple[list[Walk], ScannedLanding, _EntityCounts]:
    """Repeats walks that returned fewer entities than the broker counts, twice if necessary.

    Each walk has to return by itself what was counted just before it and just after it. Otherwise, entities that were
    seen and then deleted would compensate for others that were missed.

    Returns:
        The walks that are still short, so that entities may be missing; what is landed now; and the last counts.
    """
    after, landed = _count_entities(broker, walks, before), ScannedLanding.scan(landing)
    short = [
        walk for walk in walks if _is_short(broker, walk, partial(landed.count_identities, walk.number), before, after)
    ]
    for number in range(_REPEATED_WALKS):
        if not short:
            break
        repeated = dict[int, RepeatedWalk]()
        for walk in short:
            repeated[walk.number] = RepeatedWalk(broker, walk, landed, after.counts[walk.number], deadline_seconds)
            repeated[walk.number].read_missed_entities(landing, f"part-unseen-{walk.number:05}-{number}.parquet")
        before, after, landed = after, _count_entities(broker, walks, after), ScannedLanding.scan(landing)
        short = [
            walk for walk in short if _is_short(broker, walk, repeated[walk.number].count_identities, before, after)
        ]
    return short, landed, after


def _is_short(
    broker: Broker, walk: Walk, count_seen: Callable[..., int], before: _EntityCounts, after: _EntityCounts
) -> bool:
    """Returns whether a walk returned fewer entities than were counted before it or after it.

    Entities that were created during the walk do not compensate for missed ones.

    Args:
        broker: the source.
        walk: the walk.
        count_seen: counts the seen entities; takes the time span of creation to exclude, and `repeats`.
        before: counts before the walk.
        after: counts after the walk.
    """
    repeats = broker.counts_types_apart
    first, last = before.counts[walk.number], after.counts[walk.number]
    newcomers = (before.second_after, after.time + CLOCK_MARGIN)
    everything = count_seen(repeats=repeats)
    is_short = count_seen(newcomers, repeats=repeats) < first
    # The count includes changes made after the walk began, if the broker cannot count up to a time.
    if walk.query.since is None or broker.counts_stretches:
        is_short = is_short or everything < last
    if is_short:
        _log.warning(
            "the walk of %s returned %d entities; %d were counted before it, %d after it",
            walk.query.service_path,
            everything,
            first,
            last,
        )
    return is_short


def _watermark(known: str | None, newest: str | None) -> str | None:
    """Returns the later of both.

    `newest` is not later than the start of the read. An entity that was read early and changed while the rest was read
    has its change before the newest one seen, and must not fall behind the watermark.
    """
    if known is None or newest is None:
        return known or newest
    return max(known, newest, key=_time)


def _time(watermark: str) -> datetime:
    time = moment(watermark)
    if time is None:
        raise DefectError(f"the watermark {watermark!r} is not a time", next_step="run the publication in mode full")
    return time
