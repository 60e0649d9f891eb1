"""Which transactions of a registry the archive holds, and in which run's landing.

A run that read the registry's log told everything between two of its transactions, so that one without rows was one
that nothing of the publication's selection was in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.storage.layout import PublicationFolder
from contexture.storage.lifecycle import Outboxes
from contexture.storage.manifest import LandingManifest, Manifest
from contexture.storage.storage import Storage


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """One archived run that read a registry's log.

    Attributes:
        run: folder name of the run.
        outbox: id of what it sent.
        after: the last transaction before those that it told.
        until: the last one that it told.
        received_at: when it began to read.
        compared: the transaction by which it told what a comparison found, whatever had happened up to it; None where
            the log told everything.
    """

    run: str
    outbox: str
    after: int
    until: int
    received_at: datetime
    compared: int | None = None


class ArchivedLog:
    """The archived runs of a publication that read a registry's log.

    Args:
        storage: where the archive is.
        publication: its name.
    """

    def __init__(self, storage: Storage, publication: str) -> None:
        self._storage = storage
        self._folder = PublicationFolder(publication)
        self._runs = tuple(self._found(Outboxes(storage, publication)))

    def run_of(self, transaction: int) -> ArchivedRun | None:
        """The run whose landing tells a transaction, or tells that nothing of it was meant; None: none is archived."""
        return next((each for each in self._runs if each.after < transaction <= each.until), None)

    def told_by(self, run: ArchivedRun, transaction: int) -> frozenset[str] | None:
        """URNs of the structures that a transaction was told of, where a landing has rows of others too; else None."""
        if run.compared != transaction:
            return None
        rows = _table(self._storage, self._folder.shard(run.outbox, 0), ["key", "source_transaction"])
        numbers = rows.column("source_transaction").to_pylist()
        keys = rows.column("key").to_pylist()
        return frozenset(key.decode() for key, number in zip(keys, numbers, strict=True) if number == transaction)

    def received(self, start: datetime, end: datetime) -> tuple[int, ...]:
        """Ids of the transactions with rows that runs of an interval read, its end excluded, rising."""
        inside = (each for each in self._runs if start <= each.received_at < end)
        return tuple(sorted({number for each in inside for number in self.transactions(each.run)}))

    def transactions(self, run: str) -> list[int]:
        """Ids of the transactions that a run's landing has rows of, rising."""
        rows = _table(self._storage, self._folder.landing(run), ["source_transaction"])
        numbers = pc.unique(rows.column("source_transaction")).to_pylist()
        return sorted(number for number in numbers if number is not None)

    def _found(self, outboxes: Outboxes) -> Iterator[ArchivedRun]:
        for item in outboxes.all():
            if item.status == "concluded":
                found = self._read_log(outboxes.manifest(item.outbox))
                if found is not None:
                    yield found

    def _read_log(self, manifest: Manifest) -> ArchivedRun | None:
        if manifest.mode != "changes" or manifest.baseline:
            return None
        try:
            landing = LandingManifest.from_file(self._storage, self._folder.landing_manifest(manifest.run))
        except FileNotFoundError:
            return None
        after, until = landing.watermark_from or "", landing.watermark_to or ""
        if landing.retried is not None or not (after.isdecimal() and until.isdecimal()):
            return None
        # Where a gap was closed by a comparison, what happened before its end was told as one transaction.
        compared = next(iter(self.transactions(landing.run)), None) if landing.complete else None
        return ArchivedRun(
            run=landing.run,
            outbox=manifest.outbox,
            after=int(after) if compared is None else compared - 1,
            until=int(until),
            received_at=landing.started_at,
            compared=compared,
        )


def _table(storage: Storage, folder: str, columns: list[str]) -> Any:
    files = [storage.path(f"{folder}/{name}") for name in storage.files(folder, ".parquet")]
    if not files:
        return pa.table({name: pa.nulls(0) for name in columns})
    with storage.reading(folder):
        dataset: Any = ds.dataset(files, filesystem=storage.filesystem, format="parquet")
        return dataset.to_table(columns=columns)
