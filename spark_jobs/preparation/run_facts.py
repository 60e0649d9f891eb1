"""What a manifest says of its run, whatever the run read: the order, the landing, and where a backfill comes from."""

from __future__ import annotations

from typing import Any

from contexture.storage.manifests import LandingManifest
from contexture.storage.state import StatePointer
from spark_jobs.preparation.settings import Preparation


def run_facts(preparation: Preparation, landing: LandingManifest) -> dict[str, Any]:
    """Members of the manifest of a prepared outbox."""
    return _of_order(preparation) | _of_landing(landing)


def _of_order(preparation: Preparation) -> dict[str, Any]:
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
