"""The assets of Contexture: what a publication has published, and the request to resynchronise."""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from contexture_airflow.settings import RESYNC_ASSET
from contexture_airflow.triggers.publications import PublicationsWatch


def published(publication: str) -> Asset:
    """Updated by each concluded run, with its counts as extra; schedule DAGs of your own on it."""
    return Asset(name=f"published_{publication}", uri=f"contexture://published/{publication}")


def resync_requested() -> Asset:
    """Updated at each start and whenever a publication changes in a way that changes records."""
    watcher = AssetWatcher(name="publications", trigger=PublicationsWatch())
    return Asset(name=RESYNC_ASSET, uri="contexture://resync-requested", watchers=[watcher])
