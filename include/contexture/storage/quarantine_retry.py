"""Retries of quarantined events: a run that reads them in place of its source.

The stored bodies of structures are not used, because the registry has them as they are now.

What was tried again leaves the listing of its quarantine when that run has concluded: it is marked with the outbox that
tried it, never deleted. What a rule refuses again is in the quarantine of that outbox, with the new reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.sources.ngsi.notifications.notification import notified_form
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import Retry, StageOrder
from contexture.storage.outboxes import Outboxes
from contexture.storage.publication_store import LandingStore, PublicationStore, run_name
from contexture.storage.quarantine import RETRY_MARKS, Quarantine
from contexture.storage.schemas import LANDING

_SHORTEST_PREFIX = 4
_FILE = "part-retried.parquet"
_RETRY = "retry.parquet"


def resolve(store: PublicationStore, text: str, rules: Sequence[str] = ()) -> Retry:
    """What is to be tried again.

    Args:
        store: of the publication.
        text: the id of an outbox or the beginning of it, or the id of an Airflow run.
        rules: only what one of these rules refused; everything when empty.

    Raises:
        ConfigurationError: there is no such outbox or run, or nothing of it is held back.
    """
    outboxes = store.outboxes
    known = [status.outbox for status in outboxes.all()]
    found = [name for name in known if name == text] or _matching(outboxes, known, text)
    if len(found) != 1:
        raise ConfigurationError(
            f"{len(found)} outboxes of {store.name} match {text}",
            next_step=f"choose one of: contexture outbox list {store.name} --all",
            publication=store.name,
        )
    retry = Retry(outbox=found[0], rules=tuple(rules))
    if not len(store.quarantine(retry.outbox).chosen(rules)):
        raise empty_quarantine_error(store.name, retry)
    return retry


def write_retry_landing(store: PublicationStore, order: StageOrder, retry: Retry) -> LandingManifest:
    """Writes the landing of a run that tries quarantined events again; a complete one is left as it is.

    Raises:
        ConfigurationError: all of them were tried again already.
        RetriableError: the storage failed.
    """
    landing = store.landing(order.run)
    stored = landing.find_manifest()
    if stored is not None:
        return stored
    landing.remove()
    quarantine = store.quarantine(retry.outbox)
    ordinals = quarantine.chosen(retry.rules)
    if not len(ordinals):
        raise empty_quarantine_error(store.name, retry)
    _write_marks(store, order.run, ordinals)
    manifest = _manifest(order, retry, _land(quarantine, landing, ordinals))
    landing.write_manifest(manifest)
    return manifest


def mark_retried(store: PublicationStore, manifest: Manifest) -> None:
    """Marks what a concluded outbox has tried again in its quarantine; harmless for all others."""
    if manifest.retried is None:
        return
    run, quarantine = store.run(manifest.run), store.quarantine(manifest.retried)
    # Retention may have removed the quarantine meanwhile.
    if quarantine.exists() and run.exists(_RETRY):
        store.home.copy(run.path_of(_RETRY), quarantine.path_of(f"retried/{manifest.outbox}.parquet"))


def _matching(outboxes: Outboxes, known: Sequence[str], text: str) -> list[str]:
    if len(text) >= _SHORTEST_PREFIX and (begun := [name for name in known if name.startswith(text)]):
        return begun
    return [name for name in known if outboxes.manifest(name).run in {text, run_name(text)}]


def empty_quarantine_error(publication: str, retry: Retry) -> ConfigurationError:
    """The error for a quarantine in which nothing is left to be tried."""
    of_rules = f" by {', '.join(retry.rules)}" if retry.rules else ""
    return ConfigurationError(
        f"outbox {retry.outbox} quarantined nothing{of_rules} that was not retried already",
        next_step=f"see what is quarantined: contexture quarantine show {publication}",
        publication=publication,
        outbox=retry.outbox,
    )


def _write_marks(store: PublicationStore, run: str, ordinals: Any) -> None:
    store.run(run).write_table(_RETRY, pa.table({"ordinal": ordinals}, schema=RETRY_MARKS))


class _Landed(NamedTuple):
    """How many rows there are, how many of them were notified, and a digest that shows which they are."""

    rows: int
    notified: int
    digest: str


def _land(quarantine: Quarantine, landing: LandingStore, ordinals: Any) -> _Landed:
    """Writes the chosen rows, numbered anew without gaps."""
    digest, notified = hashlib.sha256(quarantine.outbox.encode()), 0
    with landing.table_writer(_FILE, LANDING) as file:
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
    for part in quarantine.parts:
        table = quarantine.rows(part, LANDING.names)
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


def refused_structures(store: PublicationStore, order: StageOrder, retry: Retry) -> tuple[str, ...]:
    """URNs of the structures that are tried again, each once; notes that this run tries them.

    Raises:
        ConfigurationError: nothing is held back any more, or nothing that a registry could be asked for.
        RetriableError: the storage failed.
    """
    quarantine = store.quarantine(retry.outbox)
    ordinals = quarantine.chosen(retry.rules)
    if not len(ordinals):
        raise empty_quarantine_error(store.name, retry)
    rows = pa.concat_tables([quarantine.rows(part, ["ordinal", "id"]) for part in quarantine.parts])
    is_chosen = pc.is_in(rows.column("ordinal"), value_set=pa.array(ordinals))
    named = rows.filter(pc.and_(is_chosen, pc.is_valid(rows.column("id"))))
    if not named.num_rows:
        raise ConfigurationError(
            f"the identities of the structures that outbox {retry.outbox} quarantined are not known",
            next_step="correct them in the registry: the next run reads what changed",
            publication=store.name,
            outbox=retry.outbox,
        )
    _write_marks(store, order.run, np.unique(named.column("ordinal").to_numpy()))
    return tuple(sorted(set(named.column("id").to_pylist())))
