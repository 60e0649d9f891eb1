"""Every expectation about structures holds for a good run and fails for what breaks it, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.registry_publication import registry_publication
from contexture.publications import Publication
from contexture.publications.checks.quality import STRUCTURE_COLUMNS
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import ExpectationResult, QualityVerdict
from spark_jobs.quality.checkpoint import judge
from spark_jobs.quality.frames import AcceptedFrames
from spark_jobs.quality.summary import StructureSummary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in STRUCTURE_COLUMNS.items())
SELECT = ("Codelist,Dataflow=ECB,BIS.*:*(*)",)

Judge = Callable[[Publication, list[dict[str, Any]], StructureSummary], "Judged"]


class Judged:
    """A verdict and the folder of its report."""

    def __init__(self, verdict: QualityVerdict, folder: Path) -> None:
        self.verdict = verdict
        self.folder = folder

    def __getitem__(self, name: str) -> ExpectationResult:
        return next(result for result in self.verdict.results if result.name == name)


@pytest.fixture(scope="module", params=["in memory", pytest.param("in Spark", marks=pytest.mark.long)])
def judged(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Judges rows and counts, in both ways."""

    def run(publication: Publication, rows: list[dict[str, Any]], summary: StructureSummary) -> Judged:
        folder = tmp_path_factory.mktemp("report")
        frame = spark.createDataFrame(rows, SCHEMA)
        frames = AcceptedFrames(lambda: frame, frame.toArrow if request.param == "in memory" else None)
        verdict = judge(
            publication,
            frames,
            summary,
            outbox="000000000007-abc",
            run="manual__1",
            report=StoredFolder(FileTree(str(folder)), ""),
        )
        return Judged(verdict, folder)

    return run


def codelist(name: str, **spoiled: object) -> dict[str, Any]:
    """A row that breaks nothing, but for what the test says."""
    return {
        "urn": f"urn:sdmx:org.sdmx.infomodel.codelist.Codelist=ECB:{name}(1.0)",
        "kind": "Codelist",
        "agency": "ECB",
        "id": name,
        "version": "1.0",
        "declared_urn": None,
        "source_transaction": None,
        "modified_at": None,
        "size": 1000,
        "reference_count": 0,
        "is_final": False,
        "topics": "structures,codelists",
        "warnings": None,
    } | spoiled


GOOD = StructureSummary(
    read=3,
    accepted=3,
    quarantined=0,
    in_source=3,
    unchanged=0,
    newest_modified_at=None,
    reference_time=NOON,
)

EXPECTED = [
    ("volume", "critical", "1 in the source"),
    ("quarantined-share", "critical", "1 of 1 structures (100.00%)"),
    ("accepted-share", "warning", "9 of 11 structures (81.82%)"),
    ("dangling-reference", "warning", "1 of 9 structures"),
    ("version-order", "warning", "2 found"),
    ("final-content", "critical", "3 found"),
    ("count-mismatch", "warning", "8 too many or too few"),
    ("unique-urn", "critical", "2 of 9 rows break it"),
    ("urn-present", "critical", "1 of 9 rows break it"),
    ("kind-present", "critical", "1 of 9 rows break it"),
    ("selected-agency", "critical", "1 of 9 rows break it"),
    ("selected-kind", "critical", "1 of 9 rows break it"),
    ("known-kind", "info", "1 of 9 rows break it"),
    ("version-syntax", "warning", "1 of 9 rows break it"),
    ("topic-name", "critical", "1 of 9 rows break it"),
    ("own-1:ExpectColumnValuesToBeBetween", "warning", "1 of 2 rows break it"),
]

OWN = {
    "name": "ExpectColumnValuesToBeBetween",
    "on": "structures",
    "where": "kind = 'Dataflow' AND reference_count > 0",
    "kwargs": {"column": "size", "max_value": 1000, "severity": "warning"},
}


@pytest.fixture(scope="module")
def publication() -> Publication:
    return registry_publication(
        SELECT, minimum_entities=2, rules={"final-content": "error"}, expectations=[OWN], max_quarantined_share=0.1
    )


@pytest.fixture(scope="module")
def good(judged: Judge, publication: Publication) -> Judged:
    rows = [codelist("CL_A"), codelist("CL_B", agency="BIS.X"), codelist("CL_C", topics="", version="2.3.1-draft")]
    return judged(publication, rows, GOOD)


@pytest.fixture(scope="module")
def bad(judged: Judge, publication: Publication) -> Judged:
    flow = {"kind": "Dataflow", "reference_count": 1}
    rows = [
        codelist("CL_A"),
        codelist("CL_B", urn=codelist("CL_A")["urn"]),
        codelist("CL_C", urn=None),
        codelist("CL_D", kind=None),
        codelist("CL_E", agency="BIS"),
        codelist("CL_F", kind="<script>alert(1)</script>"),
        codelist("CL_G", version="2.0-draft", **flow),
        codelist("CL_H", topics="structures,..", size=1001, **flow),
        codelist("CL_I"),
    ]
    spoiled = replace(
        GOOD,
        read=9,
        accepted=9,
        quarantined=1,
        in_source=1,
        inexpressible=1,
        warnings_by_rule={"dangling-reference": 1, "version-order": 2, "count-mismatch": 8},
        of_snapshot={"final-content": 3},
    )
    return judged(publication, rows, spoiled)


@pytest.mark.parametrize("name", [name for name, _, _ in EXPECTED])
def test_a_good_run_breaks_nothing(good: Judged, name: str) -> None:
    assert good[name].success
    assert good[name].raised is None


@pytest.mark.parametrize(("name", "severity", "observed"), EXPECTED)
def test_what_is_wrong_is_shown_with_its_severity(bad: Judged, name: str, severity: str, observed: str) -> None:
    assert (bad[name].success, bad[name].severity, bad[name].observed) == (False, severity, observed)


def test_no_other_expectation_is_judged(good: Judged, bad: Judged) -> None:
    assert [result.name for result in bad.verdict.results] == [name for name, _, _ in EXPECTED]
    assert (good.verdict.approved, bad.verdict.approved) == (True, False)
    assert {result.on for result in bad.verdict.results} == {"summary", "structures"}


def test_documents_speak_of_structures_and_show_them_as_text(bad: Judged) -> None:
    page = (bad.folder / "index.html").read_text()
    assert "entit" not in page.lower()
    # What breaks an expectation is shown by its URN.
    assert "Codelist=ECB:CL_H(1.0)" in page
    documents = [path.read_text() for path in bad.folder.rglob("*.html")]
    assert len(list((bad.folder / "data_docs" / "validations").rglob("*.html"))) == 3
    assert [text for text in documents if "<script>alert" in text] == []


def test_a_run_without_changes_is_approved(judged: Judge, publication: Publication) -> None:
    quiet = judged(publication, [], replace(GOOD, read=0, accepted=0, in_source=None))
    assert quiet.verdict.failures == ()


def test_a_sequence_of_changes_may_have_a_structure_twice(judged: Judge) -> None:
    rows = [codelist("CL_A", source_transaction=7), codelist("CL_A", source_transaction=8)]
    outcome = judged(registry_publication(), rows, replace(GOOD, accepted=2, in_source=None, notified=2))
    assert outcome.verdict.failures == ()
