"""A storage that shows a folder as it was a moment ago never makes anything look gone, or leaves it unsent."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from builders.outboxes import NOON, publication
from contexture.errors import RetriableError
from contexture.publications import fingerprint
from contexture.storage.orders import StageOrder
from contexture.storage.state import StatePointer
from spark_jobs.entities.rows import NARROW, evaluated_folder, evaluated_schema, narrow_rows
from spark_jobs.shared.context import StageContext, event_number


@pytest.fixture
def context(tmp_path: Path) -> StageContext:
    order = StageOrder(
        publication=publication(),
        fingerprint=fingerprint(publication()),
        home=str(tmp_path),
        run="run1",
        mode="full",
        sequence=1,
    )
    return StageContext(order, "outbox1", StatePointer().to_json(), NOON)


def write_rows(context: StageContext, name: str, *events: tuple[int, int]) -> None:
    """Narrow rows of events, each an object and a part of it."""
    schema = evaluated_schema(context)
    row = {
        "verdict": 0,
        "received_at": NOON,
        "notified": False,
        "identified": True,
        "identity": "",
        "service_path": "/",
        "id": "",
        "type": "",
    }
    rows = [
        {**row, "event": event_number(*event), "part": event[1], "identity_hash": bytes(16), "entity_hash": bytes(16)}
        for event in events
    ]
    evaluated_folder(context).write_table(f"{name}.parquet", pa.Table.from_pylist(rows, schema=schema))


def test_rows_of_all_that_was_landed_are_planned_with(context: StageContext) -> None:
    write_rows(context, "read", (0, 0), (0, 1), (1, 0))
    write_rows(context, "notified", (-7, 0), (-6, 0), (-6, 1))
    found = narrow_rows(context, 4)
    assert (found.num_rows, found.column_names) == (6, NARROW)


def test_a_file_that_is_not_listed_yet_is_not_taken_for_what_is_gone(context: StageContext) -> None:
    write_rows(context, "0", (0, 0), (1, 0), (1, 1))
    with pytest.raises(RetriableError, match="2 of 5 landed objects are visible"):
        narrow_rows(context, 5)
