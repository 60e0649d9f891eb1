"""What is older than the archive goes, whole, and nothing else does."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builders.layout import PublicationPaths
from builders.outboxes import publication
from builders.states import Held, approved, held
from contexture.publications import fingerprint
from contexture.storage.conclusion import conclude, expire
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest, Mode
from contexture.storage.orders import StageOrder
from fakes.failing_storage import FailingStorage, KilledError

VEHICLES = publication()
FOLDER = PublicationPaths("vehicles")
DAY = timedelta(days=1)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def concluded(storage: Home, sequence: int, *cars: str) -> Manifest:
    manifest = approved(storage, VEHICLES, sequence, [Held(name) for name in cars])
    conclude(storage.publication(manifest.publication), manifest, cluster="cluster1", target="kafka1")
    return manifest


def failed(storage: Home, run: str, sequence: int, mode: Mode = "changes") -> tuple[str, ...]:
    """What a run leaves that came to no outbox; gives its folders."""
    order = StageOrder(
        publication=VEHICLES,
        fingerprint=fingerprint(VEHICLES),
        home=storage.root,
        run=run,
        mode=mode,
        sequence=sequence,
    )
    storage.write(FOLDER.order(run), order.to_json())
    folders = (FOLDER.landing(run), FOLDER.work(run), FOLDER.orders(run))
    for folder in folders:
        storage.write(f"{folder}/part.parquet", b"what was read")
    return folders


def left(storage: Home, folders: tuple[str, ...]) -> list[str]:
    return [folder for folder in folders if storage.exists(folder)]


def age(storage: Home, relative: str, days: int) -> None:
    """Lets a file, or all of a folder, be as old as this."""
    path = Path(storage.path(relative))
    at = (datetime.now(UTC) - days * DAY).timestamp()
    for file in [path] if path.is_file() else path.rglob("*"):
        os.utime(file, (at, at))


def removed(storage: Home, days: int = 0) -> list[str]:
    """Lets so many days go by."""
    return expire(storage.publication("vehicles"), archive_days=30, now=datetime.now(UTC) + days * DAY)


def test_what_ended_before_the_archive_begins_is_removed_with_all_that_belongs_to_it(storage: Home):
    old = concluded(storage, 1, "car1")
    approved(storage, VEHICLES, 2, [Held("car2")])
    for path in (FOLDER.landing(old.run), FOLDER.quarantine("outbox1"), FOLDER.report("outbox1")):
        storage.write(f"{path}/part.parquet", b"")

    assert removed(storage, 29) == []
    assert removed(storage, 31) == ["outbox1"]

    gone = (
        FOLDER.outbox("outbox1"),
        FOLDER.landing(old.run),
        FOLDER.quarantine("outbox1"),
        FOLDER.report("outbox1"),
        FOLDER.orders(old.run),
    )
    assert left(storage, gone) == []
    assert [item.outbox for item in storage.publication("vehicles").outboxes.all()] == ["outbox2"]
    assert held(storage, "vehicles") == {"car1": "a"}


def test_a_removal_that_was_cut_short_is_ended(tmp_path: Path):
    for changes in range(6):
        storage = Home(str(tmp_path / str(changes)))
        concluded(storage, 1, "car1")
        with pytest.raises(KilledError):
            removed(FailingStorage(storage.root, changes), 31)

        removed(storage, 31)

        assert storage.folders(FOLDER.outboxes()) == []


def test_pieces_of_an_outbox_that_never_became_ready_go_too(storage: Home):
    concluded(storage, 1, "car1")
    pieces = (FOLDER.outbox("half"), FOLDER.quarantine("half"), FOLDER.report("half"))
    for folder in pieces:
        storage.write(f"{folder}/shard=0/part-00000.parquet", b"half")

    removed(storage, 29)
    assert left(storage, pieces) == list(pieces)
    removed(storage, 31)
    assert left(storage, pieces) == []


def test_what_runs_that_failed_before_an_outbox_have_read_goes_too(storage: Home):
    folders = failed(storage, "broken", 1)
    concluded(storage, 1, "car1")

    removed(storage, 29)
    assert left(storage, folders) == list(folders)
    removed(storage, 31)
    assert left(storage, folders) == []


def test_that_is_done_again_when_it_was_cut_short(tmp_path: Path):
    for changes in range(3):
        storage = Home(str(tmp_path / str(changes)))
        folders = failed(storage, "broken", 1)
        concluded(storage, 1, "car1")
        age(storage, FOLDER.orders("broken"), 31)
        with pytest.raises(KilledError):
            removed(FailingStorage(storage.root, changes))

        removed(storage)

        assert left(storage, folders) == []


def test_a_failed_backfill_goes_whatever_its_number(storage: Home):
    folders = failed(storage, "replay", 9, mode="backfill")
    concluded(storage, 1, "car1")

    removed(storage, 31)

    assert left(storage, folders) == []


def test_a_run_that_still_waits_for_an_answer_keeps_what_it_has_read(storage: Home):
    concluded(storage, 1, "car1")
    folders = failed(storage, "waiting", 2)

    removed(storage, 31)

    assert left(storage, folders) == list(folders)


def test_an_old_run_whose_outbox_ended_lately_keeps_everything(storage: Home):
    waited = concluded(storage, 1, "car1")
    storage.write(f"{FOLDER.landing(waited.run)}/part.parquet", b"")
    age(storage, FOLDER.orders(waited.run), 31)

    removed(storage)

    kept = (FOLDER.landing(waited.run), FOLDER.orders(waited.run))
    assert left(storage, kept) == list(kept)


def test_nothing_is_taken_for_fruitless_where_a_manifest_can_not_be_read(storage: Home):
    folders = failed(storage, "broken", 1)
    concluded(storage, 1, "car1")
    age(storage, FOLDER.orders("broken"), 31)
    storage.write(FOLDER.manifest("outbox1"), b"{")

    removed(storage)

    assert left(storage, folders) == list(folders)


def test_an_order_that_cannot_be_read_keeps_no_landing(storage: Home):
    folders = failed(storage, "broken", 1)
    concluded(storage, 1, "car1")
    storage.write(FOLDER.order("broken"), b"{")
    age(storage, FOLDER.orders("broken"), 31)

    removed(storage)

    assert left(storage, folders) == []


def test_halves_of_files_that_a_killed_process_left_in_state_go_after_a_day(storage: Home):
    concluded(storage, 1, "car1")
    for name in (".base-1.parquet.0123", ".base-2.parquet.4567"):
        storage.write(f"{FOLDER.state()}/{name}", b"half")
    age(storage, f"{FOLDER.state()}/.base-1.parquet.0123", 2)

    removed(storage)

    hidden = {path.name for path in Path(storage.path(FOLDER.state())).iterdir() if path.name.startswith(".")}
    assert hidden == {".base-2.parquet.4567"}
    assert held(storage, "vehicles") == {"car1": "a"}
