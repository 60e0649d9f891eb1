"""The assets of Contexture: what a publication has published, and the request to resynchronise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from airflow.sdk import Asset, AssetWatcher
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from contexture_airflow.settings import RESYNC_ASSET

FINGERPRINTS_KEY = "fingerprints"
DEFAULT_POLL_SECONDS = 5.0


class PublicationsWatch(BaseEventTrigger):
    """An event at each start, and one whenever fingerprints differ from those kept in the asset's state store.

    The store outlives restarts, so a change made while everything was down counts. A publication seen for the first
    time is no change. The payload: `boot` (an id of this start), `startup`, and `config_changed`, a list of
    `publication`, `old` and `new` fingerprint.

    `run` never returns: a watcher that returns is started again immediately, and would report a start each time.

    Args:
        poll_seconds: how often the files are checked.
    """

    def __init__(self, poll_seconds: float = DEFAULT_POLL_SECONDS) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; they identify the trigger, so nothing that varies is among them."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {"poll_seconds": self.poll_seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields events without end."""
        boot, startup, seen = uuid4().hex, True, None
        while True:
            stamps = await asyncio.to_thread(self._stamps)
            if startup or stamps != seen:
                known = await self._known()
                found = await asyncio.to_thread(self._fingerprints)
                changes = find_changes(known, found)
                if startup or changes:
                    # What a scheduled run loaded before this trigger came up counts from the start of the process.
                    since = _process_started_at() if startup else datetime.now(UTC)
                    payload = {
                        "boot": boot,
                        "startup": startup,
                        "since": since.isoformat(),
                        "config_changed": changes,
                    }
                    yield TriggerEvent(payload)  # type: ignore[no-untyped-call]
                # Stored after the event: an event that is sent twice does no harm, one that is lost does.
                await self._keep({**known, **found})
                startup, seen = False, stamps
            await asyncio.sleep(self.poll_seconds)

    def _stamps(self) -> Mapping[str, tuple[int, int]]:
        """Returns names, times and sizes of the files: while these are the same, no file has to be read."""
        from contexture_airflow.catalogue import stamps

        return stamps()

    def _fingerprints(self) -> Mapping[str, str]:
        """The fingerprint of each good publication."""
        from contexture_airflow.catalogue import fingerprints

        return fingerprints()

    async def _known(self) -> dict[str, str]:
        stored = await self._store.aget(FINGERPRINTS_KEY, {})
        return {str(name): str(value) for name, value in stored.items()} if isinstance(stored, dict) else {}

    async def _keep(self, fingerprints: dict[str, str]) -> None:
        await self._store.aset(FINGERPRINTS_KEY, dict(fingerprints))

    @property
    def _store(self) -> Any:
        assert self.asset_state_store is not None, "the triggerer gives it before run"
        return self.asset_state_store


def _process_started_at() -> datetime:
    import psutil

    return datetime.fromtimestamp(psutil.Process().create_time(), UTC)


def find_changes(known: Mapping[str, str], found: Mapping[str, str]) -> list[dict[str, str]]:
    """Publications whose fingerprint was known and is another one now, ordered by name."""
    return [
        {"publication": name, "old": known[name], "new": new}
        for name, new in sorted(found.items())
        if name in known and known[name] != new
    ]


def published(publication: str) -> Asset:
    """Updated by each concluded run, with its counts as extra; schedule DAGs of your own on it."""
    return Asset(name=f"published_{publication}", uri=f"contexture://published/{publication}")


def resync_requested() -> Asset:
    """Updated at each start and whenever a publication changes in a way that changes records."""
    watcher = AssetWatcher(name="publications", trigger=PublicationsWatch())
    return Asset(name=RESYNC_ASSET, uri="contexture://resync-requested", watchers=[watcher])
