"""Reads that do not show what was deleted, run after run, become a state of the publication."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.landing import landing
from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.incompleteness import Incompleteness, incompleteness_after

VEHICLES = publication()
CAR = {"id": "car1", "type": "car"}
SEEN = [("/4wheels", "car1", "car"), ("/4wheels", "car2", "car")]


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def concluded_run(
    storage: Home, sequence: int, *, complete: bool, detects_deletions: bool = True, **others: object
) -> Incompleteness | None:
    """The incompleteness after a run has concluded."""
    manifest = outbox(storage, VEHICLES, sequence, [records("car1")])
    changes = {"present": SEEN, "complete": complete, **others}
    landing(storage, "vehicles", manifest.run, [CAR], **changes)  # type: ignore[arg-type]
    storage.publication("vehicles").outboxes.set_status(manifest.outbox, "approved", reason="good")
    conclude(
        storage.publication(manifest.publication),
        manifest,
        cluster="c",
        target="t",
        detects_deletions=detects_deletions,
    )
    return storage.publication("vehicles").state.pointer().incomplete


def test_three_incomplete_reads_in_a_row_last_and_one_complete_read_ends_it(storage: Home) -> None:
    found = [concluded_run(storage, sequence, complete=False) for sequence in (1, 2, 3, 4)]
    assert [(each.runs, each.is_lasting, each.is_alert_due) for each in found if each is not None] == [
        (1, False, False),
        (2, False, False),
        (3, True, True),
        (4, True, False),
    ]
    assert len({each.since for each in found if each is not None}) == 1
    assert concluded_run(storage, 5, complete=True) is None
    again = concluded_run(storage, 6, complete=False)
    assert again is not None
    assert again.runs == 1


def test_people_are_alerted_again_after_each_further_hundred_runs() -> None:
    at = "2026-03-01T12:00:00Z"
    due = [
        runs
        for runs in range(1, 301)
        if Incompleteness.model_validate({"since": at, "runs": runs, "why": "", "next_step": ""}).is_alert_due
    ]
    assert due == [3, 100, 200, 300]


@pytest.mark.parametrize(
    ("mode", "source_count", "why"),
    [
        ("changes", 5, "the last read found 2 of the 5 entities that the broker counts"),
        ("changes", 2, "the broker's response does not show the identity of every entity, or ended early"),
        ("full", 5, "the last read found 3 of the 5 entities that the broker counts"),
    ],
)
def test_why_a_read_was_incomplete_follows_from_what_it_found(
    storage: Home, mode: str, source_count: int, why: str
) -> None:
    manifest = outbox(storage, VEHICLES, 1, [records("car1")])
    read = landing(storage, "vehicles", manifest.run, [CAR], present=SEEN, complete=False, mode=mode)
    changed = read.model_copy(update={"source_count": source_count})
    storage.write(PublicationPaths("vehicles").landing_manifest(manifest.run), changed.to_json())
    found = incompleteness_after(storage.publication("vehicles").landing(manifest.run).manifest(), None, NOON)
    assert found is not None
    assert (found.since, found.runs, found.why) == (NOON, 1, why)


@pytest.mark.parametrize("mode", ["notifications", "backfill"])
def test_a_run_that_does_not_read_the_whole_source_says_nothing_of_it(storage: Home, mode: str) -> None:
    before = concluded_run(storage, 1, complete=False)
    assert concluded_run(storage, 2, complete=False, mode=mode) == before


def test_a_publication_that_detects_no_deletions_misses_none(storage: Home) -> None:
    concluded_run(storage, 1, complete=False)
    assert concluded_run(storage, 2, complete=False, detects_deletions=False) is None
