"""Notifications belong to an outbox until it is concluded, and are there again when it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.outboxes import outbox, records
from builders.outboxes import publication as cars
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.inbox_writer import InboxWriter
from contexture.storage.manifests import Manifest
from fakes.failing_storage import FailingStorage, KilledError

CARS = "vehicles"


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def notify(storage: Home, *bodies: bytes) -> None:
    """Each in a file of its own."""
    writer = InboxWriter(storage.publication(CARS).open_inbox_folder())
    for body in bodies:
        writer.submit({}, body).result()
    writer.close()


def waiting(storage: Home) -> list[bytes]:
    reader = storage.publication(CARS).inbox
    return [entry.body for entry in reader.entries(reader.files())]


def claimed(storage: Home, sequence: int = 1) -> Manifest:
    """An approved outbox of a run that has claimed all that waits."""
    manifest = outbox(storage, cars(), sequence, [records("car1")])
    storage.publication(CARS).landing(manifest.run).write_claim(storage.publication(CARS).inbox.claim())
    storage.publication(CARS).transfer_claim(manifest.run, manifest.outbox)
    storage.publication(CARS).outboxes.set_status(manifest.outbox, "approved", reason="a test says so")
    return manifest


def ended(storage: Home, manifest: Manifest) -> None:
    conclude(storage.publication(manifest.publication), manifest, cluster="c", target="t")


def test_concluding_removes_what_was_claimed_and_nothing_that_came_later(storage: Home) -> None:
    notify(storage, b"one", b"two")
    manifest = claimed(storage)
    notify(storage, b"three")
    assert waiting(storage) == [b"one", b"two", b"three"]
    ended(storage, manifest)
    assert waiting(storage) == [b"three"]


@pytest.mark.parametrize("end", ["abandoned", "rejected"])
def test_what_was_claimed_is_there_again_when_its_outbox_is_given_up(storage: Home, end: str) -> None:
    notify(storage, b"one")
    manifest = outbox(storage, cars(), 1, [records("car1")])
    storage.publication(CARS).landing(manifest.run).write_claim(storage.publication(CARS).inbox.claim())
    storage.publication(CARS).transfer_claim(manifest.run, manifest.outbox)
    storage.publication(CARS).outboxes.set_status(manifest.outbox, end, reason="a test says so")
    assert len(storage.publication(CARS).inbox.claim().files) == 1
    assert waiting(storage) == [b"one"]


def test_a_claim_of_a_landing_that_was_made_again_belongs_to_the_new_outbox_alone(storage: Home) -> None:
    """Concluding the first outbox must not take what only the second one holds."""
    notify(storage, b"one")
    first = claimed(storage)
    notify(storage, b"two")
    storage.publication(CARS).landing(first.run).write_claim(storage.publication(CARS).inbox.claim())
    ended(storage, first)
    assert waiting(storage) == [b"two"]


def test_a_run_that_claimed_nothing_leaves_no_list(storage: Home) -> None:
    manifest = claimed(storage)
    assert not storage.exists(f"{CARS}/outbox/{manifest.outbox}/inbox.json")
    ended(storage, manifest)


def test_wherever_concluding_dies_the_next_try_ends_it_and_nothing_is_claimed_twice(tmp_path: Path) -> None:
    reached: set[tuple[bool, int]] = set()
    for died in range(200):
        storage = Home(str(tmp_path / str(died)))
        notify(storage, b"one", b"two", b"three")
        manifest = claimed(storage)
        try:
            ended(FailingStorage(storage.root, died), manifest)
        except KilledError:
            moved = storage.publication(CARS).state.pointer().outbox == manifest.outbox
            reached.add((moved, len(waiting(storage))))
            assert moved or len(waiting(storage)) == 3, "taken before state knew of it"
            assert storage.publication(CARS).outboxes.status(manifest.outbox).status == "approved" or not waiting(
                storage
            )
            ended(storage, manifest)
            assert (waiting(storage), storage.publication(CARS).outboxes.pending()) == ([], [])
        else:
            break
    assert {(False, 3), (True, 3), (True, 2), (True, 1), (True, 0)} <= reached
