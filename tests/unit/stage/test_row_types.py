"""A named row has the fields of the schema whose file it goes to, in its order."""

from __future__ import annotations

from pathlib import Path

from builders.outboxes import NOON, publication
from contexture.publications import fingerprint
from contexture.storage.orders import StageOrder
from contexture.storage.state import StatePointer
from spark_jobs.entities.assemble import SUMMARY, ShardSummary
from spark_jobs.entities.attributes import ATTRIBUTE_ROWS, AttributeRow
from spark_jobs.entities.rows import RENDERED, NarrowRow, RenderedRow, evaluated_schema
from spark_jobs.shared.context import StageContext


def test_a_narrow_row_ends_with_the_columns_that_quality_asks_for(tmp_path: Path) -> None:
    ranged = publication(quality={"ranges": {"speed": {"minimum": 0}}})
    order = StageOrder(
        publication=ranged, fingerprint=fingerprint(ranged), home=str(tmp_path), run="run1", mode="full", sequence=1
    )
    context = StageContext(order, "outbox1", StatePointer().to_json(), NOON)
    assert evaluated_schema(context).names == [*NarrowRow._fields[:-1], "type_speed", "value_speed"]


def test_a_rendered_row_lacks_its_shard_and_ends_with_headers() -> None:
    assert [name for name in RENDERED.names if name != "shard"] == [*RenderedRow._fields[:-1]]


def test_rows_of_attributes_and_shards_are_their_schemas() -> None:
    assert AttributeRow._fields == (*ATTRIBUTE_ROWS.names,)
    assert ShardSummary._fields == (*SUMMARY.names,)
