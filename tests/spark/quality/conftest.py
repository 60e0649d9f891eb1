"""Runs that are right, as frames and counts, for tests to spoil."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from contexture.publications import Publication
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import ExpectationResult, QualityVerdict
from spark_jobs.quality.checkpoint import judge
from spark_jobs.quality.frames import AcceptedFrames
from spark_jobs.quality.summary import RunSummary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

SCHEMA = (
    "identity string, service string, service_path string, id string, type string, "
    "modified_at timestamp, received_at timestamp, topic string, "
    "type_speed string, value_speed double, type_brand string, value_brand double"
)


@dataclass(frozen=True)
class Judged:
    """A verdict and the folder of its report."""

    verdict: QualityVerdict
    folder: Path

    def __getitem__(self, name: str) -> ExpectationResult:
        return next(result for result in self.verdict.results if result.name == name)

    @property
    def page(self) -> str:
        return (self.folder / "index.html").read_text()


@pytest.fixture(scope="session")
def publication() -> Publication:
    return Publication.model_validate(
        {
            "name": "vehicles",
            "source": {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "types": ["car", "bus"]},
            "quality": {
                "minimum_entities": 2,
                "maximum_entities": 1000,
                "max_quarantined_share": 0.05,
                "fresh_within_seconds": 3600,
                "required_attributes": ["brand"],
                "attribute_types": {"speed": "Number"},
                "ranges": {"speed": {"minimum": 0, "maximum": 300}},
            },
        }
    )


@pytest.fixture(scope="session")
def car() -> Callable[..., dict[str, Any]]:
    """A row that breaks nothing, but for what the test says."""

    def row(name: str, **spoiled: object) -> dict[str, Any]:
        return {
            "identity": f'["vehicles","/4wheels","{name}","car"]',
            "service": "vehicles",
            "service_path": "/4wheels",
            "id": name,
            "type": "car",
            "modified_at": NOW - timedelta(minutes=5),
            "received_at": NOW,
            "topic": f"vehicles.4wheels.{name}.car",
            "type_speed": "Number",
            "value_speed": 112.9,
            "type_brand": "Text",
            "value_brand": None,
        } | spoiled

    return row


@pytest.fixture(scope="session")
def good_run() -> RunSummary:
    return RunSummary(
        read=3,
        accepted=3,
        quarantined=0,
        in_source=3,
        unchanged=0,
        newest_modified_at=NOW - timedelta(minutes=5),
        reference_time=NOW,
    )


@pytest.fixture(scope="session", params=["in memory", "in Spark"])
def judged(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Publication, list[dict[str, Any]], RunSummary], Judged]:
    """Judges rows and counts, in both ways, and gives the verdict with its report."""

    def run(publication: Publication, rows: list[dict[str, Any]], summary: RunSummary) -> Judged:
        folder = tmp_path_factory.mktemp("report")
        frame: DataFrame = spark.createDataFrame(rows, SCHEMA)
        memory = frame.toArrow if request.param == "in memory" else None
        frames = AcceptedFrames(lambda: frame, memory)
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
