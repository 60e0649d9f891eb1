"""NGSI-LD entities from their broker to Kafka and back, in the forms a record may have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from builders.outboxes import publication
from builders.whole_runs import Lasting, WholeRuns
from contexture.kafka import read_committed
from contexture.publications import Publication
from contexture.sources.http.connection import BrokerConnection
from contexture_sandbox.context_broker import TestBroker
from contexture_sandbox.context_broker.linked_data import LinkedDataFace
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import pipeline

pytestmark = pytest.mark.integration

CONTEXT = "https://example.org/context.jsonld"
CORE = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld"

# Names, kinds and literals as a broker holds them; the times are its own and never sent on.
CAR = orjson.loads(
    b'{"id":"urn:ngsi-ld:Car:1","type":["Car","Asset"],"scope":"/Madrid",'
    b'"speed":[{"type":"Property","value":55.5,"unitCode":"KMH","observedAt":"2026-01-01T00:00:00Z"},'
    b'{"type":"Property","value":54,"datasetId":"urn:ngsi-ld:gps"}],'
    b'"driver":{"type":"Relationship","object":"urn:ngsi-ld:Person:7"},'
    b'"location":{"type":"GeoProperty","value":{"type":"Point","coordinates":[-3.7,40.4]}}}'
)


class City(WholeRuns):
    """A publication of an NGSI-LD broker's cars."""

    def __init__(self, home: Path, kafka: EmbeddedKafka, face: LinkedDataFace) -> None:
        super().__init__(home, kafka)
        self.face = face

    def publication(self, form: str) -> Publication:
        source = {"kind": "ngsi", "connection": "b", "service": "City", "api": "ngsi-ld", "context": CONTEXT}
        return publication(
            name=self.name,
            source=source,
            topics={"naming": "fixed", "topics": [self.topic]},
            message={"format": form},
        )

    def bodies(self) -> list[Any]:
        """The newest value of each key that a read-committed reader sees, by key."""
        newest = {record.key: record.value for record in read_committed(self.settings, [self.topic])}
        return [orjson.loads(value) for _, value in sorted(newest.items()) if value is not None]


@pytest.fixture
def city(tmp_path: Path, kafka: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[City]:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    with TestBroker() as broker:
        face = broker.speak_linked_data("scorpio")
        face.load([CAR], tenant="City", at="2026-01-01T00:00:00Z")
        connection = BrokerConnection(broker.url, timeout_seconds=60)
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", connection.to_json())
        yield City(tmp_path, kafka, face)


def test_what_is_read_back_from_kafka_is_the_sources_own_entity(city: City) -> None:
    stays = {"id": "urn:ngsi-ld:Car:2", "type": "Car", "speed": {"type": "Property", "value": 1}}
    city.face.load([stays], tenant="City", at="2026-01-01T00:00:00Z")

    first = city.ran(city.publication("ngsi-ld"))
    # The driver is no entity that was read.
    assert (first.read, first.records, first.warnings) == (2, 2, {"relationship-target": 1})
    assert city.bodies() == [linked(CAR), linked(stays)]

    city.face.load([{**CAR, "scope": "/Paris"}], tenant="City")
    city.ran(city.publication("ngsi-ld"))
    assert city.bodies() == [linked({**CAR, "scope": "/Paris"}), linked(stays)]

    city.face.remove("urn:ngsi-ld:Car:1", tenant="City")
    assert [city.ran(city.publication("ngsi-ld")).deletes for _ in range(2)] == [0, 1]
    assert city.bodies() == [linked(stays)]
    assert city.verified(city.publication("ngsi-ld")) == (True, {"bytes": 1})


def linked(entity: dict[str, object]) -> dict[str, object]:
    return {**entity, "@context": [CONTEXT, CORE]}


def test_the_other_forms_are_those_of_ngsiv2(city: City) -> None:
    speed = {
        "type": "Number",
        "value": 55.5,
        "metadata": {
            "unitCode": {"type": "Text", "value": "KMH"},
            "observedAt": {"type": "DateTime", "value": "2026-01-01T00:00:00Z"},
        },
    }

    city.ran(city.publication("ngsiv2"))
    (sent,) = city.bodies()
    assert (sent["id"], sent["type"], sent["speed"]) == ("urn:ngsi-ld:Car:1", "Asset,Car", speed)
    assert sent["speed:urn:ngsi-ld:gps"]["value"] == 54
    assert sent["driver"] == {"type": "Relationship", "value": "urn:ngsi-ld:Person:7", "metadata": {}}
    assert sent["location"]["type"] == "geo:json"
    city.forget_outboxes()
    assert city.verified(city.publication("ngsiv2")) == (True, {"content": 1})

    city.ran(city.publication("cygnus-lines"), mode="full")
    (line,) = city.bodies()
    assert line["headers"][:2] == [{"fiware-service": "City"}, {"fiware-servicePath": "/"}]
    assert line["body"]["type"] == "Asset,Car"
    # In the order the entity has them; one entry for each instance.
    assert [one["name"] for one in line["body"]["attributes"]] == [
        "scope",
        "speed",
        "speed:urn:ngsi-ld:gps",
        "driver",
        "location",
    ]
    assert line["body"]["attributes"][1]["metadatas"][0] == {"name": "unitCode", "type": "Text", "value": "KMH"}
