"""Landing notifications: the files of the inbox that a run claims, as rows in the order of arrival.

Where notifications of one entity contradict their arrival by the broker's own times, those decide (`notified_order`).
Their ordinals lie below those of everything that is read, so that they are told first. One stream through the driver:
the files of several receivers overlap in time, and only together they are in order. Memory holds one row group.
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
from spark_jobs.entities.landing import Landed
from spark_jobs.entities.sequence import NotifiedOrder

FIRST_ORDINAL = -(1 << WALK_BITS)
FILE = "part-notified.parquet"
ROWS_AT_ONCE = 5_000
BYTES_AT_ONCE = 32 << 20

Row = dict[str, object]


def nothing_read(order: StageOrder) -> LandingManifest:
    """The landing of a run that takes only what was notified, before any of it is there."""
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
    """Adds the claimed notifications to a landing, and the claim itself; a claim of nothing changes no pull.

    Raises:
        RetriableError: the storage failed; no manifest says that they are there.
        ConfigurationError: a file of the inbox is damaged.
    """
    if not claim.files and read.knows_source:
        return read
    landing = store.landing(order.run)
    landing.write_claim(claim)
    entries = store.inbox.entries(claim.inbox_files)
    swapped = NotifiedOrder()
    arrived = write_rows(landing, _rows(entries, order.publication.source.tenant, swapped))
    moves = swapped.moves()
    if moves:
        _renumber(landing, moves)
    landed = Landed.look(landing)
    return read.model_copy(
        update={
            "rows": landed.rows,
            "notified": arrived.rows,
            "started_at": min(read.started_at, arrived.first_at or read.started_at),
            "files": landed.files,
            # The same notifications may be claimed again, when an outbox of them was rejected: that is another landing.
            "digest": hashlib.sha256(f"{landed.digest} {order.run}".encode()).hexdigest(),
        }
    )


class InboxArrivals(NamedTuple):
    """How many rows, and when the first of them arrived."""

    rows: int = 0
    first_at: datetime | None = None


def write_rows(landing: StoredFolder, rows: Iterable[Row]) -> InboxArrivals:
    """Writes rows of landing, each with a body and the time of its arrival, into one file."""
    arrived = InboxArrivals()
    with landing.table_writer(FILE, LANDING) as file:
        for chunk in _chunks(rows):
            table = pa.Table.from_pylist(chunk, schema=LANDING)
            file.write_table(table)
            arrived = InboxArrivals(arrived.rows + table.num_rows, arrived.first_at or table["received_at"][0].as_py())
    return arrived


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
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
    """Gives rows other ordinals; `moves` are numbers of rows. The rows themselves stay where they are in the file."""
    first = 0
    with landing.open_table(FILE) as before, landing.table_writer(FILE, LANDING) as after:
        for number in range(before.num_row_groups):
            table = before.read_row_group(number)
            places = range(first, first + table.num_rows)
            ordinals = pa.array([FIRST_ORDINAL + moves.get(place, place) for place in places], pa.int64())
            column = LANDING.get_field_index("ordinal")
            after.write_table(table.set_column(column, LANDING.field(column), ordinals))
            first += table.num_rows


def _rows(entries: Iterable[InboxEntry], service: str, order: NotifiedOrder) -> Iterator[Row]:
    ordinal = FIRST_ORDINAL
    for entry in entries:
        for told in _told(entry, order):
            yield {**told, "ordinal": ordinal, "scope": service, "received_at": entry.received_at}
            ordinal += 1


def _told(entry: InboxEntry, order: NotifiedOrder) -> Iterator[Row]:
    try:
        notification = read_notification(entry.headers, entry.body, default_service="", maximum_bytes=len(entry.body))
    except NotificationError:
        # It was readable when it was taken. The row rules refuse it, so that it is seen and not lost.
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
