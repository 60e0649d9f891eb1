"""Landing the changes of a registry's log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from builders.registry import urn
from builders.structure_reading import landed, landed_changes, read_context
from contexture.errors import RetriableError
from fakes.structure_registry import NOON, FakeRegistry
from spark_jobs.structures.read_context import ReadOutcome
from spark_jobs.structures.read_log import land_logged

A, A2, B, C = urn("A"), urn("A", "2.0"), urn("B"), urn("C")


@pytest.fixture
def registry() -> FakeRegistry:
    """The first transaction is known: A and B."""
    held = FakeRegistry()
    held.submit({A: ("a",), B: ("b",)})
    return held


def land(
    registry: FakeRegistry, home: Path, *, after: int = 1, sent: Iterable[str] = (A, B), select: Iterable[str] = ()
) -> ReadOutcome:
    context = read_context(registry, home, sent=sent, select=select)
    outcome = land_logged(context, after)
    context.close()
    return outcome


def test_nothing_new_is_a_landing_without_rows(registry: FakeRegistry, tmp_path: Path) -> None:
    assert land(registry, tmp_path) == ReadOutcome("1", 2, complete=False, transaction=1)

    assert landed_changes(tmp_path) == []
    assert registry.asked == ["log 1"]


def test_each_transaction_has_its_own_content_and_deletions_at_its_end(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({A: ("a", "new"), C: ()})
    registry.submit({A: ("a", "newer")}, delete=[B])

    assert land(registry, tmp_path) == ReadOutcome("3", 2, complete=False, transaction=3)

    assert landed_changes(tmp_path) == [(2, "upsert", A), (2, "upsert", C), (3, "upsert", A), (3, "delete", B)]
    rows = landed(tmp_path)
    assert b'id="new"' in rows[0]["body"]
    assert b'id="newer"' in rows[2]["body"]
    assert rows[0]["modified_at"] == rows[1]["modified_at"] == registry.log[1].at
    assert (rows[3]["body"], rows[3]["modified_at"], rows[3]["scope"]) == (None, registry.log[2].at, "X")


def test_without_history_the_present_content_is_landed_and_what_is_gone_is_left_to_its_deletion(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    registry.has_history = False
    registry.submit({A: ("then",), C: ()})
    registry.submit({A: ("now",)}, delete=[C])

    land(registry, tmp_path)

    assert landed_changes(tmp_path) == [(2, "upsert", A), (3, "upsert", A), (3, "delete", C)]
    assert b'id="now"' in landed(tmp_path)[0]["body"]


def test_a_change_of_what_the_registry_denies_is_a_half_answer(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({A: ("new",)})
    registry.denied = {A}

    with pytest.raises(RetriableError, match=r"reports a change of, and then does not hold, .*X:A\(1.0\)"):
        land(registry, tmp_path)


def test_what_was_not_there_at_the_time_of_the_transaction_is_read_as_it_is(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    registry.submit({C: ("c",)})
    late = registry.log[1]
    registry.log[1] = type(late)(late.id, NOON, late.action, late.changed)

    land(registry, tmp_path)

    assert landed_changes(tmp_path) == [(2, "upsert", C)]


def test_the_latest_version_takes_over(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({A2: ()})

    land(registry, tmp_path, select=["*=*:*(~)"])

    assert landed_changes(tmp_path) == [(2, "upsert", A2), (2, "delete", A)]


def test_what_is_not_selected_moves_the_watermark_alone(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({C: ()})

    outcome = land(registry, tmp_path, sent=[A], select=["*=X:A(*)"])

    assert outcome == ReadOutcome("2", 1, complete=False, transaction=2)
    assert landed_changes(tmp_path) == []


def test_what_the_log_does_not_contain_yet_is_left_for_the_next_run(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({A: ("new",)})
    registry.submit({B: ("new",)})
    registry.hidden = 1

    assert land(registry, tmp_path).watermark == "2"
    assert landed_changes(tmp_path) == [(2, "upsert", A)]


def test_what_the_format_can_not_express_is_marked(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({C: ()})
    registry.inexpressible = {C}

    land(registry, tmp_path)

    assert landed_changes(tmp_path) == [(2, "inexpressible", C)]


def test_a_gap_is_closed_by_one_transaction_before_what_the_log_still_contains(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    registry.submit({A: ("lost",)})
    registry.submit({C: ()}, delete=[B])
    registry.submit({A: (("logged",))})
    registry.forgotten = 3

    assert land(registry, tmp_path) == ReadOutcome("4", 2, complete=True, transaction=4)

    assert landed_changes(tmp_path) == [(3, "upsert", C), (4, "upsert", A)]
    assert B in registry.asked


def test_a_gap_at_the_end_of_the_log_compares_everything(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({A: ("lost",)})
    registry.forgotten = 2

    assert land(registry, tmp_path) == ReadOutcome("2", 2, complete=True, transaction=2)
    assert landed_changes(tmp_path) == [(2, "upsert", A), (2, "upsert", B)]


def test_a_gap_is_not_closed_by_a_list_that_leaves_something_out(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit({A: ("lost",)})
    registry.forgotten = 2
    registry.unlisted = {B}

    with pytest.raises(RetriableError, match=r"does not list, and yet holds, .*X:B\(1.0\)"):
        land(registry, tmp_path)
