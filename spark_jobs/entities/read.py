"""Reading entities: what the source holds goes to landing as it arrived; nothing reads the source again."""

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
from spark_jobs.entities.landing import HistoryInterval, Landed
from spark_jobs.entities.notifications import land_notifications, nothing_read
from spark_jobs.session import to_contexture_error
from spark_jobs.shared.context import store_of
from spark_jobs.shared.parquet_rows import write_rows

if TYPE_CHECKING:
    import httpx
    from pyspark.sql import DataFrame, SparkSession

    from contexture.sources.ngsi.broker import EntityPage

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

    def land(self, landing: StoredFolder, name: str) -> None:
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
            landing.write_part(name, pa.Table.from_batches(batches, LANDING))

    def identities(self, newcomers: HistoryInterval | None = None, *, repeats: bool = False) -> int:
        """How many different entities this look alone met; arguments as of `Landed.identities`."""
        most = Counter[_Identity]()
        for (identity, _), count in self._versions.items():
            most[identity] = max(most[identity], count)
        met = {identity for identity, created in self._created.items() if not _is_within(created, newcomers)}
        return sum(most[identity] for identity in met) if repeats else len(met)

    def _unseen(self) -> Iterator[EntityPage]:
        met = self._landed.met(self._walk.number)
        for page in self._pages():
            fresh = []
            for index, head in enumerate(page.heads):
                self._note(head)
                if head.identity not in met:
                    met.add(head.identity)
                    fresh.append(index)
            if fresh:
                yield page.only(tuple(fresh))

    def _pages(self) -> Iterator[EntityPage]:
        query, seconds = self._walk.query, self._deadline_seconds
        yield from self._broker.scan(query, deadline_seconds=seconds)
        if len(self._created) < self._expected:
            yield from self._broker.scan_by_id(query, deadline_seconds=seconds)

    def _note(self, head: EntityHead) -> None:
        self._created[head.identity] = moment(head.created)
        self._versions[head.identity, head.modified] += 1


def _is_within(created: datetime | None, stretch: HistoryInterval | None) -> bool:
    return created is not None and stretch is not None and stretch[0] < created <= stretch[1]


_DATE_RESOLUTION = timedelta(seconds=1)
_SECOND_LOOKS = 2
_log = logging.getLogger(__name__)

Land = Callable[[WalkSelection, Sequence[WalkShare]], None]


@dataclass(frozen=True, slots=True)
class _Health:
    """The broker at one moment: its clock, and how many entities each walk would meet, by its number."""

    time: datetime
    counts: Mapping[int, int]

    @property
    def second_after(self) -> datetime:
        """The earliest moment that was surely not yet: the clock is cut to seconds."""
        return self.time + _DATE_RESOLUTION


def read_entities(
    spark: SparkSession, order: StageOrder, connection: BrokerConnection, watermark: str | None
) -> LandingManifest:
    """Reads the source into the run's landing folder; a run that has its manifest already is not read again.

    What was notified before the read begins lands in front of it; a run in mode `notifications` lands nothing else.

    Args:
        spark: the session that reads and writes.
        order: what to read, and where to put it.
        connection: the context broker.
        watermark: the newest change that is known, as the broker wrote it; None reads everything.

    Raises:
        RetriableError: the broker, its database or the storage is away or ill. No manifest is left.
        ConfigurationError: the broker refuses us or the selection.
    """
    store = store_of(order)
    landing = store.landing(order.run)
    stored = landing.find_manifest()
    if stored is not None:
        return stored
    landing.remove()
    claim = store.inbox.claim()
    if order.mode == "notifications":
        read = nothing_read(order)
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
    """Reads the source as it is now; says what was landed, whether it is complete, and the new watermark.

    Args:
        order: what to read, and where to put it.
        connection: the context broker.
        watermark: as `read_entities` takes it.
        land: reads the shares and writes their rows as Parquet files into the run's landing folder.
        transport: replaces the network for the questions beside the walks of the shares.

    Raises:
        ContextureError: as `read_entities`, and what `land` raises.
    """
    started_at = datetime.now(UTC)
    selection = selection_of(order, watermark)
    walks = selection.walks()
    telling = [walk for walk in walks if walk.query.since is None]
    landing = store_of(order).landing(order.run)
    budget = selection.budget
    with open_broker(connection, selection.service, selection.dialect, budget=budget, transport=transport) as broker:
        # Anyone who is asked about its flavour is asked once, not by every task.
        selection = selection.with_flavour(broker.flavour)
        queries = tuple(broker.describe(walk.query) for walk in walks)
        before = _health(broker, walks)
        expected = {walk.number: before.counts[walk.number] for walk in telling}
        shares = share_walks(broker, walks, expected, int(selection.parallel_readers))
        land(selection, shares)
        seconds = float(selection.walk_deadline_seconds)
        short, landed, after = _look_again(broker, walks, before, landing, seconds)
        # Also a run that reads changes alone knows how much the source holds: an empty answer must not look healthy.
        counted = telling or whole_selection(order.publication).walks()
        counts = after.counts if telling else _health(broker, counted).counts
        source_count = sum(counts[walk.number] for walk in counted)
    is_behind = any(walk.bodies for walk in short)
    return LandingManifest(
        run=order.run,
        mode=order.mode,
        source=connection.address,
        queries=queries,
        watermark_from=watermark,
        # What a walk did not meet may be older than what it met.
        watermark_to=watermark if is_behind else _watermark(watermark, landed.newest(before.second_after)),
        rows=landed.rows,
        present=landed.present,
        source_count=source_count,
        complete=bool(telling) and landed.identities_known and not any(walk in telling for walk in short),
        started_at=started_at,
        finished_at=datetime.now(UTC),
        broker_time=after.time,
        files=landed.files,
        digest=landed.digest,
    )


