"""The landing of notifications: the inbox files that a run claims, as rows in the order of arrival.

If the broker's times of one entity contradict the order of arrival, the times decide (`sequence.NotifiedOrder`). The
ordinals of notifications are below those of everything that is read, so that notifications are sent first. The rows
pass the driver as one stream, because the files of several receivers overlap in time and are in order only together.
Memory holds one row group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa

from contexture.sources.ngsi.notifications.notification import NotificationError, media_type_of
from contexture.sources.ngsi.notifications.parsing import read_notification
from contexture.storage.folder import StoredFolder
from contexture.storage.inbox_files import InboxEntry
from contexture.storage.inbox_reader import InboxClaim
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import PublicationStore
from contexture.storage.schemas import LANDING
from spark_jobs.data_sources.ngsi import WALK_BITS
from spark_jobs.entities.landing import ScannedLanding
from spark_jobs.entities.sequence import NotifiedOrder

FIRST_ORDINAL = -(1 << WALK_BITS)
FILE = "part-notified.parquet"
ROWS_AT_ONCE = 5_000
BYTES_AT_ONCE = 32 << 20

LandingFields = dict[str, object]


def empty_landing(order: StageOrder) -> LandingManifest:
    """Returns the landing of a run that only takes notifications, before any of them is added."""
    now = datetime.now(UTC)
    return LandingManifest(
        run=order.run,
        mode=order.mode,
        source="inbox",
        queries=(),
        watermark_from=None,
        watermark_to=None,
        rows=0,
        present=0,
        source_count=0,
        complete=False,
        started_at=now,
        finished_at=now,
        broker_time=None,
        files={},
        digest="",
    )


def land_notifications(
    store: PublicationStore, order: StageOrder, claim: InboxClaim, read: LandingManifest
) -> LandingManifest:
    """Adds the claimed notifications to a landing, and the claim itself; an empty claim does not change a read.

    Raises:
        RetriableError: the storage failed; no manifest lists the notifications.
        ConfigurationError: a file of the inbox is damaged.
    """
    if not claim.files and read.knows_source:
        return read
    landing = store.landing(order.run)
    landing.write_claim(claim)
    entries = store.inbox.entries(claim.inbox_files)
    arrival_order = NotifiedOrder()
    arrived = write_landing_file(landing, _rows(entries, order.publication.source.tenant, arrival_order))
    moves = arrival_order.moves()
    if moves:
        _renumber(landing, moves)
    landed = ScannedLanding.scan(landing)
    return read.model_copy(
        update={
            "rows": landed.rows,
            "notified": arrived.rows,
            "started_at": min(read.started_at, arrived.first_at or read.started_at),
            "files": landed.files,
            # The same notifications are claimed again after their outbox was rejected: that is another landing.
            "digest": hashlib.sha256(f"{landed.digest} {order.run}".encode()).hexdigest(),
        }
    )


class InboxArrivals(NamedTuple):
    """The number of rows, and when the first of them arrived."""

    rows: int = 0
    first_at: datetime | None = None


def write_landing_file(landing: StoredFolder, rows: Iterable[LandingFields]) -> InboxArrivals:
    """Writes landing rows, each with a body and its time of arrival, into one file."""
    arrived = InboxArrivals()
    with landing.table_writer(FILE, LANDING) as file:
        for chunk in _chunks(rows):
            table = pa.Table.from_pylist(chunk, schema=LANDING)
            file.write_table(table)
            arrived = InboxArrivals(arrived.rows + table.num_rows, arrived.first_at or table["received_at"][0].as_py())
    return arrived


def _chunks(rows: Iterable[LandingFields]) -> Iterator[list[LandingFields]]:
    chunk: list[LandingFields] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row["body"])  # type: ignore[arg-type]  # always bytes
        if len(chunk) == ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _renumber(landing: StoredFolder, moves: Mapping[int, int]) -> None:
    """Changes the ordinals of rows; `moves` maps row numbers. The rows keep their places in the file."""
    first = 0
    with landing.open_table(FILE) as before, landing.table_writer(FILE, LANDING) as after:
        for number in range(before.num_row_groups):
            table = before.read_row_group(number)
            places = range(first, first + table.num_rows)
            ordinals = pa.array([FIRST_ORDINAL + moves.get(place, place) for place in places], pa.int64())
            column = LANDING.get_field_index("ordinal")
            after.write_table(table.set_column(column, LANDING.field(column), ordinals))
            first += table.num_rows


def _rows(entries: Iterable[InboxEntry], service: str, order: NotifiedOrder) -> Iterator[LandingFields]:
    ordinal = FIRST_ORDINAL
    for entry in entries:
        for fields in _entry_rows(entry, order):
            yield {**fields, "ordinal": ordinal, "scope": service, "received_at": entry.received_at}
            ordinal += 1


def _entry_rows(entry: InboxEntry, order: NotifiedOrder) -> Iterator[LandingFields]:
    try:
        notification = read_notification(entry.headers, entry.body, default_service="", maximum_bytes=len(entry.body))
    except NotificationError:
        # It was readable when it was received. The row rules refuse it, so that it is visible and not lost.
        order.add_unreadable()
        yield {"operation": "upsert", "body": entry.body, "media_type": media_type_of("ngsiv2")}
        return
    for entity in notification.entities:
        order.add(entity, notification.form)
        yield {
            "operation": entity.operation,
            "path": entity.service_path,
            "id": entity.id,
            "type": entity.type,
            "body": entity.body,
            "media_type": media_type_of(notification.form),
        }
