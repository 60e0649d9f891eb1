"""What is archived of an interval, and what of it is missing.

The runs of a publication are numbered without holes. A number that no outbox on storage has is that of a run whose
archive is gone: retention has removed it, or a person, or it was made by an instance with another storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from contexture.storage.lifecycle import Outboxes, Status
from contexture.storage.manifest import Manifest

Interval = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Archived:
    """What is archived of an interval.

    Attributes:
        manifests: of the concluded runs whose content was received in it, in order of sequence.
        missing: the runs that are known to lack, a sentence for each stretch of them.
    """

    manifests: tuple[Manifest, ...]
    missing: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether runs of the interval are there, and none is known to lack."""
        return bool(self.manifests) and not self.missing


@dataclass(frozen=True, slots=True)
class _Run:
    status: Status
    manifest: Manifest
    received: datetime


def archive_of(outboxes: Outboxes, interval: Interval) -> Archived:
    """What the archive holds of an interval, its end excluded.

    Raises:
        DefectError: the document of an outbox can't be read.
    """
    runs = list(_runs(outboxes))
    start, end = interval
    inside = [run for run in runs if start <= run.received < end]
    concluded = tuple(run.manifest for run in inside if run.status == "concluded")
    return Archived(concluded, (*_earlier(runs, start), *_between(runs, interval), *_unfinished(inside)))


def _runs(outboxes: Outboxes) -> Iterator[_Run]:
    """All runs but backfills, whatever became of them, in order of sequence."""
    for item in outboxes.all():
        manifest = outboxes.manifest(item.outbox)
        if manifest.mode != "backfill" and manifest.received_from is not None:
            yield _Run(item.status, manifest, manifest.received_from)


def _earlier(runs: Sequence[_Run], start: datetime) -> Iterator[str]:
    if runs and runs[0].manifest.sequence > 1 and start < runs[0].received:
        first = runs[0]
        yield f"{_named(1, first.manifest.sequence - 1)}, received before {_shown(first.received)}"


def _between(runs: Sequence[_Run], interval: Interval) -> Iterator[str]:
    start, end = interval
    for before, after in pairwise(runs):
        first, last = before.manifest.sequence + 1, after.manifest.sequence - 1
        if first <= last and before.received < end and after.received >= start:
            yield f"{_named(first, last)}, received between {_shown(before.received)} and {_shown(after.received)}"


def _unfinished(inside: Sequence[_Run]) -> Iterator[str]:
    for run in inside:
        if run.status in {"prepared", "approved"}:
            yield f"run {run.manifest.sequence}, received at {_shown(run.received)}, which is not concluded yet"


def _named(first: int, last: int) -> str:
    return f"run {first}" if first == last else f"runs {first} to {last}"


def _shown(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
