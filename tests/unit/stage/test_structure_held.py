"""State stores enough about structures to delete them in the right order in any run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.registry import codelists, urn
from builders.structure_runs import InProcess, StructurePreparer, only, registry_publication, upserts
from builders.structures import ml
from contexture.records.changes.structure_changes import HeldStructure, PublishMode, StructureEvent
from contexture.records.changes.structure_plan import StructurePlan, StructureRun, plan_structures
from contexture.records.topics.structure_routes import Router
from contexture.storage.schemas import STATE
from contexture.storage.state_files import completed
from spark_jobs.structures.plan import changed_rows, held_structures

# All of one kind and agency, so that only references decide the order.
FLOWS = [f"urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=X:F{number}(1.0)" for number in range(8)]
LATER = ("references", "is_final")


class All:
    """A route of everything to one topic."""

    select, topics = "*", ("t",)


ROUTES = Router([All()])


def planned(
    events: Sequence[StructureEvent], held: Mapping[str, HeldStructure], *, absent: bool = False
) -> StructurePlan:
    return plan_structures(events, held, ROUTES, StructureRun(PublishMode(1), proves_absence=absent, confirmed=True))


def after(held: Mapping[str, HeldStructure], plan: StructurePlan) -> dict[str, HeldStructure]:
    """State as the next run reads it: written to Parquet, read, and laid over what was there before."""
    sink = pa.BufferOutputStream()
    pq.write_table(changed_rows(held, plan.changes), sink)
    rows = pq.read_table(pa.BufferReader(sink.getvalue()))
    gone = {urn for urn, row in plan.changes.items() if row is None}
    return {**{urn: row for urn, row in held.items() if urn not in gone}, **_that_hold(rows)}


def _that_hold(rows: pa.Table) -> dict[str, HeldStructure]:
    return held_structures(rows.filter(pc.invert(rows.column("removed"))))


@st.composite
def without_circles(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    """What structures refer to: each to any that come before it in some order."""
    order = draw(st.permutations(FLOWS))
    chosen = order[: draw(st.integers(2, len(order)))]
    return {
        flow: tuple(sorted(draw(st.sets(st.sampled_from(chosen[:place]), max_size=3)))) if place else ()
        for place, flow in enumerate(chosen)
    }


@settings(deadline=None)
@given(without_circles(), st.data(), st.booleans())
def test_what_refers_is_deleted_before_what_it_refers_to_whatever_runs_published_them(references, data, absent) -> None:
    held: dict[str, HeldStructure] = {}
    runs = data.draw(st.lists(st.sets(st.sampled_from(sorted(references))), max_size=3))
    for number, flows in enumerate([*runs, set(references)]):
        content = bytes([number]) * 32
        events = [
            StructureEvent(place, "upsert", flow, None, None, content, references[flow], False)
            for place, flow in enumerate(sorted(flows))
        ]
        held = after(held, planned(events, held))
    gone = data.draw(st.sets(st.sampled_from(sorted(references)), min_size=1))
    kept = [flow for flow in sorted(references) if flow not in gone]

    if absent:
        events = [StructureEvent(place, "present", flow) for place, flow in enumerate(kept)]
    else:
        events = [
            StructureEvent(place, "delete", flow) for place, flow in enumerate(data.draw(st.permutations([*gone])))
        ]
    plan = planned(events, held, absent=absent)

    [transaction] = plan.transactions
    order = [record.urn for record in transaction.records]
    assert sorted(order) == sorted(gone)
    for flow in gone:
        for other in gone.intersection(references[flow]):
            assert order.index(flow) < order.index(other)
    assert after(held, plan).keys() == {*kept}


def test_state_of_earlier_versions_has_no_references_and_gets_them_when_a_structure_is_read() -> None:
    first = planned([StructureEvent(0, "upsert", FLOWS[0], None, None, bytes(32), (FLOWS[1],), False)], {})
    old = changed_rows({}, first.changes).drop_columns(list(LATER))

    held = held_structures(completed(old, STATE.names))
    again = planned([StructureEvent(0, "upsert", FLOWS[0], None, None, bytes(32), (FLOWS[1],), False)], held)

    assert (held[FLOWS[0]].references, held[FLOWS[0]].is_final) == ((), None)
    assert again.transactions == ()
    assert again.changes[FLOWS[0]] == first.changes[FLOWS[0]]
    assert (again.changes[FLOWS[0]] or held[FLOWS[0]]).references == (FLOWS[1],)


DRAFT = (
    '<str:Codelist id="CL_A" agencyID="X" version="1.0" isFinal="{final}"><com:Name>{name}</com:Name></str:Codelist>'
)


def version(name: str, *, final: bool) -> bytes:
    return codelists(DRAFT.format(name=name, final=str(final).lower()))


def test_a_draft_may_be_made_final_and_what_is_final_may_not_change(tmp_path: Path) -> None:
    runs = StructurePreparer(InProcess(), tmp_path, registry_publication())  # type: ignore[arg-type]
    runs.concluded(upserts(version("draft", final=False)), complete=True)

    made_final = runs.concluded(upserts(version("as it stays", final=True)), complete=True)
    changed = runs.concluded(upserts(version("as it must not be", final=True)), complete=True)

    assert "final-content" not in made_final.warnings
    assert changed.warnings["final-content"] == 1


def test_a_row_of_state_is_small(tmp_path: Path) -> None:
    count = 2_000
    lists = [urn(f"CL_{number:05d}") for number in range(count)]
    changes = {
        flow.replace("F0", f"F{number}"): HeldStructure(
            bytes(32), ("t",), references=tuple(lists[number : number + 10])
        )
        for number, flow in enumerate(FLOWS[:1] * count)
    }
    path = tmp_path / "state.parquet"

    pq.write_table(changed_rows({}, changes), path, compression="zstd", compression_level=1, use_dictionary=False)

    assert path.stat().st_size < 200 * count


def test_deletions_of_one_kind_go_by_what_an_earlier_run_read(tmp_path: Path) -> None:
    first, second = urn("CL_A"), urn("CL_B")
    extension = f"<str:CodelistExtension><str:Codelist>{second}</str:Codelist></str:CodelistExtension>"
    lists = [
        f'<str:Codelist id="CL_A" agencyID="X" version="1.0">{extension}</str:Codelist>',
        '<str:Codelist id="CL_B" agencyID="X" version="1.0"/>',
    ]
    runs = StructurePreparer(InProcess(), tmp_path, registry_publication())  # type: ignore[arg-type]
    runs.concluded(upserts(ml("3.0", ("Codelists", "".join(lists))).encode()), complete=True)

    gone = runs.concluded(only("delete", second, first, transaction=2))

    # By their names alone it would be the other way round.
    assert [[shown for shown, _ in records] for records in runs.sent(gone)] == [["-X:CL_A(1.0)", "-X:CL_B(1.0)"]]
    assert runs.held() == {}
