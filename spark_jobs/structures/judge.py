"""The frame and the summary of prepared structures that the checkpoint evaluates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.publications.checks.quality import STRUCTURE_COLUMNS
from contexture.records.changes import ChangeKind as EventVerdict
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import LandingManifest, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder
from contexture.storage.quarantine import RuleSample as ConsistencyViolation
from spark_jobs.quality.frames import ROWS_IN_MEMORY, AcceptedFrames
from spark_jobs.quality.summary import STRUCTURE, ObservedSample, StructureSummary, TranscodedStructure, sample_warnings
from spark_jobs.shared.context import has_never_read, store_of
from spark_jobs.shared.parquet_rows import read_rows
from spark_jobs.shared.verdict import judge_once
from spark_jobs.structures.manifest import TRANSCODED_FILE
from spark_jobs.structures.plan import SAMPLES_FILE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = list(STRUCTURE_COLUMNS)
CONVERSIONS_SHOWN = 50


def judge_structures(
    spark: SparkSession, order: StageOrder, landing: LandingManifest, manifest: Manifest
) -> QualityVerdict:
    """Returns the checkpoint's verdict on one outbox of structures; an existing verdict is kept."""
    frames = AcceptedFrames(
        lambda: accepted_structures(spark, order),
        (lambda: accepted_rows(order)) if manifest.accepted <= ROWS_IN_MEMORY else None,
    )
    return judge_once(order, manifest, frames, lambda: _summary(order, landing, manifest))


def accepted_structures(spark: SparkSession, order: StageOrder) -> DataFrame:
    """Returns the accepted structures, one row each."""
    from pyspark.sql.functions import concat_ws

    stored = _rows(order).schema
    columns = pa.schema([stored.field(name) for name in (*COLUMNS, "verdict")])
    rows = read_rows(spark, _evaluated(order), columns)
    accepted = rows.where(f"verdict <= {int(EventVerdict.UNCHANGED)}").select(*COLUMNS)
    return accepted.withColumn("topics", concat_ws(",", "topics"))


def accepted_rows(order: StageOrder) -> pa.Table:
    """Reads the rows of `accepted_structures` without Spark."""
    table = _rows(order).to_table(columns=COLUMNS, filter=_ACCEPTED)
    joined = pc.fill_null(pc.binary_join(table["topics"].combine_chunks(), ","), "")
    return table.set_column(table.schema.get_field_index("topics"), "topics", joined)


_ACCEPTED = ds.field("verdict") <= int(EventVerdict.UNCHANGED)


def _evaluated(order: StageOrder) -> StoredFolder:
    """Returns the folder of the rows after planning (EVALUATED)."""
    return store_of(order).run(order.run).work.folder("evaluated")


def _rows(order: StageOrder) -> Any:
    return _evaluated(order).dataset()


def _summary(order: StageOrder, landing: LandingManifest, manifest: Manifest) -> StructureSummary:
    # The registry's log contains some structures, and a reply of "not modified" contains none.
    is_snapshot = landing.complete and landing.knows_source
    rows = _rows(order)
    return StructureSummary(
        read=manifest.read,
        accepted=manifest.accepted,
        quarantined=manifest.quarantined_entities,
        in_source=landing.source_count if is_snapshot else None,
        unchanged=manifest.unchanged,
        newest_modified_at=None,
        reference_time=landing.finished_at,
        quarantined_by_rule=dict(manifest.quarantined),
        warnings_by_rule=dict(manifest.warnings),
        of_snapshot=dict(manifest.of_snapshot),
        retried=landing.retried is not None or landing.mode == "backfill",
        notified=0 if is_snapshot and not _has_several_transactions(rows) else landing.rows,
        inexpressible=rows.count_rows(filter=ds.field("operation") == "inexpressible"),
        unrouted=_without_topics(rows),
        registry_transaction=landing.registry_transaction,
        missing=landing.missing,
        transcoded=manifest.transcoded,
        conversions=_conversions(manifest, order) if manifest.transcoded else (),
        samples=_samples(order),
        broken=_broken(order, manifest),
        never_read=has_never_read(order, landing),
    )


def _has_several_transactions(rows: Any) -> bool:
    """Returns whether the rows are of several transactions, so that a structure may change several times."""
    return len(pc.unique(rows.to_table(columns=["source_transaction"])["source_transaction"])) > 1


def _broken(order: StageOrder, manifest: Manifest) -> dict[str, tuple[ConsistencyViolation, ...]]:
    refused = store_of(order).quarantine(manifest.outbox).samples(manifest.quarantined)
    return sample_warnings(_rows(order), manifest.warnings, STRUCTURE) | refused


def _conversions(manifest: Manifest, order: StageOrder) -> tuple[TranscodedStructure, ...]:
    """Returns the first conversions, those with a loss before the others."""
    outbox = store_of(order).outbox(manifest.outbox)
    with outbox.translate_errors(TRANSCODED_FILE):
        table = outbox.table(TRANSCODED_FILE)
    is_lossless = pc.is_null(table["lost"])
    ordered = pa.concat_tables([table.filter(pc.invert(is_lossless)), table.filter(is_lossless)])
    return tuple(TranscodedStructure(**row) for row in ordered.slice(0, CONVERSIONS_SHOWN).to_pylist())


def _samples(order: StageOrder) -> tuple[ObservedSample, ...]:
    work = store_of(order).run(order.run).work
    # An outbox that an earlier version has prepared comes without them.
    if not work.exists(SAMPLES_FILE):
        return ()
    return tuple(ObservedSample(**row) for row in work.table(SAMPLES_FILE).to_pylist())


def _without_topics(rows: Any) -> int:
    topics = rows.to_table(columns=["topics"], filter=_ACCEPTED)["topics"]
    return int(topics.length()) - int(pc.sum(pc.greater(pc.list_value_length(topics), 0)).as_py() or 0)
