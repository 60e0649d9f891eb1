"""Staging Contexture's own events: from the operational tables to an outbox, without Spark."""

from __future__ import annotations

from typing import Final

from contexture.errors import ConfigurationError
from contexture.monitoring import RunTables
from contexture.monitoring.own_events_outbox import EventBatch, prepare
from contexture.sending.target import Report
from contexture.storage.documents import StoredDocument
from contexture.storage.home import Storage
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.state import State
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.steps.stage import PlacedOrder

MOST_EVENTS: Final = 100_000
"""What one run publishes at most; the next one goes on."""


class EventClaim(StoredDocument):
    """Which events a run publishes: those after one position up to another."""

    after: int
    until: int


def stage_operations(storage: Storage, request: RunRequest, placed: PlacedOrder, report: Report) -> StagedOutbox:
    """The outbox with the events that no concluded run has published; a retry prepares the same one again.

    In mode full it is what the tables still hold, published or not.

    Raises:
        ConfigurationError: there are no operational tables, or the run is one that can't be.
        RetriableError: database or storage did not answer.
    """
    _check_possible(request)
    order = StageOrder.from_file(storage, PublicationFolder(placed.publication).order(placed.run))
    reading = _read(storage, order)
    report(f"{len(reading.events)} events of Contexture itself, up to {reading.watermark}")
    manifest = prepare(storage, order, reading)
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
            "what Contexture itself did is not sent again by intervals",
            next_step="start a run in mode full: it sends all that the operational tables still hold",
        )


def _read(storage: Storage, order: StageOrder) -> EventBatch:
    store = RunTables.of_home(storage.root)
    if store is None:
        raise ConfigurationError(
            "there are no operational tables to read from", next_step="set CONTEXTURE_DATABASE to the URL of a database"
        )
    pointer = State(storage, order.publication.name).pointer()
    told = int(pointer.watermark) if pointer.watermark and order.mode != "full" else 0
    try:
        claim = _claim(storage, order, store, told)
        events = store.events_after(claim.after, until=claim.until, limit=MOST_EVENTS)
    finally:
        store.close()
    return EventBatch(events, pointer.generation, str(claim.until) if events else pointer.watermark)


def _claim(storage: Storage, order: StageOrder, store: RunTables, told: int) -> EventClaim:
    """What the run publishes, decided once: what happens while it is tried again is for the next run."""
    path = f"{PublicationFolder(order.publication.name).landing(order.run)}/claim.json"
    try:
        return EventClaim.from_file(storage, path)
    except FileNotFoundError:
        found = store.events_after(told, limit=MOST_EVENTS)
    claim = EventClaim(after=told, until=found[-1].place if found else told)
    storage.write(path, claim.to_json())
    return claim
