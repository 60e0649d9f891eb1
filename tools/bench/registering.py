"""`registry`: a full flush of a registry, from its first list to concluded records on Kafka, in one transaction.

As `source` does for a broker: the steps of a run one after the other, each size once; what was read back equals what
was prepared, or the bench fails.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from contexture.publications import Publication
from contexture.sources.sdmx.registry import RegistryConnection
from contexture.storage.manifests import LandingManifest, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder
from spark_jobs.shared.outbox import Stopwatch
from spark_jobs.structures.judge import judge_structures
from spark_jobs.structures.prepare import prepare_structures
from spark_jobs.structures.read import read_structures
from tools.bench.measures import Measure
from tools.bench.outbox_files import PUBLICATION
from tools.bench.senders import bench_kafka
from tools.bench.settings import Setting
from tools.bench.source_process import source_registry
from tools.bench.sourcing import SourceRun
from tools.bench.steps import StepReport, Taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def registry(setting: Setting) -> list[Measure]:
    """Every size once, ascending."""
    report = StepReport("registry", "structures")
    return report.measures(report.taken(setting, setting.sizes.registry_structures, _taken))


def _taken(setting: Setting, structures: int) -> Taken:
    folder = setting.folder / str(structures)
    setting.progress(f"{structures:,} structures: filling a registry")
    with source_registry(structures) as url:
        run = RegistryRun(folder, structures)
        manifest = run.stage(url, setting)
    if manifest.transactions != 1:
        raise RuntimeError(f"the flush takes {manifest.transactions} transactions")
    with bench_kafka(setting) as kafka:
        run.publish(manifest, kafka)
        run.check(kafka)
    shutil.rmtree(folder)
    return run.taken


class RegistryRun(SourceRun):
    """One full flush of a registry."""

    def _pulled(self, spark: SparkSession, order: StageOrder, url: str) -> LandingManifest:
        return read_structures(spark, order, RegistryConnection(url), None)

    def _prepared(self, spark: SparkSession, order: StageOrder, landing: LandingManifest) -> Manifest:
        return prepare_structures(spark, order, landing, Stopwatch())

    def _judged(
        self, spark: SparkSession, order: StageOrder, landing: LandingManifest, manifest: Manifest
    ) -> QualityVerdict:
        return judge_structures(spark, order, landing, manifest)

    def _publication(self) -> Publication:
        return Publication.model_validate(
            {
                "name": PUBLICATION,
                "source": {"kind": "sdmx", "connection": "none"},
                "topics": {"topics": "structures"},
            }
        )
