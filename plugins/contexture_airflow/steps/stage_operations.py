"""Staging Contexture's own events: from the operational tables to an outbox, without Spark."""

from __future__ import annotations

from typing import Final

from contexture.errors import ConfigurationError
from contexture.monitoring import RunTables
from contexture.monitoring.own_events_outbox import EventBatch, prepare
from contexture.storage.documents import StoredDocument
from contexture.storage.home import ProgressCallback
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import PublicationStore
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.steps.stage import PlacedOrder

MOST_EVENTS: Final = 100_000
"""What one run publishes at most; the next one goes on."""


_CLAIM: Final = "claim.json"


class EventClaim(StoredDocument):
    """Which events a run publishes: those after one position up to another."""

    after: int
    until: int


def stage_operations(
    store: PublicationStore, request: RunRequest, placed: PlacedOrder, report: ProgressCallback
) -> StagedOutbox:
    """The outbox with the events that no concluded run has published; a retry prepares the same one again.

    In mode full it is what the tables still hold, published or not.

    Raises:
        ConfigurationError: there are no operational tables, or the run is one that can't be.
        RetriableError: database or storage did not answer.
    """
    _check_possible(request)
    order = store.run(placed.run).order()
    reading = _read(store, order)
    report(f"{len(reading.events)} events of Contexture itself, up to {reading.watermark}")
    manifest = prepare(store, order, reading)
    return StagedOutbox(
        publication=manifest.publication,
        run=manifest.run,
        outbox=manifest.outbox,
        sequence=manifest.sequence,
        records=manifest.records,
        shards=tuple(shard.shard for shard in manifest.shards if shard.records),
    )


def _check_possible(request: RunRequest) -> None:
    if request.interval is not None:
        raise ConfigurationError(
            "what Contexture itself did cannot be sent again by intervals",
            next_step="start a run in mode full: it sends all that the operational tables still contain",
        )


def _read(store: PublicationStore, order: StageOrder) -> EventBatch:
    tables = RunTables.of_home(store.home.root)
    if tables is None:
        raise ConfigurationError(
            "there are no operational tables to read from", next_step="set CONTEXTURE_DATABASE to the URL of a database"
        )
    pointer = store.state.pointer()
    published = int(pointer.watermark) if pointer.watermark and order.mode != "full" else 0
    try:
        claim = _claim(store, order, tables, published)
        events = tables.events_after(claim.after, until=claim.until, limit=MOST_EVENTS)
    finally:
        tables.close()
    return EventBatch(events, pointer.generation, str(claim.until) if events else pointer.watermark)


def _claim(store: PublicationStore, order: StageOrder, tables: RunTables, published: int) -> EventClaim:
    """What the run publishes, decided once: what happens while it is tried again is for the next run."""
    landing = store.landing(order.run)
    stored = landing.find_document(EventClaim, _CLAIM)
    if stored is not None:
        return stored
    found = tables.events_after(published, limit=MOST_EVENTS)
    claim = EventClaim(after=published, until=found[-1].position if found else published)
    landing.write(_CLAIM, claim.to_json())
    return claim
