"""Which runs of a publication a report is about."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contexture.errors import ConfigurationError, DefectError
from contexture.operations.reports.documents import Period
from contexture.outbox.layout import run_name
from contexture.outbox.lifecycle import Outboxes, OutboxStatus
from contexture.outbox.manifest import Manifest

LAST: Final = 40
"""How many runs a report tells where nobody says which."""

_READERS: Final = 8
_SHORTEST_PREFIX: Final = 4


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run whose outbox is kept."""

    status: OutboxStatus
    manifest: Manifest

    @property
    def prepared_at(self) -> datetime:
        """When its outbox was prepared."""
        return self.status.steps[0].at


def kept_runs(outboxes: Outboxes) -> list[KeptRun]:
    """All runs whose outboxes can be read, the oldest first.

    Raises:
        RetriableError: the storage did not answer.
    """
    names = outboxes.storage.folders(outboxes.folder.outboxes())
    with ThreadPoolExecutor(_READERS) as readers:
        found = readers.map(lambda name: _kept(outboxes, name), names)
        runs = [each for each in found if each is not None]
    return sorted(runs, key=lambda run: (run.prepared_at, run.manifest.sequence))


def chosen(runs: Sequence[KeptRun], period: Period) -> list[KeptRun]:
    """Those of the runs, which are given oldest first, that a report is about.

    Raises:
        ConfigurationError: it is about one run, and that is not among them.
    """
    if period.run is not None:
        return [_one(runs, period.run)]
    inside = [run for run in runs if _is_inside(run.prepared_at, period)]
    return inside if period.last is None else inside[-period.last :]


def _is_inside(at: datetime, period: Period) -> bool:
    return (period.since is None or at >= period.since) and (period.until is None or at < period.until)


def _one(runs: Sequence[KeptRun], text: str) -> KeptRun:
    names = {text, run_name(text)}
    found = [run for run in runs if run.manifest.outbox == text or run.manifest.run in names]
    if not found and len(text) >= _SHORTEST_PREFIX:
        found = [run for run in runs if run.manifest.outbox.startswith(text)]
    if not found:
        raise ConfigurationError(
            f"no run or outbox {text} is kept",
            next_step="list them with: contexture outbox list --all (retention removes them after archive_days)",
        )
    if len({run.manifest.outbox for run in found}) > 1 and found[-1].manifest.run not in names:
        raise ConfigurationError(f"{len(found)} outboxes begin with {text}", next_step="give more of the id")
    return found[-1]


def _kept(outboxes: Outboxes, name: str) -> KeptRun | None:
    try:
        return KeptRun(outboxes.status(name), outboxes.manifest(name))
    except (ConfigurationError, DefectError):
        # It is just being made or removed, or damaged: the others are told all the same.
        return None
