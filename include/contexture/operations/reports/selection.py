"""Which runs of a publication a report is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, TypeVar

from contexture.errors import ConfigurationError, DefectError
from contexture.operations.reports.model import ReportPeriod
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import Outboxes, OutboxStatus
from contexture.storage.publication_store import PublicationStore, run_name

LAST: Final = 40
"""How many runs a report shows where no one says which."""

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")

_READERS: Final = 8
_SHORTEST_PREFIX: Final = 4


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run whose outbox is kept."""

    status: OutboxStatus
    manifest: Manifest

    @property
    def prepared_at(self) -> datetime:
        return self.status.steps[0].at


@dataclass(frozen=True, slots=True, order=True)
class KeptOutbox:
    """An outbox that is kept, before more of it is read; sorted by time."""

    prepared_at: datetime
    sequence: int
    outbox: str


def kept_outboxes(store: PublicationStore) -> list[KeptOutbox]:
    """All outboxes that can be read, the oldest first.

    Raises:
        RetriableError: the storage did not answer.
    """
    return sorted(_read(lambda name: _kept(store, name), store.outboxes.names()))


def select_runs(outboxes: Outboxes, kept: Sequence[KeptOutbox], period: ReportPeriod) -> list[KeptRun]:
    """Those of the outboxes, which are given oldest first, that a report is about.

    Raises:
        ConfigurationError: it is about one run, and that is not among them.
        RetriableError: the storage did not answer.
    """
    if period.run is not None:
        return [_one(outboxes, kept, period.run)]
    inside = [each for each in kept if _is_inside(each.prepared_at, period)]
    return last_runs(outboxes, inside, len(inside) if period.last is None else period.last)


def last_runs(outboxes: Outboxes, kept: Sequence[KeptOutbox], most: int) -> list[KeptRun]:
    """The last so many runs of outboxes that are given oldest first, in the same order; what can't be read is not one.

    Raises:
        RetriableError: the storage did not answer.
    """
    found: list[KeptRun] = []
    left = list(kept)
    while left and len(found) < most:
        missing = most - len(found)
        found = [*_runs(outboxes, left[-missing:]), *found]
        del left[-missing:]
    return found


def _is_inside(at: datetime, period: ReportPeriod) -> bool:
    return (period.since is None or at >= period.since) and (period.until is None or at < period.until)


def _one(outboxes: Outboxes, kept: Sequence[KeptOutbox], text: str) -> KeptRun:
    runs = _runs(outboxes, [each for each in kept if each.outbox == text]) or _of_run(outboxes, kept, text)
    if not runs and len(text) >= _SHORTEST_PREFIX:
        runs = _runs(outboxes, [each for each in kept if each.outbox.startswith(text)])
        if len(runs) > 1:
            raise ConfigurationError(f"{len(runs)} outboxes begin with {text}", next_step="give more of the id")
    if not runs:
        raise ConfigurationError(
            f"no run or outbox {text} is stored",
            next_step="list them with: contexture outbox list --all (retention removes them after archive_days)",
        )
    return runs[-1]


def _of_run(outboxes: Outboxes, kept: Sequence[KeptOutbox], text: str) -> list[KeptRun]:
    names = {text, run_name(text)}
    return [run for run in _runs(outboxes, kept) if run.manifest.run in names]


def _runs(outboxes: Outboxes, kept: Sequence[KeptOutbox]) -> list[KeptRun]:
    def run(each: KeptOutbox) -> KeptRun | None:
        try:
            return KeptRun(outboxes.status(each.outbox), outboxes.manifest(each.outbox))
        except (ConfigurationError, DefectError):
            # It is just being made or removed, or damaged: the others are reported all the same.
            return None

    return _read(run, kept)


def _kept(store: PublicationStore, outbox: str) -> KeptOutbox | None:
    try:
        return _remembered(store, outbox)
    except (ConfigurationError, DefectError):
        return None


@lru_cache(maxsize=100_000)
def _remembered(store: PublicationStore, outbox: str) -> KeptOutbox:
    # It never changes, and an archive of a month has thousands.
    status = store.outboxes.status(outbox)
    return KeptOutbox(status.steps[0].at, status.sequence, outbox)


def _read(one: Callable[[_Given], _Found | None], given: Sequence[_Given]) -> list[_Found]:
    # Handing thousands to the readers one by one would cost more than reading them.
    size = max(1, len(given) // (_READERS * 4))
    pieces = [given[begin : begin + size] for begin in range(0, len(given), size)]
    with ThreadPoolExecutor(_READERS) as readers:
        read = readers.map(lambda piece: [one(each) for each in piece], pieces)
        return [found for piece in read for found in piece if found is not None]
