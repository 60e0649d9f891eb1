"""Topics of several identities in runs one after the other, with a real Spark session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow.parquet as pq
import pytest

from builders.landing import MORNING, car
from builders.outboxes import publication
from builders.preparing import Preparer
from contexture.storage.manifests import Manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SHARED = "vehiclesxffffx002f4wheelsxffffaxffffbxffffc"
LEFT, RIGHT = '["vehicles","/4wheels","a=b","c"]', '["vehicles","/4wheels","a","b=c"]'
Prepare = Callable[..., Preparer]


@pytest.fixture
def preparer(spark: SparkSession, tmp_path: Path) -> Prepare:
    """A home with a publication of anything, its topics as given."""

    def make(**topics: Any) -> Preparer:
        source = {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"}
        return Preparer(spark, tmp_path, publication(topics=topics, source=source))

    return make


def entity(name: str, kind: str, speed: float) -> dict[str, object]:
    return {**car(1, speed), "id": name, "type": kind}


def sent(manifest: Manifest, runs: Preparer) -> list[tuple[str, str]]:
    return sorted((record["key"].decode(), record["topic"]) for record in runs.records(manifest))


def collided(manifest: Manifest, runs: Preparer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(
        runs.storage.path(runs.folder.collisions(manifest.outbox)), partitioning=None
    ).to_pylist()
    return found


def test_a_warning_names_both_and_both_are_sent(preparer: Prepare) -> None:
    runs = preparer()

    manifest = runs.concluded([entity("a=b", "c", 1), entity("a", "b=c", 2), car(1, 3)])

    assert sent(manifest, runs)[:2] == [(RIGHT, SHARED), (LEFT, SHARED)]
    assert (manifest.collisions, manifest.quarantined_entities, manifest.upserts) == (1, 0, 3)
    assert manifest.warnings["topic-collision"] == 1
    assert collided(manifest, runs) == [{"topic": SHARED, "identity": RIGHT, "holder": LEFT, "refused": False}]


def test_the_newcomer_is_held_back_and_its_body_kept(preparer: Prepare) -> None:
    runs = preparer(collision="quarantine")
    newcomer = entity("a", "b=c", 2)

    first = runs.concluded([entity("a=b", "c", 1), car(1, 3)])
    second = runs.concluded([newcomer, entity("a=b", "c", 4), car(1, 3)])

    assert (first.collisions, runs.storage.exists(runs.folder.collisions(first.outbox))) == (0, False)
    assert sent(second, runs) == [(LEFT, SHARED)]
    assert (second.collisions, second.quarantined, second.quarantined_entities) == (1, {"topic-collision": 1}, 1)
    assert "topic-collision" not in second.warnings
    (row,) = runs.quarantine(second)
    assert (row["body"], row["rule"], row["severity"]) == (orjson.dumps(newcomer), "topic-collision", "error")
    assert row["message"] == f"the topic {SHARED} belongs to {LEFT}"
    assert RIGHT not in runs.held()
    assert collided(second, runs)[0]["refused"] is True


def test_an_identity_that_had_another_topic_is_withheld_and_not_deleted(preparer: Prepare) -> None:
    before = preparer(data_model="dm-by-service-path", collision="quarantine")
    before.concluded([entity("a", "b=c", 2)])
    runs = preparer(collision="quarantine")
    runs.runs = before.runs

    manifest = runs.concluded([entity("a=b", "c", 1), entity("a", "b=c", 2)], mode="full")
    withheld = runs.held("withheld")
    later = runs.concluded([entity("a=b", "c", 1), entity("a", "b=c", 2)])

    assert sent(manifest, runs) == [(LEFT, SHARED)]
    assert withheld == {LEFT: (False,), RIGHT: (True,)}
    assert (later.deletes, later.absent) == (0, 0)


def test_the_same_collisions_give_the_same_outbox(preparer: Prepare) -> None:
    runs = preparer(collision="quarantine")
    first = runs.prepare([entity("a=b", "c", 1), entity("a", "b=c", 2)], finished=MORNING)
    runs.storage.remove(runs.folder.manifest(first.outbox))

    again = runs.again("run1")

    assert again == first
