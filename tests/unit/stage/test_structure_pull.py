"""The choice how a registry is read: by its log, as a snapshot, or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builders.registry import urn
from builders.structure_reading import landed_changes, read_context, structure_order
from contexture.errors import DefectError
from contexture.storage.manifests import Mode
from fakes.structure_registry import FakeRegistry
from spark_jobs.structures.read import land
from spark_jobs.structures.read_context import ReadOutcome

A, B, C, D = (urn(name) for name in "ABCD")
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
TEN, NOW = "Sun, 01 Nov 2026 10:00:00 GMT", "Sun, 01 Nov 2026 11:59:59 GMT"


def landed(
    registry: FakeRegistry,
    home: Path,
    mode: Mode,
    watermark: str | None,
    *,
    sent: Iterable[str] = (),
    baseline: bool = False,
) -> ReadOutcome:
    context = read_context(registry, home, sent=sent)
    outcome = land(context, structure_order(home, mode=mode, baseline=baseline), watermark, NOON)
    context.close()
    return outcome


@pytest.fixture
def registry() -> FakeRegistry:
    held = FakeRegistry()
    held.submit({A: ()})
    held.submit({B: ()})
    return held


@pytest.fixture
def generic() -> FakeRegistry:
    held = FakeRegistry(has_log=False)
    held.submit({A: (), B: ()})
    return held


def test_a_full_read_knows_the_last_transaction_before_it(registry: FakeRegistry, tmp_path: Path) -> None:
    assert landed(registry, tmp_path, "full", "1") == ReadOutcome("2", 2, complete=True, transaction=2)
    assert registry.asked[0] == "log None"
    assert landed_changes(tmp_path) == [(None, "upsert", A), (None, "upsert", B)]


def test_a_full_read_lands_what_was_deleted_since_and_never_sent_by_us(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({C: (), D: ()})
    registry.submit({D: ("again",)}, delete=[C])

    assert landed(registry, tmp_path, "full", "2").complete
    assert landed_changes(tmp_path) == [
        (None, "upsert", A),
        (None, "upsert", B),
        (None, "upsert", D),
        (None, "delete", C),
    ]


def test_a_full_read_of_another_log_lands_what_is_there(registry: FakeRegistry, tmp_path: Path) -> None:
    assert landed(registry, tmp_path, "full", "17") == ReadOutcome("2", 2, complete=True, transaction=2)


def test_a_baseline_reads_everything_whatever_is_known(registry: FakeRegistry, tmp_path: Path) -> None:
    outcome = landed(registry, tmp_path, "changes", None, baseline=True)

    assert outcome == ReadOutcome("2", 2, complete=True, transaction=2)


def test_changes_follow_the_log(registry: FakeRegistry, tmp_path: Path) -> None:
    assert landed(registry, tmp_path, "changes", "1", sent=[A]) == ReadOutcome("2", 2, complete=False, transaction=2)
    assert landed_changes(tmp_path) == [(2, "upsert", B)]


def test_changes_after_something_else_than_a_transaction_are_a_snapshot(registry: FakeRegistry, tmp_path: Path) -> None:
    assert landed(registry, tmp_path, "changes", TEN).complete


def test_changes_without_a_log_are_a_snapshot(generic: FakeRegistry, tmp_path: Path) -> None:
    assert landed(generic, tmp_path, "changes", None) == ReadOutcome(None, 2, complete=True)


def test_the_time_of_the_last_change_is_the_watermark_without_a_log(generic: FakeRegistry, tmp_path: Path) -> None:
    generic.modified = TEN

    assert landed(generic, tmp_path, "changes", None) == ReadOutcome(TEN, 2, complete=True)


def test_a_change_just_now_is_no_watermark(generic: FakeRegistry, tmp_path: Path) -> None:
    generic.modified = NOW

    assert landed(generic, tmp_path, "changes", None).watermark is None


def test_what_has_not_changed_since_is_not_read(generic: FakeRegistry, tmp_path: Path) -> None:
    generic.modified = TEN

    assert landed(generic, tmp_path, "changes", TEN, sent=[A, B]) == ReadOutcome(TEN, 2, complete=False)
    assert landed_changes(tmp_path) == []


def test_a_deletion_that_the_registry_did_not_notice_is_read_all_the_same(
    generic: FakeRegistry, tmp_path: Path
) -> None:
    generic.modified = TEN
    generic.submit(delete=[B])

    assert landed(generic, tmp_path, "changes", TEN, sent=[A, B]).complete
    assert landed_changes(tmp_path) == [(None, "upsert", A)]


def test_a_full_read_does_not_ask_whether_anything_changed(generic: FakeRegistry, tmp_path: Path) -> None:
    generic.modified = TEN

    assert landed(generic, tmp_path, "full", TEN, sent=[A, B]).complete


def test_a_transaction_of_another_registry_is_not_asked_by(generic: FakeRegistry, tmp_path: Path) -> None:
    assert landed(generic, tmp_path, "changes", "17", sent=[A, B]).complete


@pytest.mark.parametrize("mode", ["backfill", "notifications"])
def test_other_modes_read_no_registry(registry: FakeRegistry, tmp_path: Path, mode: Mode) -> None:
    with pytest.raises(DefectError, match=f"mode {mode} reads no registry"):
        landed(registry, tmp_path, mode, None)
