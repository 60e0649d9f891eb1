"""Preparing structures with a real Spark session: several tasks, large bodies, bounded memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.registry import codelist, codelists, urn
from builders.structure_runs import StructurePreparer, only, registry_publication, upserts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def runs(spark: SparkSession, tmp_path: Path) -> StructurePreparer:
    """A new home with a registry publication."""
    return StructurePreparer(spark, tmp_path, registry_publication())


def many(count: int, code: str = "x") -> list[bytes]:
    return [codelists(codelist(f"CL_{number:04d}", "1.0", code)) for number in range(count)]


def test_a_flush_and_the_log_after_it(runs: StructurePreparer) -> None:
    flush = runs.concluded(upserts(*many(150)), mode="full", complete=True, registry_transaction=5)
    log = runs.concluded(
        [
            *upserts(*many(3, "y"), transaction=6),
            *only("delete", urn("CL_0149"), transaction=6),
            *only("inexpressible", urn("MAP"), transaction=7),
        ]
    )

    assert (flush.records, flush.transactions, flush.upserts) == (150, 1, 150)
    assert [row["key"].decode() for row in runs.records(flush)] == [urn(f"CL_{number:04d}") for number in range(150)]
    assert [[shown for shown, _ in each] for each in runs.sent(log)] == [
        [f"+X:CL_000{number}(1.0)" for number in range(3)],
        ["-X:CL_0149(1.0)"],
    ]
    assert [row["rule"] for row in runs.quarantine(log)] == ["inexpressible"]
    assert len(runs.held()) == 150