def selection_of(order: StageOrder, watermark: str | None) -> WalkSelection:
    """What to ask the source for.

    Raises:
        DefectError: the order is one that reads no source, or the watermark is no time.
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
    """What to ask the source for to read everything."""
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


def _health(broker: Broker, walks: Sequence[Walk], since: _Health | None = None) -> _Health:
    """Counts twice, with the probe between: a count from a broker without its database says 0 and 200.

    Args:
        broker: the source.
        walks: what to count.
        since: counts of changes leave out what was modified after this; what a walk begun later had to meet remains.
    """
    until = None if since is None else broker_text(since.time)
    queries = {walk.number: replace(walk.query, until=until if walk.query.since else None) for walk in walks}
    once = {number: broker.count(query) for number, query in queries.items()}
    time = broker.probe()
    return _Health(time, {number: max(once[number], broker.count(query)) for number, query in queries.items()})


def _write(rows: DataFrame, landing: StoredFolder) -> None:
    try:
        write_rows(rows, landing, LANDING)
    except ContextureError:
        raise
    except Exception as error:
        # Spark wraps what a task raised into its own text, several layers deep; only our sentence is of use.
        raise to_contexture_error(error) from None


def _look_again(
    broker: Broker, walks: Sequence[Walk], before: _Health, landing: StoredFolder, deadline_seconds: float
) -> tuple[list[Walk], Landed, _Health]:
    """Walks again, twice if need be, what met fewer entities than the broker counts.

    Returns:
        The walks that are still short: what they did not meet may be there. What is landed now, and the last counts.

    Each look has to meet, for itself, what was counted just before it and just after it: entities that were met and are
    deleted by now would make up for others that were not.
    """
    after, landed = _health(broker, walks, before), Landed.look(landing)
    short = [walk for walk in walks if _is_short(broker, walk, partial(landed.identities, walk.number), before, after)]
    for number in range(_SECOND_LOOKS):
        if not short:
            break
        looks = dict[int, SecondLook]()
        for walk in short:
            looks[walk.number] = SecondLook(broker, walk, landed, after.counts[walk.number], deadline_seconds)
            looks[walk.number].land(landing, f"part-unseen-{walk.number:05}-{number}.parquet")
        before, after, landed = after, _health(broker, walks, after), Landed.look(landing)
        short = [walk for walk in short if _is_short(broker, walk, looks[walk.number].identities, before, after)]
    return short, landed, after


def _is_short(broker: Broker, walk: Walk, met: Callable[..., int], before: _Health, after: _Health) -> bool:
    """Whether a walk met fewer than were counted before it or after it; entities that came meanwhile make up for none.

    Args:
        met: counts the entities that were met; takes when those were created that are left out, and `repeats`.
    """
    repeats = broker.counts_types_apart
    first, last = before.counts[walk.number], after.counts[walk.number]
    newcomers = (before.second_after, after.time + CLOCK_MARGIN)
    everything = met(repeats=repeats)
    is_short = met(newcomers, repeats=repeats) < first
    # Changes made after the walk are counted too, where the count can't be cut at its beginning.
    if walk.query.since is None or broker.counts_stretches:
        is_short = is_short or everything < last
    if is_short:
        _log.warning(
            "the walk of %s met %d entities; %d were counted before it, %d after it",
            walk.query.service_path,
            everything,
            first,
            last,
        )
    return is_short


def _watermark(known: str | None, newest: str | None) -> str | None:
    """The later of both.

    `newest` is not later than the start of the pull: an entity read early and changed while the rest was read has its
    change before the newest one seen, and must not fall behind the watermark.
    """
    if known is None or newest is None:
        return known or newest
    return max(known, newest, key=_time)


def _time(watermark: str) -> datetime:
    time = moment(watermark)
    if time is None:
        raise DefectError(f"the watermark {watermark!r} is no time", next_step="run the publication in mode full")
    return time
