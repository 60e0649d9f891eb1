"""The frames of prepared entities that the checkpoint evaluates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from contexture.publications.checks.quality import ATTRIBUTE_COLUMNS
from contexture.records.changes import ChangeKind as EventVerdict
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import LandingManifest, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder
from contexture.storage.quarantine import RuleSample
from spark_jobs.entities.attributes import ATTRIBUTE_ROWS, ATTRIBUTES_FOLDER, judges_attributes
from spark_jobs.entities.collisions import COLLISIONS_FILE
from spark_jobs.entities.manifest import newest_modification
from spark_jobs.entities.superseded import SUPERSEDED, current_rows, is_current, superseded_events
from spark_jobs.quality.columns import column_names
from spark_jobs.quality.frames import ROWS_IN_MEMORY, AcceptedFrames
from spark_jobs.quality.summary import ENTITY, RunSummary, SharedTopic, sample_warnings
from spark_jobs.shared.context import has_never_read, store_of
from spark_jobs.shared.parquet_rows import read_rows
from spark_jobs.shared.verdict import judge_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLLISIONS_SHOWN = 50
ENTITY_COLUMNS = ("identity", "service_path", "id", "type", "modified_at", "received_at", "topic")


def judge_outbox(
    spark: SparkSession, order: StageOrder, landing: LandingManifest, manifest: Manifest
) -> QualityVerdict:
    """Judges one outbox with the checkpoint, or returns the stored verdict if there is one."""
    frames = AcceptedFrames(
        lambda: accepted_entities(spark, order),
        (lambda: accepted_rows(order)) if manifest.accepted <= ROWS_IN_MEMORY else None,
    )
    is_judged = judges_attributes(order.publication)
    attributes = AcceptedFrames(lambda: accepted_attributes(spark, order)) if is_judged else None
    summary = partial(_summary, order, landing, manifest)
    return judge_once(order, manifest, frames, summary, attributes)


def accepted_entities(spark: SparkSession, order: StageOrder) -> DataFrame:
    """Reads the accepted entities, one row each, with the attributes that the publication's quality section names."""
    from pyspark.sql.functions import lit

    stored = _evaluated(order).schema
    columns = pa.schema([stored.field(name) for name in (*_columns(order), "verdict", "part", "event")])
    rows = _current(spark, order, read_rows(spark, _work(order).folder("evaluated"), columns))
    is_accepted = f"verdict <= {int(EventVerdict.UNCHANGED)} AND part = 0"
    service = lit(order.publication.source.tenant)
    return rows.where(is_accepted).select(*_columns(order)).withColumn("service", service)


def accepted_attributes(spark: SparkSession, order: StageOrder) -> DataFrame:
    """Reads the attributes of the accepted entities, one row each."""
    from pyspark.sql.functions import lit

    rows = read_rows(spark, _work(order).folder(ATTRIBUTES_FOLDER), ATTRIBUTE_ROWS)
    rows = _current(spark, order, rows)
    service = lit(order.publication.source.tenant)
    return rows.withColumn("service", service).select(*ATTRIBUTE_COLUMNS)


def accepted_rows(order: StageOrder) -> pa.Table:
    """Reads the rows of `accepted_entities` without Spark."""
    is_accepted = (ds.field("verdict") <= int(EventVerdict.UNCHANGED)) & (ds.field("part") == 0)
    table = current_rows(_work(order), _columns(order), is_accepted)
    return table.append_column("service", pa.repeat(order.publication.source.tenant, table.num_rows))


def _current(spark: SparkSession, order: StageOrder, rows: DataFrame) -> DataFrame:
    """Returns the rows whose event no newer version supersedes."""
    from pyspark.sql.pandas.types import from_arrow_schema

    events = superseded_events(_work(order))
    if not len(events):
        return rows
    superseded = spark.createDataFrame([(event,) for event in events.to_pylist()], from_arrow_schema(SUPERSEDED))
    return rows.join(superseded, "event", "left_anti")


def _evaluated(order: StageOrder) -> Any:
    return _work(order).folder("evaluated").dataset()


def _work(order: StageOrder) -> StoredFolder:
    return store_of(order).run(order.run).work


def _columns(order: StageOrder) -> list[str]:
    judged = [f"{kind}_{safe}" for safe in column_names(order.publication).values() for kind in ("type", "value")]
    return [*ENTITY_COLUMNS, *judged]


def _summary(order: StageOrder, landing: LandingManifest, manifest: Manifest) -> RunSummary:
    return RunSummary(
        read=manifest.read,
        accepted=manifest.accepted,
        quarantined=manifest.quarantined_entities,
        in_source=landing.source_count if landing.knows_source else None,
        unchanged=manifest.unchanged,
        newest_modified_at=newest_modification(_work(order)),
        reference_time=landing.finished_at,
        quarantined_by_rule=dict(manifest.quarantined),
        warnings_by_rule=dict(manifest.warnings),
        of_snapshot=dict(manifest.of_snapshot),
        retried=landing.retried is not None or landing.mode == "backfill",
        collisions=manifest.collisions,
        collided=_collision_samples(order, manifest) if manifest.collisions else (),
        notified=landing.notified,
        broken=_broken_samples(order, manifest),
        never_read=has_never_read(order, landing),
    )


def _broken_samples(order: StageOrder, manifest: Manifest) -> dict[str, tuple[RuleSample, ...]]:
    refused = store_of(order).quarantine(manifest.outbox).samples(manifest.quarantined)
    rows = _evaluated(order).filter(is_current(_work(order)))
    return sample_warnings(rows, manifest.warnings, ENTITY) | refused


def _collision_samples(order: StageOrder, manifest: Manifest) -> tuple[SharedTopic, ...]:
    outbox = store_of(order).outbox(manifest.outbox)
    with outbox.translate_errors(COLLISIONS_FILE):
        table = outbox.table(COLLISIONS_FILE)
    return tuple(SharedTopic(**row) for row in table.slice(0, COLLISIONS_SHOWN).to_pylist())
