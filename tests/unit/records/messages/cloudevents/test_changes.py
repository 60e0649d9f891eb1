"""What a change of an entity or a structure is as attributes: literal, for consumers rely on them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from builders.cloud_events import EVENT
from contexture.events import AttributeName, ContextIdentity, StructureIdentity
from contexture.records.cloudevents import decode, encode
from contexture.records.cloudevents.change_events import (
    CONTEXT_ATTRIBUTES,
    STRUCTURE_SCHEMAS,
    RunReference,
    context_values,
    structure_attributes,
)
from contexture.sources.sdmx.formats import MEDIA_TYPES

CAR = ContextIdentity("vehicles", "/4wheels", "car1", "car")
EIGHT = datetime(2026, 3, 1, 8, tzinfo=UTC)
NINE = datetime(2026, 3, 1, 9, 0, 0, 250_000, tzinfo=UTC)
CONTENT, OTHER = b"\x01" * 32, b"\x02" * 32
LIST = StructureIdentity("urn:sdmx:org.sdmx.infomodel.codelist.Codelist=BIS:CL_FREQ(1.0)")
ML = "application/vnd.sdmx.structure+xml;version=2.1"


def attributes(
    operation: Any = "upsert",
    identity: ContextIdentity = CAR,
    attribute: AttributeName | None = None,
    *,
    content: bytes = CONTENT,
    occasion: RunReference | None = None,
) -> dict[str, object]:
    values = context_values(
        operation,
        identity,
        attribute,
        connection="context_broker",
        content_hash=content,
        occasion=occasion or RunReference(modified_at=EIGHT),
    )
    return {name: value for name, value in zip(CONTEXT_ATTRIBUTES, values, strict=True) if value is not None}


def test_an_entity_is_shown_by_its_id_in_its_service_and_path():
    assert attributes() == {
        "id": "b3895f838bf9a7072ad31e44fe9f60ac",
        "source": "/ngsi/context_broker/vehicles/4wheels",
        "type": "contexture.ngsi.entity.upsert",
        "subject": "car1",
        "time": "2026-03-01T08:00:00Z",
        "entitytype": "car",
    }


def test_an_attribute_is_shown_by_name_and_instance():
    speed = attributes(attribute=AttributeName("speed", "urn:gps"), occasion=RunReference(modified_at=NINE))

    assert {name: speed[name] for name in speed if name != "id"} == {
        "source": "/ngsi/context_broker/vehicles/4wheels",
        "type": "contexture.ngsi.attribute.upsert",
        "subject": "car1",
        "time": "2026-03-01T09:00:00.250000Z",
        "entitytype": "car",
        "attributename": "speed",
        "datasetid": "urn:gps",
    }


def test_c12_a_deletion_has_no_time_because_its_moment_is_unknown():
    gone = attributes("delete")

    assert gone["type"] == "contexture.ngsi.entity.delete"
    assert "time" not in gone
    assert gone["id"] != attributes()["id"]


def test_an_id_is_the_same_on_a_retry():
    assert attributes()["id"] == attributes()["id"] == "b3895f838bf9a7072ad31e44fe9f60ac"


@pytest.mark.parametrize(
    "other",
    [
        attributes(content=OTHER),
        attributes("delete"),
        attributes(identity=ContextIdentity("vehicles", "/4wheels", "car2", "car")),
        attributes(identity=ContextIdentity("vehicles", "/2wheels", "car1", "car")),
        attributes(attribute=AttributeName("speed")),
        attributes(occasion=RunReference(modified_at=NINE)),
        attributes(occasion=RunReference(otherwise="1772352000000000")),
        attributes(occasion=RunReference(registry_transaction=5)),
    ],
)
def test_an_id_is_another_for_whatever_else_is_shown(other):
    assert other["id"] != attributes()["id"]


def test_content_that_comes_back_has_a_new_id():
    ids = [
        attributes(content=content, occasion=RunReference(modified_at=at))["id"]
        for content, at in ((CONTENT, EIGHT), (OTHER, NINE))
    ]
    again = attributes(content=CONTENT, occasion=RunReference(modified_at=datetime(2026, 3, 1, 10, tzinfo=UTC)))["id"]

    assert len({*ids, again}) == 3


def test_names_are_escaped_in_the_source_and_an_absent_service_and_type_are_nothing():
    odd = attributes(identity=ContextIdentity("", "/parks/Plaza España", "café 1", ""))

    assert odd["source"] == "/ngsi/context_broker//parks/Plaza%20Espa%C3%B1a"
    assert odd["subject"] == "café 1"
    assert "entitytype" not in odd
    encode({**EVENT, **odd}, mode="binary")


def structure(operation: Any = "upsert", **changes: Any) -> dict[str, str]:
    settings: dict[str, Any] = {
        "connection": "registry",
        "content_hash": CONTENT,
        "occasion": RunReference(registry_transaction=41, modified_at=NINE),
        "media_type": ML if operation == "upsert" else None,
    }
    return structure_attributes(operation, LIST, **{**settings, **changes})


def test_a_structure_is_shown_by_its_urn():
    assert structure() == {
        "specversion": "1.0",
        "id": "3eabca8836fe3b8812401db0dfcb3860",
        "source": "/sdmx/registry",
        "type": "contexture.sdmx.structure.upsert",
        "subject": "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=BIS:CL_FREQ(1.0)",
        "time": "2026-03-01T09:00:00.250000Z",
        "datacontenttype": "application/vnd.sdmx.structure+xml;version=2.1",
        "dataschema": "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message",
    }


def test_c12_a_structures_deletion_has_the_time_of_its_transaction_and_no_media_type():
    gone = structure("delete")

    assert (gone["type"], gone["time"]) == ("contexture.sdmx.structure.delete", "2026-03-01T09:00:00.250000Z")
    assert {"datacontenttype", "dataschema"}.isdisjoint(gone)


def test_a_structures_id_follows_the_registrys_transaction():
    assert structure()["id"] == structure(occasion=RunReference(registry_transaction=41))["id"]
    assert structure()["id"] != structure(occasion=RunReference(registry_transaction=42, modified_at=NINE))["id"]


def test_structures_are_sent_in_both_modes():
    shown = structure()
    for mode in ("binary", "structured"):
        sent = encode({**shown, "data": b"<mes:Structure/>"}, mode=mode)
        assert decode(sent.headers, None, sent.value) == {**shown, "data": "<mes:Structure/>"}


def test_media_types_with_a_schema_are_those_that_registries_send():
    assert set(STRUCTURE_SCHEMAS) < set(MEDIA_TYPES.values())
    assert set(MEDIA_TYPES.values()) - set(STRUCTURE_SCHEMAS) == {"application/vnd.fusion.json"}
