"""From the files of a prepared outbox of structures to its verdict on storage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.registry_publication import registry_publication
from contexture.changes import Verdict as EventVerdict
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.manifest import LandingManifest, Manifest, Verdict
from contexture.outbox.orders import StageOrder
from contexture.outbox.storage import Storage
from spark_jobs.structures import judgement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVALUATED = pa.schema(
    [
        ("event", pa.int64()),
        ("operation", pa.string()),
        ("verdict", pa.int32()),
        ("urn", pa.string()),
        ("declared_urn", pa.string()),
        ("kind", pa.string()),
        ("agency", pa.string()),
        ("id", pa.string()),
        ("version", pa.string()),
        ("source_transaction", pa.int64()),
        ("size", pa.int64()),
        ("topics", pa.list_(pa.string())),
        ("reference_count", pa.int32()),
        ("is_final", pa.bool_()),
        ("rules", pa.string()),
        ("warnings", pa.string()),
        ("modified_at", pa.timestamp("us", tz="UTC")),
    ]
)
OWN = {"name": "ExpectColumnMaxToBeBetween", "on": "structures", "kwargs": {"column": "size", "max_value": 9}}


def row(event: int, verdict: EventVerdict = EventVerdict.SEND, **more: Any) -> dict[str, Any]:
    name = f"CL_{event}"
    return {
        "event": event,
        "operation": "upsert",
        "verdict": int(verdict),
        "urn": f"urn:sdmx:org.sdmx.infomodel.codelist.Codelist=ECB:{name}(1.0)",
        "kind": "Codelist",
        "agency": "ECB",
        "id": name,
        "version": "1.0",
        "size": event,
        "topics": ["structures", "codelists"],
        "reference_count": 0,
        "is_final": False,
    } | more


@dataclass
class Run:
    """A prepared outbox on storage, and the documents about it."""

    order: StageOrder
    landing: LandingManifest
    manifest: Manifest

    @property
    def storage(self) -> Storage:
        return Storage(self.order.home)


def prepared(home: Path, rows: list[dict[str, Any]], *, complete: bool = True, **quality: Any) -> Run:
    publication = registry_publication(("*=ECB:*(*)",), **quality)
    order = StageOrder.model_construct(
        publication=publication, home=str(home), run="run1", mode="changes", sequence=1, fingerprint="f"
    )
    accepted = sum(each["verdict"] <= EventVerdict.UNCHANGED for each in rows)
    landing = LandingManifest.model_construct(
        mode="changes",
        rows=len(rows),
        present=0,
        source_count=len(rows),
        complete=complete,
        finished_at=NOON,
        retried=None,
        notified=0,
        registry_transaction=42,
    )
    manifest = Manifest.model_construct(
        outbox="outbox1",
        publication="structures",
        mode="changes",
        read=len(rows),
        accepted=accepted,
        quarantined={"identity": 1},
        quarantined_entities=1,
        unchanged=0,
        warnings={"schema": 2},
        of_snapshot={},
    )
    folder = home / PublicationFolder("structures").work("run1") / "evaluated"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=EVALUATED), folder / "part-0.parquet")
    return Run(order, landing, manifest)


ROWS = [
    row(1),
    row(2, EventVerdict.UNCHANGED, topics=[]),
    row(3, EventVerdict.QUARANTINED, topics=None, id="CL 3"),
    row(4, EventVerdict.PRESENT, operation="inexpressible", topics=None),
    row(5, EventVerdict.DELETE, operation="delete", topics=None, kind=None),
]


def test_the_verdict_counts_what_was_accepted_and_shows_the_rest(tmp_path: Path, spark: SparkSession) -> None:
    run = prepared(tmp_path, ROWS, max_quarantined_share=0.5, expectations=[OWN])
    verdict = judgement.judge_structures(spark, run.order, run.landing, run.manifest)
    observed = {result.name: result.observed for result in verdict.results}
    assert verdict.approved
    assert observed["volume"] == "5 in the source"
    assert observed["accepted-share"] == "2 of 4 structures (50.00%)"
    assert observed["count-mismatch"] == "0 too many or too few"
    assert observed["unique-urn"] == "0 of 2 rows break it"
    assert observed["own-1:ExpectColumnMaxToBeBetween"] == "observed 2"
    page = (tmp_path / "structures/report/outbox1/index.html").read_text()
    assert "<dt>On no route</dt><dd>1</dd>" in page
    assert "<dt>Not in this form</dt><dd>1</dd>" in page
    assert "<dd>42</dd>" in page


def test_a_verdict_that_stands_stands(tmp_path: Path, spark: SparkSession) -> None:
    run = prepared(tmp_path, ROWS)
    standing = Verdict(outbox="outbox1", approved=True, results=())
    run.storage.write(PublicationFolder("structures").verdict("outbox1"), standing.to_json())
    assert judgement.judge_structures(spark, run.order, run.landing, run.manifest) == standing


def test_changes_of_a_log_say_nothing_of_all_that_the_registry_holds(tmp_path: Path, spark: SparkSession) -> None:
    run = prepared(tmp_path, [row(1), row(1)], complete=False, minimum_entities=100, max_quarantined_share=1.0)
    verdict = judgement.judge_structures(spark, run.order, run.landing, run.manifest)
    observed = {result.name: result.observed for result in verdict.results}
    assert verdict.failures == ()
    assert (observed["volume"], observed["count-mismatch"]) == ("not known", "not known")
    assert "unique-urn" not in observed


def test_both_ways_of_reading_give_the_same_rows(tmp_path: Path, spark: SparkSession) -> None:
    run = prepared(tmp_path, ROWS)
    in_spark = [each.asDict() for each in judgement.accepted_structures(spark, run.order).collect()]
    assert in_spark == judgement.accepted_rows(run.order).to_pylist()
    assert [each["topics"] for each in in_spark] == ["structures,codelists", ""]
