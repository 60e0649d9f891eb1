"""Landing a snapshot of a registry, and refusing a reply that is empty or incomplete."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.registry import urn
from builders.structure_reading import landed, landed_changes, read_context
from contexture.errors import RetriableError
from fakes.structure_registry import FakeRegistry
from spark_jobs.structures.read_context import ReadContext
from spark_jobs.structures.read_snapshot import land_snapshot

A, B, C = urn("A"), urn("B"), urn("C", agency="Y")


@pytest.fixture
def registry() -> FakeRegistry:
    held = FakeRegistry()
    held.submit({A: ("M",), B: ("F",), C: ("T",)})
    return held


def land(context: ReadContext) -> int:
    after = land_snapshot(context, context.list_structures())
    context.close()
    return len(after.selected)


def test_everything_that_is_held_is_landed_whole(registry: FakeRegistry, tmp_path: Path) -> None:
    assert land(read_context(registry, tmp_path)) == 3

    rows = landed(tmp_path)
    assert [(row["operation"], row["id"]) for row in rows] == [("upsert", A), ("upsert", B), ("upsert", C)]
    assert rows[0]["body"].count(b"<str:Codelist ") == 1
    assert b'<str:Code id="M"/>' in rows[0]["body"]
    assert {name: rows[2][name] for name in ("scope", "path", "type", "version", "source_transaction")} == {
        "scope": "Y",
        "path": "",
        "type": "Codelist",
        "version": "1.0",
        "source_transaction": None,
    }
    assert rows[0]["media_type"] == "application/vnd.sdmx.structure+xml;version=2.1"


def test_what_is_not_selected_is_neither_landed_nor_suspicious(registry: FakeRegistry, tmp_path: Path) -> None:
    assert land(read_context(registry, tmp_path, select=["Codelist=X:B(*)"])) == 1

    assert landed_changes(tmp_path) == [(None, "upsert", B)]


def test_what_an_answer_lacks_is_asked_for_alone(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.withheld = {B}

    land(read_context(registry, tmp_path))

    assert landed_changes(tmp_path) == [(None, "upsert", A), (None, "upsert", C), (None, "upsert", B)]


def test_what_the_format_can_not_express_is_marked(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.inexpressible = {B}

    land(read_context(registry, tmp_path, sent=[A, B]))

    assert landed_changes(tmp_path) == [(None, "upsert", A), (None, "upsert", C), (None, "inexpressible", B)]


def test_what_is_listed_and_denied_is_a_half_answer(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.withheld = registry.denied = {B}

    with pytest.raises(RetriableError, match=r"incomplete response: .* lists, and then does not hold, .*X:B\(1.0\)"):
        land(read_context(registry, tmp_path))


def test_what_was_sent_and_is_left_out_of_the_list_is_a_half_answer(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.unlisted = {B}

    with pytest.raises(RetriableError, match=r"does not list, and yet holds, .*X:B\(1.0\)"):
        land(read_context(registry, tmp_path, sent=[A, B]))


def test_what_is_given_and_left_out_of_the_list_is_a_half_answer(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.unlisted = {B}

    with pytest.raises(RetriableError, match=r"does not list, and yet holds, .*X:B\(1.0\)"):
        land(read_context(registry, tmp_path))


def test_what_is_given_in_no_list_and_is_denied_is_no_reason_to_doubt(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.added = {urn("LATE"): ()}

    assert land(read_context(registry, tmp_path)) == 3
    assert urn("LATE") in registry.asked


def test_answers_that_are_too_large_are_asked_for_one_by_one(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.too_large = True

    land(read_context(registry, tmp_path))

    assert landed_changes(tmp_path) == [(None, "upsert", A), (None, "upsert", B), (None, "upsert", C)]


def test_what_was_sent_and_is_gone_was_asked_for_a_second_time(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit(delete=[B])

    assert land(read_context(registry, tmp_path, sent=[A, B])) == 2

    assert landed_changes(tmp_path) == [(None, "upsert", A), (None, "upsert", C)]
    assert B in registry.asked


def test_what_was_sent_and_is_held_but_not_selected_any_more_is_not_asked_for(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    land(read_context(registry, tmp_path, sent=[A, B], select=["*=X:A(*)"]))

    assert landed_changes(tmp_path) == [(None, "upsert", A)]
    assert B not in registry.asked


def test_what_is_added_during_the_read_is_landed_too(registry: FakeRegistry, tmp_path: Path) -> None:
    context = read_context(registry, tmp_path)
    before = context.list_structures()
    registry.submit({urn("D"): ()})

    land_snapshot(context, before)
    context.close()

    assert landed_changes(tmp_path)[-1] == (None, "upsert", urn("D"))


def test_a_registry_that_falls_ill_during_the_read_is_not_believed(registry: FakeRegistry, tmp_path: Path) -> None:
    context = read_context(registry, tmp_path)
    before = context.list_structures()
    registry.ill = True

    with pytest.raises(RetriableError, match="ill"):
        land_snapshot(context, before)


def test_a_registry_that_denies_every_structure_is_not_believed(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.submit(delete=[B])
    registry.denies_all = True

    with pytest.raises(RetriableError, match="lists, and does not give when asked for it alone"):
        land(read_context(registry, tmp_path, sent=[A, B, C]))


def test_a_format_that_can_not_be_split_is_asked_for_one_by_one(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.whole = b"UNA:+.? 'UNB+UNOC:3'UNZ+1'"

    land(read_context(registry, tmp_path, media_type="application/vnd.sdmx.structure;version=edi"))

    rows = landed(tmp_path)
    assert [(row["id"], row["scope"], row["type"], row["version"]) for row in rows] == [
        (A, "X", "Codelist", "1.0"),
        (B, "X", "Codelist", "1.0"),
        (C, "Y", "Codelist", "1.0"),
    ]
    assert {row["body"] for row in rows} == {registry.whole}
    assert {row["media_type"] for row in rows} == {"application/vnd.sdmx.structure;version=edi"}


def test_an_answer_that_breaks_off_is_asked_for_again(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.withheld, registry.broken = {B}, {B: 1}

    land(read_context(registry, tmp_path))

    assert landed(tmp_path)[-1]["body"].endswith(b"</mes:Structure>")


def test_an_answer_that_can_not_be_split_at_all_is_landed_for_quarantine(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    registry.withheld, registry.broken = {B}, {B: 9}

    land(read_context(registry, tmp_path))

    last = landed(tmp_path)[-1]
    assert (last["id"], len(last["body"])) == (B, 300)


def test_a_read_that_takes_too_long_is_given_up(registry: FakeRegistry, tmp_path: Path) -> None:
    with pytest.raises(RetriableError, match="takes longer than -1 s"):
        land(read_context(registry, tmp_path, deadline_seconds=-1.0))


def test_a_task_that_fails_leaves_no_file(registry: FakeRegistry, tmp_path: Path) -> None:
    with pytest.raises(RetriableError):
        land(read_context(registry, tmp_path, deadline_seconds=-1.0))

    assert not list(tmp_path.rglob("*.parquet"))


def test_files_and_rows_are_counted(registry: FakeRegistry, tmp_path: Path) -> None:
    context = read_context(registry, tmp_path)

    land(context)

    assert sorted(context.totals.files) == ["part-00000.parquet", "part-00001.parquet", "part-marks.parquet"]
    assert context.totals.rows == 3
    assert context.queries == ["Codelist=X:*(*)", "Codelist=Y:*(*)"]
