"""Reading structures: the selected ones are landed as the registry writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from contexture.errors import DefectError
from contexture.publications import SdmxPublication
from contexture.records.changes.structure_changes import newly_routed
from contexture.records.topics.structure_routes import Router
from contexture.sources.sdmx import Format, Selector
from contexture.sources.sdmx.formats import splittable
from contexture.sources.sdmx.reading.steps import Moved, no_version_moves, settled, transaction_of
from contexture.sources.sdmx.registry import Registry, RegistryConnection, open_registry
from contexture.sources.sdmx.transcoding.transcoder import source_formats, target_format
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from contexture.storage.quarantine_retry import refused_structures
from spark_jobs.shared.context import store_of
from spark_jobs.structures.read_context import ReadContext, ReadOutcome, RegistryListing
from spark_jobs.structures.read_log import check_no_pending_outbox, land_deleted, land_logged, land_refused
from spark_jobs.structures.read_past import land_past
from spark_jobs.structures.read_snapshot import land_snapshot
from spark_jobs.structures.read_tasks import ReadTask, read_in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


DEFAULT_MEDIA_TYPE = Format.SDMX_ML_2_1.media_type


def read_structures(
    spark: SparkSession, order: StageOrder, connection: RegistryConnection, watermark: str | None
) -> LandingManifest:
    """Reads the registry into the run's landing folder, unless the landing has its manifest already.

    Args:
        spark: the session whose tasks read.
        order: of the stage.
        connection: to the registry.
        watermark: of the last concluded run: a transaction of the registry's log, or its Last-Modified; None reads
            everything.

    Raises:
        RetriableError: the registry or the storage failed, or the registry's replies contradict each other. Then the
            landing has no manifest.
        ConfigurationError: the registry refuses our credentials, the selection or the format.
    """
    landing = store_of(order).landing(order.run)
    stored = landing.find_manifest()
    if stored is not None:
        return stored
    landing.remove()
    manifest = _read(spark, order, connection, watermark)
    landing.write_manifest(manifest)
    return manifest


def _read(
    spark: SparkSession, order: StageOrder, connection: RegistryConnection, watermark: str | None
) -> LandingManifest:
    started_at = datetime.now(UTC)
    source = SdmxPublication.of(order.publication).source
    with open_registry(connection, flavour=source.flavour, registrations=source.registrations) as registry:
        registry.probe()
        context = ReadContext(
            registry,
            _read_task(order, connection, registry),
            [Selector.parse(text) for text in source.select],
            _sent_urns(order),
            readers=source.parallel_readers,
            read_shares=partial(read_in_tasks, spark),
        )
        outcome = _land(context, order, watermark, started_at)
        context.close()
    # The times of a backfill are those of its interval, because rules about age refer to that time, not to today.
    times = order.interval if order.mode == "backfill" and order.interval else (started_at, datetime.now(UTC))
    return LandingManifest(
        run=order.run,
        mode=order.mode,
        source=registry.address,
        queries=tuple(context.queries),
        watermark_from=watermark,
        watermark_to=outcome.watermark,
        rows=context.totals.rows,
        present=0,
        source_count=outcome.source_count,
        complete=outcome.complete,
        started_at=times[0],
        finished_at=times[1],
        broker_time=None,
        files=context.totals.files,
        digest=context.digest,
        registry_transaction=outcome.transaction,
        retried=None if order.retry is None else order.retry.outbox,
        missing=outcome.missing,
        skipped_transactions=outcome.skipped_transactions,
    )


def _land(context: ReadContext, order: StageOrder, watermark: str | None, started_at: datetime) -> ReadOutcome:
    if order.mode == "backfill" and order.interval is not None:
        return land_past(context, order, order.interval, _version_moves(order))
    return land(context, order, watermark, started_at, _version_moves(order))


def land(
    context: ReadContext,
    order: StageOrder,
    watermark: str | None,
    started_at: datetime,
    moved: Moved = no_version_moves,
) -> ReadOutcome:
    """Lands what an order requests: the log after the watermark, a snapshot, or refused structures.

    Raises:
        DefectError: the mode of the order reads no registry.
        ContextureError: the registry failed, or its replies contradict each other.
    """
    if order.mode not in {"full", "changes"}:
        raise DefectError(f"mode {order.mode} reads no registry", next_step="report this", run=order.run)
    if order.retry is not None:
        return land_refused(context, refused_structures(store_of(order), order, order.retry), watermark)
    registry = context.registry
    since = None if order.mode == "full" or order.baseline else watermark
    after = transaction_of(since)
    if registry.has_log and after is not None:
        return land_logged(context, after, moved)
    if registry.has_log and order.log_sent_to is not None:
        check_no_pending_outbox(registry, context.selectors, order.log_sent_to)
    # The log is read first, so the next run publishes again what happens while everything is read.
    newest = registry.transactions(None).newest if registry.has_log else None
    before = context.list_structures()
    if since is not None and newest is None and after is None and _is_unchanged(context, before, since):
        return ReadOutcome(since, len(before.selected), complete=False)
    held = land_snapshot(context, before)
    known = transaction_of(watermark)
    if registry.has_log and known is not None:
        land_deleted(context, held, known)
    reached = settled(before.last_modified, started_at) if newest is None else str(newest)
    return ReadOutcome(reached, len(held.selected), complete=True, transaction=newest)


def _version_moves(order: StageOrder) -> Moved:
    routes = SdmxPublication.of(order.publication).topics.routes
    return partial(newly_routed, Router(routes)) if routes else no_version_moves


def _is_unchanged(context: ReadContext, before: RegistryListing, since: str) -> bool:
    """Returns whether the registry reports no addition, change or deletion, and lists all that was sent.

    The list is compared because a registry may not report a deletion. A list without a time holds data registrations,
    which the registry's time of structures does not cover.
    """
    if before.last_modified is None:
        return False
    return context.sent.keys() <= before.selected.keys() and context.registry.unchanged_since(since)


def _read_task(order: StageOrder, connection: RegistryConnection, registry: Registry) -> ReadTask:
    publication = SdmxPublication.of(order.publication)
    source = publication.source
    media_type = source.media_type or DEFAULT_MEDIA_TYPE
    target = target_format(media_type) if publication.message.allow_lossy else None
    return ReadTask(
        connection=connection,
        flavour=registry.flavour,
        media_type=media_type,
        splits=splittable(media_type),
        others=tuple(each.media_type for each in source_formats(target)) if target else (),
        target=target,
        landing=store_of(order).landing(order.run),
        pause_seconds=source.pause_milliseconds / 1000,
        deadline_seconds=float(source.walk_deadline_seconds),
    )


def _sent_urns(order: StageOrder) -> list[str]:
    """Returns the URNs that the target has."""
    state = store_of(order).state
    identities = state.table(state.pointer(), ["identity"]).column("identity").to_pylist()
    return [identity.decode() for identity in identities]
