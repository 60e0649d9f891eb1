"""From a landing of structures over its preparation to the verdict on storage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.registry import SEX, SEX_AND_FLOW, codelist, codelists, urn
from builders.structure_runs import (
    InProcess,
    Row,
    StructurePreparer,
    only,
    registry_publication,
    structure_order,
    upserts,
)
from contexture.publications.checks.quality import STRUCTURE_COLUMNS
from contexture.storage.manifests import LandingManifest, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder
from spark_jobs.structures.judge import accepted_rows, accepted_structures, judge_structures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

REFERENCES = {
    "name": "ExpectColumnMaxToBeBetween",
    "on": "structures",
    "kwargs": {"column": "reference_count", "max_value": 1},
}


class Runs:
    """Prepares and judges the runs of a publication that routes code lists alone."""

    def __init__(self, spark: SparkSession, home: Path, **quality: Any) -> None:
        routes = [{"select": "Codelist=*:*(*)", "topics": ["structures", "codelists"]}]
        self.home = home
        self.publication = registry_publication(topics={"routes": routes}, quality=quality)
        self._preparer = StructurePreparer(InProcess(), home, self.publication)  # type: ignore[arg-type]
        self._spark = spark

    @property
    def order(self) -> StageOrder:
        """That of the last run."""
        number = self._preparer.runs
        return structure_order(
            publication=self.publication, home=str(self.home), run=f"run{number}", mode="changes", sequence=number
        )

    def prepared(self, rows: list[Row], **landed: Any) -> Manifest:
        """The outbox of a new run, concluded so that a next one follows on it."""
        return self._preparer.concluded(rows, **landed)

    def judged(self, manifest: Manifest) -> QualityVerdict:
        """The verdict on the outbox of the last run."""
        path = self._preparer.folder.landing_manifest(self.order.run)
        landing = LandingManifest.model_validate_json(self._preparer.storage.read(path))
        return judge_structures(self._spark, self.order, landing, manifest)

    def page(self, manifest: Manifest) -> str:
        """The report on an outbox."""
        return (self.home / self._preparer.folder.report(manifest.outbox) / "index.html").read_text()


def shown(verdict: QualityVerdict) -> dict[str, str]:
    return {result.name: result.observed for result in verdict.results}


def failed(verdict: QualityVerdict) -> list[str]:
    return [result.name for result in verdict.failures]


SNAPSHOT = [
    *upserts(SEX_AND_FLOW, codelists(codelist("CL_A"))),
    Row("upsert", None, codelists(codelist("CL_B").replace('agencyID="X"', ""))),
    *only("inexpressible", urn("MAP")),
]


def test_a_snapshot_is_judged_by_all_that_it_holds(spark: SparkSession, tmp_path: Path) -> None:
    runs = Runs(spark, tmp_path, max_quarantined_share=0.5, expectations=[REFERENCES])
    manifest = runs.prepared(SNAPSHOT, complete=True, registry_transaction=1234, source_count=5)
    verdict = runs.judged(manifest)
    observed = shown(verdict)
    assert (verdict.approved, failed(verdict)) == (True, ["dangling-reference", "count-mismatch"])
    assert observed["volume"] == "5 in the source"
    assert observed["quarantined-share"] == "1 of 5 structures (20.00%)"
    assert observed["accepted-share"] == "3 of 5 structures (60.00%)"
    assert observed["dangling-reference"] == "1 of 3 structures"
    assert observed["count-mismatch"] == "1 too many or too few"
    assert observed["unique-urn"] == "0 of 3 rows break it"
    assert observed["own-1:ExpectColumnMaxToBeBetween"] == "observed 1"
    page = runs.page(manifest)
    assert "<dd>1234</dd>" in page
    assert "<dt>Without a route</dt><dd>1</dd>" in page
    assert "<dt>Not in this form</dt><dd>1</dd>" in page
    assert "<code>urn-missing</code>" in page


def test_a_rule_about_all_that_is_held_may_reject_the_run(spark: SparkSession, tmp_path: Path) -> None:
    runs = Runs(spark, tmp_path, rules={"dangling-reference": "error"})
    verdict = runs.judged(runs.prepared(upserts(SEX_AND_FLOW), complete=True, source_count=2))
    assert (verdict.approved, failed(verdict)) == (False, ["dangling-reference"])
    assert shown(verdict)["dangling-reference"] == "1 found"


def test_changes_of_a_log_say_nothing_of_all_that_the_registry_holds(spark: SparkSession, tmp_path: Path) -> None:
    runs = Runs(spark, tmp_path, minimum_entities=1000)
    runs.prepared(upserts(codelists(codelist("CL_A", "2.0"))), complete=True, registry_transaction=1)
    rows = [
        *upserts(codelists(codelist("CL_A", "1.0")), transaction=2),
        *upserts(codelists(codelist("CL_A", "1.0", "x")), transaction=3),
        *only("delete", SEX, transaction=4),
    ]
    verdict = runs.judged(runs.prepared(rows, registry_transaction=4))
    observed = shown(verdict)
    assert (verdict.approved, failed(verdict)) == (True, ["version-order"])
    assert observed["version-order"] == "1 found"
    assert (observed["volume"], observed["count-mismatch"]) == ("not known", "not known")
    assert observed["urn-present"] == "0 of 2 rows break it"
    assert "unique-urn" not in observed


def test_an_existing_verdict_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    runs = Runs(spark, tmp_path)
    manifest = runs.prepared(SNAPSHOT, complete=True)
    existing = QualityVerdict(outbox=manifest.outbox, approved=True, results=())
    path = tmp_path / "structures" / "report" / manifest.outbox / "verdict.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(existing.to_json())
    assert runs.judged(manifest) == existing


def test_both_ways_of_reading_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    runs = Runs(spark, tmp_path)
    runs.prepared(SNAPSHOT, complete=True)
    frame = accepted_structures(spark, runs.order)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == list(STRUCTURE_COLUMNS.items())
    rows = [each.asDict() for each in frame.collect()]
    assert rows == accepted_rows(runs.order).to_pylist()
    assert [each["topics"] for each in rows] == ["structures,codelists", "", "structures,codelists"]


def test_a_structure_that_is_read_twice_is_judged_and_sent_once(spark: SparkSession, tmp_path: Path) -> None:
    runs = Runs(spark, tmp_path)
    one = upserts(codelists(codelist("CL_A")))
    manifest = runs.prepared([*one, *upserts(codelists(codelist("CL_B"))), *one], complete=True, registry_transaction=1)
    verdict = runs.judged(manifest)
    assert (verdict.approved, failed(verdict)) == (True, [])
    assert (manifest.accepted, manifest.repeated, manifest.upserts) == (2, 1, 2)
    assert shown(verdict)["unique-urn"] == "0 of 2 rows break it"


def test_of_a_structure_that_changes_while_it_is_read_the_last_content_is_judged_where_it_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = Runs(spark, tmp_path, rules={"duplicate": "warning"})
    rows = upserts(codelists(codelist("CL_A", "1.0", "first")), codelists(codelist("CL_A", "1.0", "second")))
    verdict = runs.judged(runs.prepared(rows, complete=True, registry_transaction=1))
    assert (verdict.approved, failed(verdict)) == (True, [])


def test_other_content_of_a_structure_in_one_snapshot_is_refused_still(spark: SparkSession, tmp_path: Path) -> None:
    runs = Runs(spark, tmp_path)
    rows = upserts(codelists(codelist("CL_A", "1.0", "first")), codelists(codelist("CL_A", "1.0", "second")))
    manifest = runs.prepared([*rows, *upserts(codelists(codelist("CL_B")))], complete=True, registry_transaction=1)
    assert (manifest.quarantined, manifest.accepted) == ({"duplicate": 2}, 1)
    assert failed(runs.judged(manifest)) == ["quarantined-share", "accepted-share"]


def test_a_structure_that_changes_again_behind_a_catch_up_is_no_duplicate(spark: SparkSession, tmp_path: Path) -> None:
    runs = Runs(spark, tmp_path)
    rows = [
        *upserts(codelists(codelist("CL_A", "1.0", "first")), transaction=3),
        *upserts(codelists(codelist("CL_A", "1.0", "second")), transaction=4),
    ]
    manifest = runs.prepared(rows, complete=True, registry_transaction=4)
    verdict = runs.judged(manifest)
    assert (verdict.approved, failed(verdict), manifest.upserts) == (True, [], 2)
