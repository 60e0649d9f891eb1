"""Rules about all that a registry holds, through a run's preparation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from builders import structures
from builders.registry import ECB_EXR1, EXR, STRUCTURE_OF_EXR, codelist, codelists
from builders.structure_runs import InProcess, Row, StructurePreparer, only, registry_publication, upserts
from spark_jobs.structures.plan import SAMPLES_FILE

FLOW = structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1)).encode()
STRUCTURE = structures.ml("2.1", ("DataStructures", STRUCTURE_OF_EXR)).encode()


def runs(home: Path, **rules: str) -> StructurePreparer:
    publication = registry_publication(quality={"rules": {"schema": "off", **rules}})
    return StructurePreparer(InProcess(), home, publication)  # type: ignore[arg-type]


def test_a_reference_to_what_the_registry_lacks_is_counted_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = runs(tmp_path).prepare(upserts(FLOW), complete=True)
    assert manifest.warnings == {"dangling-reference": 1}
    assert [record.getMessage() for record in caplog.records if "dangling" in record.getMessage()] == [
        f"{EXR} breaks dangling-reference: '{ECB_EXR1}' is not stored"
    ]


def test_the_first_structures_of_each_rule_are_kept_for_the_report(tmp_path: Path) -> None:
    flows = [FLOW.replace(b'id="EXR"', f'id="F{number:02d}"'.encode()) for number in range(12)]
    registry = runs(tmp_path)

    registry.prepare(upserts(*flows), complete=True)

    rows = pq.read_table(registry.storage.path(f"{registry.folder.work('run1')}/{SAMPLES_FILE}")).to_pylist()
    assert [row["urn"].partition("=")[2] for row in rows] == [f"ECB:F{number:02d}(1.0)" for number in range(10)]
    assert {(row["rule"], row["message"]) for row in rows} == {("dangling-reference", f"'{ECB_EXR1}' is not stored")}


@pytest.mark.parametrize(
    "beside",
    [
        upserts(STRUCTURE),
        only("inexpressible", ECB_EXR1),
        [Row("upsert", ECB_EXR1, b"<broken")],
    ],
)
def test_what_the_registry_shows_is_not_missing_whatever_becomes_of_it(tmp_path: Path, beside: list[Any]) -> None:
    manifest = runs(tmp_path).prepare([*upserts(FLOW), *beside], complete=True)
    assert "dangling-reference" not in manifest.warnings


def test_what_was_published_is_held_until_it_is_deleted(tmp_path: Path) -> None:
    registry = runs(tmp_path)
    registry.concluded(upserts(STRUCTURE), complete=True, registry_transaction=1)
    flow = registry.concluded(upserts(FLOW, transaction=2), registry_transaction=2)
    assert flow.warnings == {}
    rows = [*upserts(FLOW.replace(b"Rates", b"Other"), transaction=3), *only("delete", ECB_EXR1, transaction=4)]
    assert registry.concluded(rows, registry_transaction=4).warnings == {"dangling-reference": 1}


def test_a_publication_may_reject_a_run_for_it(tmp_path: Path) -> None:
    manifest = runs(tmp_path, **{"dangling-reference": "error"}).prepare(upserts(FLOW), complete=True)
    assert (manifest.of_snapshot, manifest.warnings) == ({"dangling-reference": 1}, {})


def test_a_version_that_comes_late_and_a_final_one_that_changes_are_counted(tmp_path: Path) -> None:
    registry = runs(tmp_path)
    registry.concluded(upserts(codelists(codelist("CL_A", "2.0.0"))), complete=True, registry_transaction=1)
    rows = [
        *upserts(codelists(codelist("CL_A", "1.0.0")), transaction=2),
        *upserts(codelists(codelist("CL_A", "2.0.0", "x")), transaction=3),
    ]
    manifest = registry.prepare(rows, registry_transaction=3)
    assert manifest.warnings == {"final-content": 1, "version-order": 1}


def test_only_the_first_that_break_a_rule_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    flows = [FLOW.replace(b'id="EXR"', f'id="EXR{number}"'.encode()) for number in range(25)]
    manifest = runs(tmp_path).prepare(upserts(*flows), complete=True)
    named = [record.getMessage() for record in caplog.records if "break" in record.getMessage()]
    assert (manifest.warnings, len(named), named[-1]) == ({"dangling-reference": 25}, 21, "5 more break such rules")


def test_items_of_the_same_id_are_counted_by_structure(tmp_path: Path) -> None:
    twice = codelists(codelist("CL_A", "1.0", "x", "x"), codelist("CL_B", "1.0", "x", "y"))
    manifest = runs(tmp_path).prepare(upserts(twice), complete=True)
    assert (manifest.warnings, manifest.accepted) == ({"duplicate-item": 1}, 2)
