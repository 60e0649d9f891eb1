"""Expectations about single attributes, from what was pulled to the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.landing import car
from builders.preparing import Preparer
from contexture.publications import Publication, fingerprint
from contexture.storage.manifests import LandingManifest, QualityVerdict
from contexture.storage.orders import StageOrder
from spark_jobs.entities.judge import accepted_attributes, judge_outbox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OWN = [
    {
        "name": "expect_column_values_to_be_between",
        "on": "attributes",
        "where": "attribute = 'speed'",
        "kwargs": {"column": "number", "max_value": 100, "severity": "warning"},
    },
    {
        "name": "expect_column_values_to_match_regex",
        "on": "attributes",
        "where": "attribute_type = 'Text'",
        "kwargs": {"column": "text", "regex": "^[A-Z0-9-]+$", "severity": "info"},
    },
    {
        "name": "ExpectColumnDistinctValuesToContainSet",
        "on": "attributes",
        "kwargs": {"column": "attribute", "value_set": ["speed"]},
    },
    {"name": "ExpectColumnValuesToBeUnique", "kwargs": {"column": "id"}},
]


def entity(number: int, speed: object, **more: object) -> dict[str, object]:
    return {"id": f"car{number}", "type": "car", "speed": {"type": "Number", "value": speed}, **more}


@pytest.fixture(scope="module", params=["dm-by-entity", "dm-by-attribute"])
def world(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run of three cars, one of which is refused, and its verdict."""
    publication = Publication.model_validate(
        {
            "name": "vehicles",
            "source": {"kind": "ngsi", "connection": "broker", "service": "vehicles"},
            "topics": {"data_model": request.param},
            "quality": {"expectations": OWN, "max_quarantined_share": 1.0},
        }
    )
    preparer = Preparer(spark, tmp_path_factory.mktemp("attributes"), publication)
    plate = {"type": "Text", "value": "ab 12"}
    entities = [entity(1, 50), entity(2, 250, plate=plate), b"{"]
    manifest = preparer.prepare(entities)
    order = StageOrder(
        publication=publication,
        fingerprint=fingerprint(publication),
        home=preparer.storage.root,
        run="run1",
        mode="changes",
        sequence=1,
    )
    landing = LandingManifest.model_validate_json(preparer.storage.read(preparer.folder.landing_manifest("run1")))
    rows = accepted_attributes(spark, order).collect()
    return rows, judge_outbox(spark, order, landing, manifest), preparer


def test_each_attribute_of_an_accepted_entity_is_a_row(world: Any) -> None:
    rows, _, _ = world
    found = sorted((row.id, row.attribute, row.attribute_type, row.number, row.text) for row in rows)
    assert found == [
        ("car1", "speed", "Number", 50.0, None),
        ("car2", "plate", "Text", None, "ab 12"),
        ("car2", "speed", "Number", 250.0, None),
    ]
    assert {(row.service, row.service_path, row.type) for row in rows} == {("vehicles", "/", "car")}


def test_expectations_about_attributes_are_judged_on_the_rows_they_select(world: Any) -> None:
    verdict: QualityVerdict = world[1]
    own = {result.name: result for result in verdict.results if result.name.startswith("own-")}
    assert [(result.on, result.success, result.observed, result.raised) for result in own.values()] == [
        ("attributes", False, "1 of 2 rows break it", None),
        ("attributes", False, "1 of 1 rows break it", None),
        ("attributes", True, own["own-3:ExpectColumnDistinctValuesToContainSet"].observed, None),
        ("entities", True, "0 of 2 rows break it", None),
    ]
    assert verdict.approved


def test_the_result_names_who_broke_it(world: Any) -> None:
    folder = Path(world[2].storage.root) / "vehicles" / "report"
    [samples] = folder.rglob("samples.json")
    assert "car2" in samples.read_text()


def test_without_such_expectations_no_rows_are_written(spark: SparkSession, tmp_path: Path) -> None:
    source = {"kind": "ngsi", "connection": "broker", "service": "vehicles"}
    preparer = Preparer(spark, tmp_path, Publication.model_validate({"name": "vehicles", "source": source}))
    preparer.prepare([car(1, 10.0)])
    assert not preparer.storage.exists(f"{preparer.folder.work('run1')}/attributes")
