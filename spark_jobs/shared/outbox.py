"""Preparing once: the id of an outbox, and what makes a preparation that was killed start anew.

Its manifest is written last; when that is there already, nothing is done again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import orjson

from contexture.publications import EntityQuality, NgsiPublication, Publication, SizedPublish
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import FORMAT_VERSION
from contexture.storage.state import StatePointer
from spark_jobs.shared.context import StageContext, store_of


def run_facts(preparation: StageContext, landing: LandingManifest) -> dict[str, Any]:
    """Members of the manifest of a prepared outbox."""
    return _of_order(preparation) | _of_landing(landing)


def _of_order(preparation: StageContext) -> dict[str, Any]:
    """What was asked for."""
    order = preparation.order
    return {
        "outbox": preparation.outbox,
        "publication": order.publication.name,
        "fingerprint": order.fingerprint,
        "sequence": order.sequence,
        "mode": order.mode,
        "run": order.run,
        "state_generation": StatePointer.model_validate_json(preparation.pointer_json).generation,
        "interval": order.interval if preparation.is_backfill else None,
        "replayed_from": "source" if preparation.is_backfill else None,
        "topic_prefix": order.replay.topic_prefix,
        "sends_outdated": order.replay.sends_outdated,
    }


def _of_landing(landing: LandingManifest) -> dict[str, Any]:
    """What was read."""
    return {
        "landing_digest": landing.digest,
        "received_from": landing.started_at,
        "received_to": landing.finished_at,
        "watermark": landing.watermark_to,
        "read": landing.rows - landing.present,
        "present": landing.present,
        "source_count": landing.source_count,
        "retried": landing.retried,
    }


class Stopwatch:
    """Seconds by step, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Counts the block's seconds under `name`."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - started, 3)


def prepare_once(preparation: StageContext, make: Callable[[], Manifest]) -> Manifest:
    """The manifest of an outbox that is `prepared`: the one that is there, or else a new one, written last."""
    outboxes, records = preparation.store.outboxes, preparation.records
    if records.has_manifest():
        manifest = outboxes.manifest(preparation.outbox)
    else:
        # A task that was killed may have left half of everything.
        for folder in (preparation.work, preparation.quarantine, records):
            folder.remove()
        manifest = make()
        records.write_manifest(manifest)
    outboxes.prepared(manifest)
    return manifest


def outbox_id(order: StageOrder, landing_digest: str, generation: int) -> str:
    """The content-derived id: the same inputs give the same id, and the same bytes."""
    publication = order.publication
    parts = {
        "publication": publication.name,
        "fingerprint": order.fingerprint,
        **_settings(publication),
        "landing": landing_digest,
        "generation": generation,
        "mode": order.mode,
        "republish": order.republish and order.run,
        "format": FORMAT_VERSION,
    }
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def _settings(publication: Publication) -> dict[str, object]:
    """What outboxes are made by, without the fingerprint. Each id has all keys: a kind of source without one of them
    counts with its default, so that a key that a kind gains changes no id of the others."""
    entities = publication if isinstance(publication, NgsiPublication) else None
    publish = publication.publish
    return {
        "quality": EntityQuality().model_dump(mode="json") | publication.quality.model_dump(mode="json"),
        "collision": entities.topics.collision if entities else "warn",
        "shards": publish.shards,
        "transaction_records": publish.transaction_records if isinstance(publish, SizedPublish) else 50000,
        "suppress_unchanged": entities.source.suppress_unchanged if entities else True,
    }


def preparation_of(order: StageOrder, landing: LandingManifest, digest: str) -> StageContext:
    """What is prepared; `digest` is of all that counts of the landing."""
    pointer = store_of(order).state.pointer()
    if not landing.rows:
        # Runs that find nothing land the same: an outbox that was rejected is not that of the next one.
        digest = f"{digest} {order.run}"
    return StageContext(
        order=order,
        outbox=outbox_id(order, digest, pointer.generation),
        pointer_json=pointer.to_json(),
        reference_time=landing.finished_at,
        in_turn=landing.notified > 0,
    )
