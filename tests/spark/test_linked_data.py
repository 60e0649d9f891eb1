"""NGSI-LD sources through pull and prepare, against the test broker in each of its flavours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from builders.outboxes import publication
from builders.preparing import Preparer
from contexture.errors import RetriableError
from contexture.publications import Publication, fingerprint
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.conclusion import conclude
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture_sandbox.context_broker import TestBroker
from contexture_sandbox.context_broker.linked_data import LinkedDataFace
from spark_jobs.entities.read import read_entities

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CONTEXT = "https://example.org/context.jsonld"
CORE = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld"
SOURCE = {
    "kind": "ngsi",
    "connection": "context_broker",
    "service": "City",
    "api": "ngsi-ld",
    "context": CONTEXT,
    "page_size": 2,
}
FLAVOURS = [
    "orion-ld",
    "stellio",
    # The walk of each flavour is tested in tests/unit/sources/ngsi/linked_data.
    *(pytest.param(flavour, marks=pytest.mark.long) for flavour in ("orion-ld-1.4", "scorpio")),
]


class LinkedRuns(Preparer):
    """Runs that read from a broker, each concluded."""

    def landed(self, broker: TestBroker, mode: str = "changes") -> LandingManifest:
        """The landing of a new run."""
        self.runs += 1
        order = StageOrder.model_validate(
            {
                "publication": self.publication,
                "fingerprint": fingerprint(self.publication),
                "home": self.storage.root,
                "run": f"run{self.runs}",
                "mode": mode,
                "sequence": self.runs,
            }
        )
        return read_entities(self.spark, order, BrokerConnection(broker.url), self.state.pointer().watermark)

    def run(self, broker: TestBroker, mode: str = "changes") -> Manifest:
        """The outbox of a new run, sent and concluded."""
        self.landed(broker, mode)
        manifest = self.again(f"run{self.runs}", mode=mode)
        self.storage.publication(self.publication.name).outboxes.set_status(
            manifest.outbox, "approved", reason="a test says so"
        )
        conclude(self.storage.publication(manifest.publication), manifest, cluster="c", target="t")
        return manifest

    def sent(self, manifest: Manifest) -> dict[str, Any]:
        """Key (without the tenant) to body of each record; None is a tombstone."""
        return {
            "|".join(orjson.loads(record["key"])[1:]): record["value"] and orjson.loads(record["value"])
            for record in self.records(manifest)
        }


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker() as started:
        yield started


def runs(spark: SparkSession, home: Path, source: dict[str, object] | None = None, **changes: Any) -> LinkedRuns:
    return LinkedRuns(spark, home, linked(source, **changes))


def linked(source: dict[str, object] | None = None, **changes: Any) -> Publication:
    settings = {"source": {**SOURCE, **(source or {})}, "message": {"format": "ngsi-ld"}, **changes}
    return publication(**settings)


def car(number: int, speed: float = 1.5, **members: object) -> dict[str, object]:
    return {
        "id": f"urn:ngsi-ld:Car:{number}",
        "type": "Car",
        "speed": {"type": "Property", "value": speed, "unitCode": "KMH"},
        **members,
    }


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_everything_then_a_change_then_a_deletion(
    spark: SparkSession, broker: TestBroker, tmp_path: Path, flavour: str
) -> None:
    face = broker.speak_linked_data(flavour)
    face.load([car(number) for number in range(5)], tenant="City", at="2025-12-01T00:00:00Z")
    face.load([{**car(9), "type": "Bus"}], tenant="City", at="2026-01-01T00:00:00Z")
    city = runs(spark, tmp_path)

    first = city.run(broker, "full")
    assert (first.read, first.source_count, first.upserts, first.quarantined) == (6, 6, 6, {})
    assert city.sent(first)["/|urn:ngsi-ld:Car:3|Car"] == {**car(3), "@context": [CONTEXT, CORE]}

    face.load([car(3, speed=80)], tenant="City", at="2026-01-02T00:00:00Z")
    second = city.run(broker)
    # The change of the bus is at the watermark. Orion-LD 1.4 finds nothing by time, and everything is read again.
    assert second.read == (6 if flavour == "orion-ld-1.4" else 2)
    assert city.sent(second) == {"/|urn:ngsi-ld:Car:3|Car": {**car(3, speed=80), "@context": [CONTEXT, CORE]}}

    face.remove("urn:ngsi-ld:Car:1", tenant="City")
    once = city.run(broker)
    assert (once.deletes, once.absent) == (0, 1)
    twice = city.run(broker)
    assert city.sent(twice) == {"/|urn:ngsi-ld:Car:1|Car": None}


def test_the_broker_is_asked_once_which_one_it_is(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> None:
    broker.speak_linked_data("stellio").load([car(1)], tenant="City")

    manifest = runs(spark, tmp_path).landed(broker, "full")

    assert [request.path for request in broker.requests].count("/actuator/info") == 1
    assert manifest.queries == ("stellio /ngsi-ld/v1/entities type=every",)


def test_an_entity_of_several_types_and_scopes_is_one(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> None:
    face = broker.speak_linked_data("orion-ld")
    both = {**car(1), "type": ["Car", "Asset"], "scope": ["/Madrid/Gardens", "/Paris"]}
    face.load([both, car(2)], tenant="City")
    city = runs(spark, tmp_path, {"service_path": ["/Madrid/#", "/Paris"]}, message={"format": "ngsiv2"})

    manifest = city.run(broker, "full")

    assert (manifest.read, manifest.source_count, manifest.warnings) == (1, 1, {})
    assert city.sent(manifest) == {
        "/|urn:ngsi-ld:Car:1|Asset,Car": {
            "id": "urn:ngsi-ld:Car:1",
            "type": "Asset,Car",
            "speed": {
                "type": "Number",
                "value": 1.5,
                "metadata": {"unitCode": {"type": "Text", "value": "KMH"}},
            },
            "scope": {"type": "StructuredValue", "value": ["/Madrid/Gardens", "/Paris"], "metadata": {}},
        }
    }


def test_each_instance_of_an_attribute_is_an_event_and_ends_for_itself(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    face = broker.speak_linked_data("scorpio")
    wheel = {"type": "Property", "value": 2, "datasetId": "urn:wheel"}
    face.load([car(1, speed=[1], **{"at": [{"type": "Property", "value": 1}, wheel]})], tenant="City")
    city = runs(spark, tmp_path, topics={"data_model": "dm-by-attribute"})

    sent = city.sent(city.run(broker, "full"))

    key = "/|urn:ngsi-ld:Car:1|Car"
    assert sorted(sent) == [f"{key}|at", f"{key}|at|urn:wheel", f"{key}|speed"]
    assert sent[f"{key}|at|urn:wheel"]["at"] == wheel
    topics = {record["topic"].rsplit("xffff", 1)[1] for record in city.records(_last(city))}
    assert topics == {"at", "speed"}

    face.load([car(1, speed=[1], **{"at": {"type": "Property", "value": 1}})], tenant="City")
    assert city.sent(city.run(broker)) == {f"{key}|at|urn:wheel": None}


def _last(city: LinkedRuns) -> Manifest:
    return city.storage.publication(city.publication.name).outboxes.manifest(city.state.pointer().outbox or "")


@pytest.mark.parametrize("flavour", ["orion-ld", "scorpio"])
def test_a_broker_without_its_database_leaves_no_landing(
    spark: SparkSession, broker: TestBroker, tmp_path: Path, flavour: str
) -> None:
    face: LinkedDataFace = broker.speak_linked_data(flavour)
    face.load([car(1)], tenant="City")
    broker.faults.database_gone = True

    with pytest.raises(RetriableError, match="responded with 500"):
        runs(spark, tmp_path).landed(broker)
    assert not list(tmp_path.rglob("manifest.json"))


def test_no_entity_is_taken_for_deleted_while_others_come_and_go(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    face = broker.speak_linked_data("stellio")
    face.load([car(number) for number in range(40)], tenant="City", at="2026-01-01T00:00:00Z")
    city = runs(spark, tmp_path, {"page_size": 5, "shrink_limit": {"share": 1.0}})
    city.run(broker, "full")
    gone: list[str] = []

    def churn(page: int) -> None:
        if page % 3 == 0 and len(gone) < 6:
            gone.append(f"urn:ngsi-ld:Car:{len(gone) * 5}")
            face.remove(gone[-1], tenant="City")

    broker.faults.after_page = churn
    deleted = [key for _ in range(3) for key, body in city.sent(city.run(broker)).items() if body is None]

    assert gone
    assert {key.split("|")[1] for key in deleted} <= set(gone)
