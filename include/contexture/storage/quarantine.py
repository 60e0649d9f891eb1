"""The quarantine of a run: rejected rows with their rules, samples of them for people, and retries of chosen ones.

Samples hold identities and reasons, never content.

Their stored bodies are not used: the registry has them, as they are now.

What was tried again leaves the listing of its quarantine when that run has concluded: marked with the outbox that tried
it, never deleted. What a rule refuses again stands in that outbox's own quarantine, with the new reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from contexture.errors import ConfigurationError
from contexture.sources.ngsi.notifications.notification import notified_form
from contexture.storage.documents import StoredDocument
from contexture.storage.home import Storage
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import Retry, StageOrder
from contexture.storage.outboxes import Outboxes
from contexture.storage.publication_store import PublicationFolder, run_name
from contexture.storage.schemas import LANDING

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
        raise empty_quarantine_error(publication, retry)
    return retry


def write_retry_landing(order: StageOrder, retry: Retry) -> LandingManifest:
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
        raise empty_quarantine_error(order.publication.name, retry)
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


def empty_quarantine_error(publication: str, retry: Retry) -> ConfigurationError:
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
    """How many rows there are, how many of them were notified, and a digest that shows which they are."""

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


def refused_structures(order: StageOrder, retry: Retry) -> tuple[str, ...]:
    """URNs of the structures that are tried again, each once; notes that this run tries them.

    Raises:
        ConfigurationError: nothing is held back any more, or nothing that a registry could be asked for.
        RetriableError: the storage failed.
    """
    storage, folder = Storage(order.home), PublicationFolder(order.publication.name)
    quarantine = Quarantine(storage, folder, retry.outbox)
    ordinals = quarantine.chosen(retry.rules)
    if not len(ordinals):
        raise empty_quarantine_error(order.publication.name, retry)
    rows = pa.concat_tables([quarantine.table(path, ["ordinal", "id"]) for path in quarantine.files])
    is_chosen = pc.is_in(rows.column("ordinal"), value_set=pa.array(ordinals))
    named = rows.filter(pc.and_(is_chosen, pc.is_valid(rows.column("id"))))
    if not named.num_rows:
        raise ConfigurationError(
            f"nothing says which structures they are that outbox {retry.outbox} holds back",
            next_step="correct them in the registry: the next run reads what changed",
            publication=order.publication.name,
            outbox=retry.outbox,
        )
    write_marks(storage, folder.chosen(order.run), np.unique(named.column("ordinal").to_numpy()))
    return tuple(sorted(set(named.column("id").to_pylist())))


SAMPLES: Final = 5
"""Of each rule."""

_ROWS: Final = 10_000
_IDENTITY: Final = ("path", "id", "type")


class RuleSample(StoredDocument):
    """Who broke a rule, and how; `message` is empty where only the rule was noted."""

    identity: str
    message: str = ""


class RuleSamples(StoredDocument):
    """What the report of one run keeps.

    Attributes:
        rules: by rule; of what rules refused, and of what they warned of.
        expectations: by name, a few of the rows that broke each.
    """

    outbox: str
    rules: Mapping[str, tuple[RuleSample, ...]]
    expectations: Mapping[str, tuple[str, ...]] = {}


def kept_samples(storage: Storage, publication: str, outbox: str) -> RuleSamples | None:
    """What the report of an outbox keeps; None when it is of an earlier version, or gone."""
    try:
        return RuleSamples.model_validate_json(storage.read(PublicationFolder(publication).samples(outbox)))
    except (FileNotFoundError, ValidationError):
        return None


def quarantine_samples(
    storage: Storage, publication: str, outbox: str, counts: Mapping[str, int]
) -> dict[str, tuple[RuleSample, ...]]:
    """The first few of what each rule refused; no more is read than it takes to find them.

    Args:
        storage: the home.
        publication: whose.
        outbox: of which run.
        counts: how many each rule refused.

    Raises:
        RetriableError: the storage did not answer.
    """
    found: dict[str, list[RuleSample]] = {rule: [] for rule in counts}
    quarantine = Quarantine(storage, PublicationFolder(publication), outbox)
    for path in quarantine.files if counts else ():
        if all(len(samples) >= min(SAMPLES, counts[rule]) for rule, samples in found.items()):
            break
        _collect(storage, path, found)
    return {rule: tuple(samples) for rule, samples in found.items() if samples}


def identity_text(path: str | None, id_: str | None, type_: str | None) -> str:
    """An entity as people name it; a structure has no path, but a URN for its id."""
    parts = (id_, type_) if path == "" else (path, id_, type_)
    return " ".join(part or "?" for part in parts)


def _collect(storage: Storage, path: str, found: Mapping[str, list[RuleSample]]) -> None:
    columns = [*_IDENTITY, "rule", "message"]
    with storage.translating(path), storage.filesystem.open_input_file(storage.path(path)) as file:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=_ROWS, columns=columns):
            for row in batch.to_pylist():
                _add(found.get(row["rule"]), row)


def _add(samples: list[RuleSample] | None, row: Mapping[str, Any]) -> None:
    if samples is not None and len(samples) < SAMPLES:
        samples.append(RuleSample(identity=identity_text(*(row[name] for name in _IDENTITY)), message=row["message"]))
