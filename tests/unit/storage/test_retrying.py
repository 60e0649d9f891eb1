"""Quarantined events as the landing of a new run, and what the listing shows afterwards."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import outbox, publication
from contexture.errors import ConfigurationError
from contexture.storage.conclusion import conclude, require_full_run
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import Retry, StageOrder
from contexture.storage.publication_store import run_name
from contexture.storage.quarantine_retry import mark_retried, resolve, write_retry_landing
from contexture.storage.schemas import QUARANTINE

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FOLDER = PublicationPaths("vehicles")


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def refuse(storage: Home, name: str, *events: tuple[int, str], file: str = "0", media_type: str | None = None) -> None:
    """Writes refusals (ordinal, rule) of an outbox's run."""
    rows = [
        {
            "ordinal": ordinal,
            "operation": "upsert",
            "scope": "vehicles",
            "path": "/",
            "id": f"car{ordinal}",
            "type": "car",
            "body": f"body {ordinal}".encode(),
            "media_type": media_type,
            "received_at": NOON,
            "rule": rule,
            "severity": "error",
            "message": "wrong",
        }
        for ordinal, rule in events
    ]
    with storage.write_atomically(f"{FOLDER.quarantine(name)}/{file}.parquet") as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=QUARANTINE), path)


def order(storage: Home, retry: Retry, run: str = "again") -> StageOrder:
    return StageOrder(
        publication=publication(),
        fingerprint="new",
        home=storage.root,
        run=run,
        mode="changes",
        sequence=2,
        retry=retry,
    )


def landed(storage: Home, retry: Retry) -> tuple[LandingManifest, list[tuple[int, bytes]]]:
    manifest = write_retry_landing(
        storage.publication("vehicles"),
        order(storage, retry),
        retry,
    )
    rows = pq.read_table(storage.path(f"{FOLDER.landing('again')}/part-retried.parquet"), partitioning=None).to_pylist()
    return manifest, [(row["ordinal"], row["body"]) for row in rows]


def tried(storage: Home, retried: str, *, run: str = "again") -> Manifest:
    """An approved outbox of a run that tried what another one refused."""
    name = f"retry of {retried}"
    first = outbox(storage, publication(), 2, [()], name=name, run=run)
    manifest = first.model_copy(update={"retried": retried, "fingerprint": "new", "watermark": None})
    storage.write(FOLDER.manifest(name), manifest.to_json())
    storage.publication("vehicles").outboxes.set_status(name, "approved", reason="good")
    return manifest


def test_each_event_lands_once_in_its_order_without_gaps(storage: Home) -> None:
    outbox(storage, publication(), 1, [])
    refuse(storage, "outbox1", (900, "stale"), (7, "stale"), (7, "datetime"))
    refuse(storage, "outbox1", (7, "duplicate"), (1 << 36, "stale"), file="conflicts")

    manifest, rows = landed(storage, Retry(outbox="outbox1"))

    assert sorted(rows) == [(0, b"body 7"), (1, b"body 900"), (2, b"body 68719476736")]
    assert (manifest.rows, manifest.retried, manifest.complete, manifest.watermark_to) == (3, "outbox1", False, None)
    assert not manifest.knows_source


def test_notified_events_are_known_as_such(storage: Home) -> None:
    outbox(storage, publication(), 1, [])
    refuse(storage, "outbox1", (1, "stale"), (2, "stale"), media_type="application/json; notified=ngsiv2")
    refuse(storage, "outbox1", (3, "stale"), file="1")

    assert landed(storage, Retry(outbox="outbox1"))[0].notified == 2


def test_rules_choose_events_that_break_any_of_them(storage: Home) -> None:
    outbox(storage, publication(), 1, [])
    refuse(storage, "outbox1", (1, "stale"), (2, "datetime"), (2, "range"), (3, "enum"))

    assert [body for _, body in landed(storage, Retry(outbox="outbox1", rules=("range", "enum")))[1]] == [
        b"body 2",
        b"body 3",
    ]


