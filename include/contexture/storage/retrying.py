"""Trying quarantined events again: their stored bodies become the landing of a new run.

What was tried again leaves the listing of its quarantine when that run has concluded: marked with the outbox that tried
it, never deleted. What a rule refuses again stands in that outbox's own quarantine, with the new reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.errors import ConfigurationError
from contexture.ngsi.notifications import notified_form
from contexture.storage.layout import PublicationFolder, run_name
from contexture.storage.lifecycle import Outboxes
from contexture.storage.manifest import LandingManifest, Manifest
from contexture.storage.orders import Retry, StageOrder
from contexture.storage.schemas import LANDING
from contexture.storage.storage import Storage

_SHORTEST_PREFIX = 4
_FILE = "part-retried.parquet"
_MARKS = pa.schema([pa.field("ordinal", pa.int64(), nullable=False)])


@dataclass(frozen=True, slots=True)
class Quarantine:
    """What one outbox's run refused."""

    storage: Storage
    folder: PublicationFolder
    outbox: str

    @property
    def files(self) -> list[str]:
        """Paths of its files, in order."""
        root = self.folder.quarantine(self.outbox)
        return [f"{root}/{name}" for name in self.storage.files(root, ".parquet")]

    def table(self, path: str, columns: Sequence[str]) -> Any:
        """Columns of one of its files."""
        with self.storage.reading(path):
            known, filesystem = self.storage.path(path), self.storage.filesystem
            return pq.read_table(known, columns=list(columns), filesystem=filesystem, partitioning=None)

    def retried(self) -> Mapping[int, str]:
        """Which events were tried again, by ordinal, and by which outbox."""
        root = self.folder.retried(self.outbox)
        found: dict[int, str] = {}
        for name in self.storage.files(root, ".parquet"):
            ordinals = self.table(f"{root}/{name}", _MARKS.names).column("ordinal").to_pylist()
            found |= dict.fromkeys(ordinals, name.removesuffix(".parquet"))
        return found

    def chosen(self, rules: Sequence[str]) -> Any:
        """Ordinals of the events that are still held back, by any of the rules where some are given; rising."""
        parts = [self.table(path, ["ordinal", "rule"]) for path in self.files]
        ordinals = [_of_rules(part, rules).column("ordinal").to_numpy() for part in parts]
        if not ordinals:
            return np.empty(0, np.int64)
        return np.setdiff1d(np.concatenate(ordinals), np.array(list(self.retried()), dtype=np.int64))


def resolve(storage: Storage, publication: str, text: str, rules: Sequence[str] = ()) -> Retry:
    """What is to be tried again.

    Args:
        storage: where the outboxes are.
        publication: whose.
        text: the id of an outbox or the beginning of it, or the id of an Airflow run.
        rules: only what one of these rules refused; everything when empty.

    Raises:
        ConfigurationError: there is no such outbox or run, or nothing of it is held back.
    """
    outboxes = Outboxes(storage, publication)
    known = [status.outbox for status in outboxes.all()]
    found = [name for name in known if name == text] or _matching(outboxes, known, text)
    if len(found) != 1:
        raise ConfigurationError(
            f"{len(found)} outboxes of {publication} go by {text}",
            next_step=f"choose one of: contexture outbox list {publication} --all",
            publication=publication,
        )
    retry = Retry(outbox=found[0], rules=tuple(rules))
    if not len(Quarantine(storage, outboxes.folder, retry.outbox).chosen(rules)):
        raise nothing_held_back(publication, retry)
    return retry


def land_quarantined(order: StageOrder, retry: Retry) -> LandingManifest:
    """The landing of a run that tries quarantined events again; one that is there already is left as it is.

    Raises:
        ConfigurationError: nothing is held back any more.
        RetriableError: the storage failed.
    """
    storage, folder = Storage(order.home), PublicationFolder(order.publication.name)
    try:
        return LandingManifest.from_file(storage, folder.landing_manifest(order.run))
    except FileNotFoundError:
        storage.remove(folder.landing(order.run))
    quarantine = Quarantine(storage, folder, retry.outbox)
    ordinals = quarantine.chosen(retry.rules)
    if not len(ordinals):
        raise nothing_held_back(order.publication.name, retry)
    write_marks(storage, folder.chosen(order.run), ordinals)
    landed = _land(quarantine, f"{folder.landing(order.run)}/{_FILE}", ordinals)
    manifest = _manifest(order, retry, landed)
    storage.write(folder.landing_manifest(order.run), manifest.to_json())
    return manifest


