"""What publications store and send stays the same: fingerprints, manifests, records, ledger rows and state.

The files in tests/samples/golden change only with a commit that means to change what is sent or stored:

    CONTEXTURE_WRITE_GOLDEN=1 .venv/bin/python -m pytest tests/spark/test_golden_records.py
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from builders.golden import json_of, manifest_of, rows_of, sent_of
from builders.landing import MORNING, car
from builders.preparing import Preparer
from builders.registry import codelist, codelists, urn
from builders.structure_runs import StructurePreparer, only, registry_publication, upserts
from contexture.monitoring.own_events import EventType, StoredEvent
from contexture.monitoring.own_events_outbox import EventBatch, prepare
from contexture.publications import Publication, fingerprint, parse_publication
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.orders import StageOrder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROJECT = Path(__file__).resolve().parents[2]
GOLDEN = PROJECT / "tests" / "samples" / "golden"
CITY = {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/#"}
LINKED = {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "api": "ngsi-ld"}
AT_NINE = MORNING + timedelta(hours=1)

ENTITIES: dict[str, dict[str, Any]] = {
    "vehicles-of-the-project": {"file": "vehicles.yaml"},
    "city-of-the-project": {"file": "city.yaml"},
    "by-attribute": {"topics": {"data_model": "dm-by-attribute"}},
    "by-service": {"topics": {"data_model": "dm-by-service"}, "message": {"format": "ngsiv1"}},
    "batches": {
        "topics": {"data_model": "dm-by-service-path", "keep": "history"},
        "message": {"format": "cygnus-lines", "key": "topic"},
        "batches": {"batch_size": 2},
    },
    "injective": {"topics": {"naming": "injective", "partitions": 3}, "publish": {"transaction_records": 2}},
    "legacy-names": {"topics": {"naming": "cygnus-legacy", "enable_lowercase": True}},
    "one-topic": {"topics": {"naming": "fixed", "topics": ["everything", "again"]}},
    "linked-data-records": {"message": {"format": "ngsi-ld"}},
    "events-binary": {"message": {"envelope": "cloudevents-binary"}},
    "events-structured": {"message": {"envelope": "cloudevents-structured"}},
}

STRUCTURES: dict[str, dict[str, Any]] = {
    "structures-of-the-project": {"file": "structures.yaml"},
    "structures": {},
    "structures-routed": {
        "topics": {"topics": ["all"], "routes": [{"select": "Codelist=X:*(*)", "topics": ["lists-{agency}"]}]}
    },
    "structures-events": {"message": {"envelope": "cloudevents-structured"}},
}


def publication_of(sample: dict[str, Any], source: dict[str, Any]) -> Publication:
    if "file" in sample:
        return parse_publication(PROJECT / "include" / "publications" / sample["file"]).publication
    settings = {"name": "golden", "source": source, "quality": {"max_quarantined_share": 1.0}, **sample}
    return Publication.model_validate(settings)


def cars(*, later: bool = False) -> list[dict[str, object] | bytes]:
    """Names that are no topic names, several paths, numbers whose text counts, and what rules refuse."""
    changed = AT_NINE if later else MORNING
    rich = car(2, 1.50, path="/4wheels/Süd")
    rich["plate"] = {"type": "Text", "value": "Ω-1 ❤", "metadata": {"by": {"type": "Text", "value": "hand"}}}
    rich["location"] = {"type": "geo:point", "value": "40.4, -3.7", "metadata": {}}
    odd = {**car(3, 1e21), "id": "car:3 x.y_z"}
    refused = car(4, 1)
    refused["speed"] = {"type": "Number", "value": {"too fast": True}, "metadata": {}}
    return [car(1, 11 if later else 10, modified=changed), rich, odd, refused]


def entities(spark: SparkSession, home: Path, sample: dict[str, Any]) -> tuple[Preparer, list[Manifest]]:
    """A first load, a change with something absent, and the absence seen twice: a deletion."""
    runs = Preparer(spark, home, publication_of(sample, CITY))
    first = runs.concluded(cars(), mode="full")
    present = [("/4wheels", "car1", "car"), ("/4wheels/Süd", "car2", "car")]
    second = runs.concluded(cars(later=True)[:1], present=present, finished=AT_NINE)
    third = runs.concluded([], present=present, finished=AT_NINE + timedelta(minutes=5))
    return runs, [first, second, third]


def structures(spark: SparkSession, home: Path, sample: dict[str, Any]) -> tuple[Preparer, list[Manifest]]:
    """All that a registry holds, then two transactions of its log."""
    owner = (
        publication_of(sample, {"kind": "sdmx", "connection": "registry"})
        if "file" in sample
        else registry_publication(**sample)
    )
    runs = StructurePreparer(spark, home, owner)
    lists = codelists(codelist("CL_A", "1.0", "a", "b"), codelist("CL_B", "2.0", "é"), codelist("CL_C", agency="CITY"))
    flush = runs.concluded(upserts(lists), mode="full", complete=True, registry_transaction=5)
    log = [
        *upserts(codelists(codelist("CL_A", "1.0", "a", "c")), transaction=6),
        *only("delete", urn("CL_B", "2.0"), transaction=6),
        *upserts(codelists(codelist("CL_D", "1.0", "d", agency="CITY")), transaction=7),
    ]
    return runs, [flush, runs.concluded(log)]


def held(runs: Preparer, manifests: list[Manifest]) -> dict[str, Any]:
    """All that must stay as it is."""
    table = runs.state.table(runs.state.pointer()).sort_by("identity")
    return {
        "fingerprint": fingerprint(runs.publication),
        "runs": [
            {
                "manifest": manifest_of(manifest),
                "sent": sent_of(runs.storage, manifest),
                "quarantine": rows_of(runs.quarantine(manifest)),
            }
            for manifest in manifests
        ],
        "state": rows_of(table.to_pylist()),
    }


def assert_as_before(name: str, found: dict[str, Any]) -> None:
    path = GOLDEN / f"{name}.json"
    content = json_of(found)
    if os.environ.get("CONTEXTURE_WRITE_GOLDEN"):
        path.write_bytes(content)
    assert orjson.loads(path.read_bytes()) == orjson.loads(content)


@pytest.mark.parametrize(
    ("name", "make", "sample"),
    [(name, entities, sample) for name, sample in ENTITIES.items()]
    + [(name, structures, sample) for name, sample in STRUCTURES.items()],
    ids=[*ENTITIES, *STRUCTURES],
)
def test_what_a_publication_stores_and_sends_stays_the_same(
    spark: SparkSession,
    tmp_path: Path,
    name: str,
    make: Callable[[SparkSession, Path, dict[str, Any]], tuple[Preparer, list[Manifest]]],
    sample: dict[str, Any],
) -> None:
    assert_as_before(name, held(*make(spark, tmp_path, sample)))


def test_own_events_stay_the_same(tmp_path: Path) -> None:
    settings = {"source": {"kind": "operations"}, "topics": {"topics": ["operations"]}}
    owner = Publication.model_validate({"name": "own", "message": {"format": "operations"}, **settings})
    storage = Home(str(tmp_path))
    order = StageOrder(
        publication=owner, fingerprint=fingerprint(owner), home=storage.root, run="run1", mode="changes", sequence=1
    )
    data = '{"outbox":"o1","reason":"wrong source","abandoned_by":"ada"}'
    event = StoredEvent(7, "a" * 32, EventType.OUTBOX_ABANDONED, "vehicles", MORNING, data)
    manifest = prepare(storage.publication(order.publication.name), order, EventBatch([event], 0, "7"))
    found = {"fingerprint": order.fingerprint, "manifest": manifest_of(manifest)}
    assert_as_before("own-events", {**found, "sent": sent_of(storage, manifest)})
