"""The landing of an NGSI-LD broker's history: a row for each change of an interval, in their order.

Changes form a sequence, as notifications do, and land like them: nothing is inferred from what a row lacks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC

from contexture.errors import DefectError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.broker import EntityPage
from contexture.sources.ngsi.connect import open_history
from contexture.sources.ngsi.entity_head import moment
from contexture.sources.ngsi.history import TEMPORAL_ENTITIES, HistoryInterval, whole_millisecond
from contexture.sources.ngsi.notifications.notification import media_type_of
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from spark_jobs.entities.landing import ScannedLanding
from spark_jobs.entities.notifications import FIRST_ORDINAL, LandingFields, write_landing_file
from spark_jobs.entities.read import whole_selection
from spark_jobs.shared.context import store_of

FILE = "part-history.parquet"


def land_history(order: StageOrder, connection: BrokerConnection) -> LandingManifest:
    """Reads the changes in the order's interval; a run that already has its manifest does not read again.

    Raises:
        NotOfferedError: the broker offers no history.
        ContextureError: as `NgsiLdHistoryClient.history`.
    """
    landing = store_of(order).landing(order.run)
    stored = landing.find_manifest()
    if stored is not None:
        return stored
    landing.remove()
    interval = _interval(order)
    query = _land(order, landing, connection, interval)
    landed = ScannedLanding.scan(landing)
    manifest = _manifest(order, connection, interval, query, landed)
    landing.write_manifest(manifest)
    return manifest


def _land(order: StageOrder, landing: StoredFolder, connection: BrokerConnection, interval: HistoryInterval) -> str:
    """Writes the rows; returns the query in one line."""
    selection = whole_selection(order.publication)
    query = next(walk.query for walk in selection.walks() if walk.bodies)
    with open_history(connection, selection.service, selection.dialect, budget=selection.budget) as broker:
        pages = broker.history(
            query,
            interval,
            whole=not order.publication.splits_by_attribute,
            deadline_seconds=float(selection.walk_deadline_seconds),
        )
        write_landing_file(landing, _rows(pages, selection.service))
        return f"{TEMPORAL_ENTITIES} {broker.describe(query)}"


def _rows(pages: Iterable[EntityPage], service: str) -> Iterator[LandingFields]:
    ordinal = FIRST_ORDINAL
    for page in pages:
        for body, head in zip(page.entities, page.heads, strict=True):
            yield {
                "ordinal": ordinal,
                "operation": "upsert",
                "scope": service,
                "path": head.path,
                "id": head.id,
                "type": head.type,
                "version": head.modified,
                "body": body,
                "media_type": media_type_of("ngsi-ld"),
                "modified_at": moment(head.modified),
                "received_at": page.received_at,
            }
            ordinal += 1


def _interval(order: StageOrder) -> HistoryInterval:
    if order.interval is None:
        raise DefectError("a backfill without an interval reads no history", next_step="report this", run=order.run)
    start, end = (whole_millisecond(time.astimezone(UTC)) for time in order.interval)
    return HistoryInterval(start, end)


def _manifest(
    order: StageOrder, connection: BrokerConnection, interval: HistoryInterval, query: str, landed: ScannedLanding
) -> LandingManifest:
    # Its times are those of the interval, because rules about age refer to the time that is sent again, not to today.
    return LandingManifest(
        run=order.run,
        mode=order.mode,
        source=connection.address,
        queries=(query,),
        watermark_from=None,
        watermark_to=None,
        rows=landed.rows,
        present=0,
        source_count=0,
        complete=False,
        started_at=interval.start,
        finished_at=interval.end,
        broker_time=None,
        files=landed.files,
        digest=hashlib.sha256(f"{landed.digest} {order.run}".encode()).hexdigest(),
        notified=landed.rows,
    )
