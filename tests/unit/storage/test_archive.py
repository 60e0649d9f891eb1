"""What is archived of an interval, and what of it is missing."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from contexture.storage.archive import ArchiveCoverage
from contexture.storage.home import Home
from contexture.storage.outboxes import Status

HOUR = timedelta(hours=1)
WAYS: dict[Status, tuple[Status, ...]] = {
    "prepared": (),
    "approved": ("approved",),
    "concluded": ("approved", "concluded"),
    "rejected": ("rejected",),
    "abandoned": ("abandoned",),
}


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def run(storage: Home, sequence: int, received: datetime, status: Status = "concluded", name: str = "") -> None:
    manifest = outbox(storage, publication(), sequence, [records("car1")], name=name or None, run=name or None)
    manifest = manifest.model_copy(update={"received_from": received, "received_to": received})
    storage.write(PublicationPaths("vehicles").manifest(manifest.outbox), manifest.to_json())
    for step in WAYS[status]:
        storage.publication("vehicles").outboxes.set_status(manifest.outbox, step, reason="for a test")


def of(storage: Home, start: datetime = NOON, end: datetime = NOON + HOUR) -> ArchiveCoverage:
    return storage.publication("vehicles").archive.coverage((start, end))


def sequences(found: ArchiveCoverage) -> list[int]:
    return [manifest.sequence for manifest in found.manifests]


def test_an_archive_without_holes_is_whole(storage: Home) -> None:
    for sequence in range(1, 5):
        run(storage, sequence, NOON + (sequence - 2) * HOUR / 2)

    found = of(storage)

    assert (sequences(found), found.missing, found.is_complete) == ([2, 3], (), True)


def test_a_publication_that_began_in_the_interval_lacks_nothing(storage: Home) -> None:
    run(storage, 1, NOON + HOUR / 2)

    assert of(storage).is_complete


def test_without_a_run_nothing_is_known_to_lack_and_nothing_is_there(storage: Home) -> None:
    found = of(storage)

    assert (found.manifests, found.missing, found.is_complete) == ((), (), False)


@pytest.mark.parametrize(
    ("before", "after", "missing"),
    [
        (-HOUR, HOUR / 2, ("runs 2 to 4, received between 2026-03-01 11:00:00 and 2026-03-01 12:30:00",)),
        (HOUR / 2, 2 * HOUR, ("runs 2 to 4, received between 2026-03-01 12:30:00 and 2026-03-01 14:00:00",)),
        (-HOUR, 2 * HOUR, ("runs 2 to 4, received between 2026-03-01 11:00:00 and 2026-03-01 14:00:00",)),
        (-2 * HOUR, -HOUR, ()),
        (HOUR, 2 * HOUR, ()),
    ],
)
def test_a_hole_that_may_reach_into_the_interval_is_missing(
    storage: Home, before: timedelta, after: timedelta, missing: tuple[str, ...]
) -> None:
    run(storage, 1, NOON + before)
    run(storage, 5, NOON + after)

    assert of(storage).missing == missing


def test_what_retention_removed_before_the_first_archived_run_is_missing(storage: Home) -> None:
    run(storage, 7, NOON + HOUR / 2)

    assert of(storage).missing == ("runs 1 to 6, received before 2026-03-01 12:30:00",)
    assert of(storage, NOON + HOUR / 2, NOON + 2 * HOUR).is_complete


@pytest.mark.parametrize("status", ["prepared", "approved"])
def test_a_run_that_is_not_over_is_missing(storage: Home, status: Status) -> None:
    run(storage, 1, NOON)
    run(storage, 2, NOON + HOUR / 2, status)

    found = of(storage)

    assert sequences(found) == [1]
    assert found.missing == ("run 2, received at 2026-03-01 12:30:00, which is not concluded yet",)


@pytest.mark.parametrize("status", ["rejected", "abandoned"])
def test_what_was_never_sent_is_not_missing(storage: Home, status: Status) -> None:
    run(storage, 1, NOON)
    run(storage, 2, NOON + HOUR / 4, status)
    run(storage, 2 if status == "rejected" else 3, NOON + HOUR / 2, name="again")

    found = of(storage)

    assert (len(found.manifests), found.missing) == (2, ())
