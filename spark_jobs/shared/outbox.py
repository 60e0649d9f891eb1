"""The preparation of an outbox, done once: its id, and the new start of a preparation that was killed.

The manifest of an outbox is written last. If it exists already, nothing is done again.
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


def run_facts(context: StageContext, landing: LandingManifest) -> dict[str, Any]:
    """Returns the members of the manifest that are the same for all kinds of sources."""
    return _of_order(context) | _of_landing(landing)


def _of_order(context: StageContext) -> dict[str, Any]:
    """Returns the members that come from the order."""
    order = context.order
    return {
        "outbox": context.outbox,
        "publication": order.publication.name,
        "fingerprint": order.fingerprint,
        "sequence": order.sequence,
        "mode": order.mode,
        "run": order.run,
        "state_generation": StatePointer.model_validate_json(context.pointer_json).generation,
        "interval": order.interval if context.is_backfill else None,
        "replayed_from": "source" if context.is_backfill else None,
        "topic_prefix": order.replay.topic_prefix,
        "sends_outdated": order.replay.sends_outdated,
    }


def _of_landing(landing: LandingManifest) -> dict[str, Any]:
    """Returns the members that come from the landing."""
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
    """The seconds of each step, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Adds the seconds of the block to the step `name`."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - started, 3)


def prepare_once(context: StageContext, make: Callable[[], Manifest]) -> Manifest:
    """Returns the stored manifest of the outbox, or makes the outbox and writes its manifest; marks it `prepared`."""
    outboxes, records = context.store.outboxes, context.records
    if records.has_manifest():
        manifest = outboxes.manifest(context.outbox)
    else:
        # A task that was killed may have left incomplete files.
        for folder in (context.work, context.quarantine, records):
            folder.remove()
        manifest = make()
        records.write_manifest(manifest)
    outboxes.prepared(manifest)
    return manifest


def outbox_id(order: StageOrder, landing_digest: str, generation: int) -> str:
    """Returns the id of an outbox, which is derived from its inputs: the same inputs give the same id and bytes."""
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
    """Returns the settings that change an outbox, but not the fingerprint of the publication.

    Each id includes all keys. A kind of source without one of them has its default, so that a key that one kind gains
    changes no id of the others.
    """
    entities = publication if isinstance(publication, NgsiPublication) else None
    publish = publication.publish
    return {
        "quality": EntityQuality().model_dump(mode="json") | publication.quality.model_dump(mode="json"),
        "collision": entities.topics.collision if entities else "warn",
        "shards": publish.shards,
        "transaction_records": publish.transaction_records if isinstance(publish, SizedPublish) else 50000,
        "suppress_unchanged": entities.source.suppress_unchanged if entities else True,
    }


def build_context(order: StageOrder, landing: LandingManifest, digest: str) -> StageContext:
    """Builds the context of a stage.

    Args:
        order: the order of the run.
        landing: what was read.
        digest: of everything in the landing that changes the outbox.
    """
    pointer = store_of(order).state.pointer()
    if not landing.rows:
        # Empty landings are equal, but the outbox of one run, which may be rejected, is not that of the next.
        digest = f"{digest} {order.run}"
    return StageContext(
        order=order,
        outbox=outbox_id(order, digest, pointer.generation),
        pointer_json=pointer.to_json(),
        reference_time=landing.finished_at,
        in_turn=landing.notified > 0,
    )