def mark_retried(storage: Storage, manifest: Manifest) -> None:
    """Takes what a concluded outbox has tried again off its quarantine's listing; harmless for all others."""
    if manifest.retried is None:
        return
    folder = PublicationFolder(manifest.publication)
    source = folder.chosen(manifest.run)
    # Retention may have removed the quarantine meanwhile.
    if storage.exists(folder.quarantine(manifest.retried)) and storage.exists(source):
        storage.copy(source, f"{folder.retried(manifest.retried)}/{manifest.outbox}.parquet")


def _matching(outboxes: Outboxes, known: Sequence[str], text: str) -> list[str]:
    if len(text) >= _SHORTEST_PREFIX and (begun := [name for name in known if name.startswith(text)]):
        return begun
    return [name for name in known if outboxes.manifest(name).run in {text, run_name(text)}]


def _of_rules(table: Any, rules: Sequence[str]) -> Any:
    return table.filter(pc.is_in(table.column("rule"), value_set=pa.array(rules))) if rules else table


def nothing_held_back(publication: str, retry: Retry) -> ConfigurationError:
    """The error for a quarantine in which nothing is left to be tried."""
    of_rules = f" by {', '.join(retry.rules)}" if retry.rules else ""
    return ConfigurationError(
        f"outbox {retry.outbox} holds nothing back{of_rules} that was not tried again already",
        next_step=f"look at what is held back: contexture quarantine show {publication}",
        publication=publication,
        outbox=retry.outbox,
    )


def write_marks(storage: Storage, path: str, ordinals: Any) -> None:
    """Writes which events of a quarantine a run tries, by their ordinals."""
    with storage.replacing(path) as temporary:
        pq.write_table(pa.table({"ordinal": ordinals}, schema=_MARKS), temporary, filesystem=storage.filesystem)


class _Landed(NamedTuple):
    """How many rows there are, how many of them were notified, and a digest that tells which they are."""

    rows: int
    notified: int
    digest: str


def _land(quarantine: Quarantine, path: str, ordinals: Any) -> _Landed:
    """Writes the chosen rows, numbered anew without gaps."""
    storage, digest, notified = quarantine.storage, hashlib.sha256(quarantine.outbox.encode()), 0
    with (
        storage.replacing(path) as temporary,
        pq.ParquetWriter(temporary, LANDING, filesystem=storage.filesystem, compression="zstd") as file,
    ):
        for table in _first_rows(quarantine, ordinals):
            numbers = np.searchsorted(ordinals, table.column("ordinal").to_numpy())
            file.write_table(table.set_column(0, LANDING.field("ordinal"), pa.array(numbers)).cast(LANDING))
            digest.update(table.column("ordinal").to_numpy().tobytes())
            notified += sum(
                notified_form(media) is not None for media in table.column("media_type").to_pylist() if media
            )
    return _Landed(len(ordinals), notified, digest.hexdigest())


def _first_rows(quarantine: Quarantine, ordinals: Any) -> Iterator[Any]:
    """The landing rows of the events, once each; an event that breaks several rules has several rows."""
    missing = np.ones(len(ordinals), dtype=np.bool_)
    for path in quarantine.files:
        table = quarantine.table(path, LANDING.names)
        found, first = np.unique(table.column("ordinal").to_numpy(), return_index=True)
        places = np.minimum(np.searchsorted(ordinals, found), len(ordinals) - 1)
        is_new = (ordinals[places] == found) & missing[places]
        missing[places[is_new]] = False
        if is_new.any():
            yield table.take(pa.array(first[is_new]))


def _manifest(order: StageOrder, retry: Retry, landed: _Landed) -> LandingManifest:
    now = datetime.now(UTC)
    return LandingManifest(
        run=order.run,
        mode=order.mode,
        source=f"quarantine of {retry.outbox}",
        queries=(),
        watermark_from=None,
        watermark_to=None,
        rows=landed.rows,
        present=0,
        source_count=0,
        complete=False,
        started_at=now,
        finished_at=now,
        broker_time=None,
        files={_FILE: landed.digest},
        digest=hashlib.sha256(f"{landed.digest} {order.run}".encode()).hexdigest(),
        retried=retry.outbox,
        notified=landed.notified,
    )
