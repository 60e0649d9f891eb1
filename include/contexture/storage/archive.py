"""The archive of a publication: the outboxes of concluded runs and the log positions of a registry, by interval.

The runs of a publication are numbered without holes. A number that no outbox on storage has is that of a run whose
archive is gone: retention has removed it, or a person, or it was made by an instance with another storage.

A run that read the registry's log sent everything between two of its transactions. A transaction without rows had
nothing of the publication's selection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.outboxes import Outboxes, Status
from contexture.storage.paths import PublicationPaths
from contexture.storage.schemas import BUNDLED_FILE

Interval = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class ArchiveCoverage:
    """What is archived of an interval.

    Attributes:
        manifests: of the concluded runs whose content was received in it, in order of sequence.
        missing: the runs that are known to be missing, a sentence for each stretch of them.
    """

    manifests: tuple[Manifest, ...]
    missing: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether runs of the interval are archived, and none is known to be missing."""
        return bool(self.manifests) and not self.missing


@dataclass(frozen=True, slots=True)
class _Run:
    status: Status
    manifest: Manifest
    received: datetime


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


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """One archived run that read a registry's log.

    Attributes:
        run: folder name of the run.
        outbox: id of what it sent.
        after: the last transaction before those that it sent.
        until: the last one that it sent.
        received_at: when it began to read.
        compared: the transaction as which it sent what a comparison found, whatever had happened up to it; None where
            the log showed everything.
    """

    run: str
    outbox: str
    after: int
    until: int
    received_at: datetime
    compared: int | None = None


class PublicationArchive:
    """The concluded runs of a publication, and those of them that read a registry's log.

    Args:
        home: where the archive is.
        publication: its name.
    """

    def __init__(self, home: FileTree, publication: str) -> None:
        self._home = home
        self._paths = PublicationPaths(publication)
        self._outboxes = Outboxes(home, publication)

    def coverage(self, interval: Interval) -> ArchiveCoverage:
        """Returns what the archive has of an interval, its end excluded.

        Raises:
            DefectError: the document of an outbox cannot be read.
        """
        runs = list(_runs(self._outboxes))
        start, end = interval
        inside = [run for run in runs if start <= run.received < end]
        concluded = tuple(run.manifest for run in inside if run.status == "concluded")
        return ArchiveCoverage(concluded, (*_earlier(runs, start), *_between(runs, interval), *_unfinished(inside)))

    @cached_property
    def _log(self) -> tuple[ArchivedRun, ...]:
        """The runs that read the log, read once."""
        return tuple(self._found())

    def run_of(self, transaction: int) -> ArchivedRun | None:
        """Returns the run whose landing covers a transaction, with or without rows of it; None: none is archived."""
        return next((each for each in self._log if each.after < transaction <= each.until), None)

    def sent_by(self, run: ArchivedRun, transaction: int) -> frozenset[str] | None:
        """Returns the URNs that were sent as a transaction, where a landing has rows of others too; else None."""
        if run.compared != transaction:
            return None
        rows = _table(StoredFolder(self._home, self._paths.shard(run.outbox, 0)), ["key", "source_transaction"])
        numbers = rows.column("source_transaction").to_pylist()
        keys = rows.column("key").to_pylist()
        sent = [key for key, number in zip(keys, numbers, strict=True) if number == transaction]
        return frozenset(key.decode() for key in sent if key is not None) | self._bundled(run, transaction, sent)

    def _bundled(self, run: ArchivedRun, transaction: int, keys: Sequence[bytes | None]) -> frozenset[str]:
        """Returns the URNs of what was sent without keys, as messages of whole transactions."""
        if None not in keys:
            return frozenset()
        outbox = StoredFolder(self._home, self._paths.outbox(run.outbox))
        with outbox.home.translate_read_errors(outbox.path):
            rows = outbox.table(BUNDLED_FILE, filters=pc.field("source_transaction") == transaction)
        return frozenset(rows.column("urn").to_pylist())

    def received(self, start: datetime, end: datetime) -> tuple[int, ...]:
        """Ids of the transactions with rows that runs of an interval read, its end excluded, rising."""
        inside = (each for each in self._log if start <= each.received_at < end)
        return tuple(sorted({number for each in inside for number in self.transactions(each.run)}))

    def transactions(self, run: str) -> list[int]:
        """Ids of the transactions that a run's landing has rows of, rising."""
        rows = _table(StoredFolder(self._home, self._paths.landing(run)), ["source_transaction"])
        numbers = pc.unique(rows.column("source_transaction")).to_pylist()
        return sorted(number for number in numbers if number is not None)

    def _found(self) -> Iterator[ArchivedRun]:
        for item in self._outboxes.all():
            if item.status == "concluded":
                found = self._read_log(self._outboxes.manifest(item.outbox))
                if found is not None:
                    yield found

    def _read_log(self, manifest: Manifest) -> ArchivedRun | None:
        if manifest.mode != "changes" or manifest.baseline:
            return None
        landing = LandingManifest.find_file(self._home, self._paths.landing_manifest(manifest.run))
        if landing is None:
            return None
        after, until = landing.watermark_from or "", landing.watermark_to or ""
        if landing.retried is not None or not (after.isdecimal() and until.isdecimal()):
            return None
        # Where a gap was closed by a comparison, what happened before its end was sent as one transaction.
        compared = next(iter(self.transactions(landing.run)), None) if landing.complete else None
        return ArchivedRun(
            run=landing.run,
            outbox=manifest.outbox,
            after=int(after) if compared is None else compared - 1,
            until=int(until),
            received_at=landing.started_at,
            compared=compared,
        )


def _table(folder: StoredFolder, columns: list[str]) -> Any:
    files = folder.files(".parquet")
    if not files:
        return pa.table({name: pa.nulls(0) for name in columns})
    with folder.home.translate_read_errors(folder.path):
        return folder.dataset(files).to_table(columns=columns)