def test_a_landing_that_is_there_stays(storage: Home) -> None:
    outbox(storage, publication(), 1, [])
    refuse(storage, "outbox1", (1, "stale"))
    first = landed(storage, Retry(outbox="outbox1"))

    refuse(storage, "outbox1", (2, "stale"), file="1")

    assert landed(storage, Retry(outbox="outbox1")) == first


def test_what_was_tried_leaves_the_listing_when_its_outbox_has_concluded(storage: Home) -> None:
    outbox(storage, publication(), 1, [])
    refuse(storage, "outbox1", (1, "stale"), (2, "range"))
    quarantine = storage.publication("vehicles").quarantine("outbox1")
    retry = Retry(outbox="outbox1", rules=("stale",))
    landed(storage, retry)
    manifest = tried(storage, "outbox1")
    before = quarantine.retried()

    conclude(storage.publication(manifest.publication), manifest, cluster="c", target="t")
    mark_retried(storage.publication(manifest.publication), manifest)

    assert (before, quarantine.retried()) == ({}, {1: "retry of outbox1"})
    assert quarantine.chosen(()).tolist() == [2]
    with pytest.raises(ConfigurationError, match="quarantined nothing by stale that was not retried already"):
        resolve(storage.publication("vehicles"), "outbox1", ["stale"])
    with pytest.raises(ConfigurationError, match="quarantined nothing by stale"):
        write_retry_landing(
            storage.publication("vehicles"),
            order(storage, retry, "later"),
            retry,
        )


def test_a_quarantine_that_retention_has_removed_is_not_made_again(storage: Home) -> None:
    outbox(storage, publication(), 1, [])
    refuse(storage, "outbox1", (1, "stale"))
    landed(storage, Retry(outbox="outbox1"))
    manifest = tried(storage, "outbox1")
    storage.remove(FOLDER.quarantine("outbox1"))

    mark_retried(storage.publication(manifest.publication), manifest)

    assert not storage.exists(FOLDER.quarantine("outbox1"))


def test_after_a_retry_state_is_made_by_what_it_was_before_and_by_what_the_retry_had(storage: Home) -> None:
    first = outbox(storage, publication(), 1, [()])
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="good")
    before = conclude(storage.publication(first.publication), first, cluster="c", target="t")
    require_full_run(storage.publication("vehicles"), "an outbox was abandoned")
    refuse(storage, "outbox1", (1, "stale"))
    landed(storage, Retry(outbox="outbox1"))

    conclude(
        storage.publication("vehicles"),
        tried(storage, "outbox1"),
        cluster="other",
        target="other",
    )

    after = storage.publication("vehicles").state.pointer()
    assert after.watermark == before.watermark
    assert (after.fingerprint, after.cluster, after.target) == (
        f"{before.fingerprint} and new",
        "c and other",
        "t and other",
    )
    assert (after.full_run_due, after.sequence, after.outbox) == ("an outbox was abandoned", 2, "retry of outbox1")


@pytest.mark.parametrize("text", ["outbox1", "outb", "run1", "manual__2026-03-01T12:00:00+00:00"])
def test_an_outbox_goes_by_its_id_the_beginning_of_it_or_its_run(storage: Home, text: str) -> None:
    run = run_name(text) if text.startswith("manual") else "run1"
    outbox(storage, publication(), 1, [], run=run)
    refuse(storage, "outbox1", (1, "stale"))

    assert resolve(storage.publication("vehicles"), text) == Retry(outbox="outbox1")


@pytest.mark.parametrize(("text", "found"), [("out", 0), ("outbox", 2), ("nothing", 0)])
def test_an_outbox_that_is_not_one_is_refused(storage: Home, text: str, found: int) -> None:
    for number in (1, 2):
        outbox(storage, publication(), number, [])
        refuse(storage, f"outbox{number}", (1, "stale"))

    with pytest.raises(ConfigurationError, match=f"{found} outboxes of vehicles match {text}"):
        resolve(storage.publication("vehicles"), text)
