"""Rules that compare entities with each other and with earlier runs, and numbers read from texts; with Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.landing import car
from builders.outboxes import publication
from builders.preparing import Preparer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Prepare = Callable[..., Preparer]


@pytest.fixture
def preparer(spark: SparkSession, tmp_path: Path) -> Prepare:
    def make(**changes: Any) -> Preparer:
        return Preparer(spark, tmp_path, publication(**changes))

    return make


def typed(number: int, kind: str) -> dict[str, object]:
    return {**car(number, 0), "speed": {"type": kind, "value": 5, "metadata": {}}}


def test_an_attribute_whose_type_changes_is_reported_once(preparer: Prepare) -> None:
    runs = preparer()
    first = runs.concluded([typed(1, "Number"), typed(2, "Number")])

    drifted = runs.concluded([typed(1, "Integer"), typed(2, "Number")])
    again = runs.concluded([typed(1, "Integer"), typed(2, "Integer")])
    whole = runs.concluded([typed(1, "Integer"), typed(2, "Integer")], mode="full")
    back = runs.concluded([typed(1, "Number")], present=[("/4wheels", "car2", "car")])

    counts = [manifest.warnings.get("type-drift", 0) for manifest in (first, drifted, again, whole, back)]
    assert counts == [0, 1, 0, 0, 1]
    files = runs.storage.files(runs.folder.state(), ".json")
    assert len(files) == 2
    assert runs.state.pointer().types in files


def test_a_drift_that_is_an_error_rejects_until_it_is_settled(preparer: Prepare) -> None:
    runs = preparer(quality={"rules": {"type-drift": "error"}})
    runs.concluded([typed(1, "Number")])

    found = [runs.prepare([typed(1, "Integer")]).of_snapshot for _ in range(2)]

    assert found == [{"type-drift": 1}, {"type-drift": 1}]


def test_only_a_full_run_counts_what_is_referred_to_and_is_not_there(preparer: Prepare) -> None:
    runs = preparer()
    referring = {**car(1, 1), "refCar": {"type": "Text", "value": ["car2", "car9"], "metadata": {}}}

    changes = runs.concluded([referring, car(2, 2)])
    full = runs.concluded([referring, car(2, 2)], mode="full")
    held = runs.concluded([{**referring, "refCar": {"type": "Relationship", "value": "car2"}}], mode="full")
    partial = runs.prepare([referring], mode="full", complete=False)

    counts = [manifest.warnings.get("relationship-target", 0) for manifest in (changes, full, held, partial)]
    assert counts == [0, 1, 0, 0]


@pytest.mark.parametrize("data_model", ["dm-by-entity", "dm-by-attribute"])
def test_texts_are_sent_as_numbers_where_that_is_wanted(preparer: Prepare, data_model: str) -> None:
    runs = preparer(quality={"coerce_numbers": True}, topics={"data_model": data_model})
    text = {**car(1, 0), "speed": {"type": "Number", "value": "12.50", "metadata": {}}}
    wrong = {**car(2, 0), "speed": {"type": "Number", "value": "12,5", "metadata": {}}}

    manifest = runs.concluded([text, wrong])

    assert [record["value"] for record in runs.records(manifest)] == [
        b'{"id":"car1","type":"car","speed":{"type":"Number","value":12.50,"metadata":{}}}'
    ]
    assert (manifest.warnings["number-string"], manifest.quarantined) == (1, {"number-string": 1})
