"""What NGSI-LD excludes, and the notes for its readers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from contexture.publications import Publication
from contexture.publications.checks.ngsi import linked_data_notes

CONTEXT = "https://example.org/context.jsonld"
LINKED = {"kind": "ngsi", "connection": "broker", "service": "city", "api": "ngsi-ld", "context": CONTEXT}


def publication(source: dict[str, object] | None = None, **sections: object) -> Publication:
    return Publication.model_validate({"name": "city", "source": {**LINKED, **(source or {})}, **sections})


def refusal(**source: object) -> str:
    with pytest.raises(ValidationError) as raised:
        publication(source)
    return "\n".join(error["msg"] for error in raised.value.errors())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"api": "ngsiv2"}, "`context` needs `api: ngsi-ld`"),
        ({"api": "ngsiv2", "context": None, "flavour": "scorpio"}, "`flavour: scorpio` does not speak `api: ngsiv2`"),
        ({"api": "ngsiv2", "context": None, "flavour": "stellio"}, "`flavour: stellio` does not speak `api: ngsiv2`"),
        ({"flavour": "orion"}, "`flavour: orion` does not speak `api: ngsi-ld`"),
        ({"context": "context.jsonld"}, "is not an address of a @context"),
        ({"context": "https://example.org/a b"}, "is not an address of a @context"),
        ({"context": 'https://example.org/>; rel="x'}, "is not an address of a @context"),
        ({"service_path": "/Madrid", "mode": "notifications"}, "`mode: notifications` cannot distinguish scopes"),
        ({"service_path": ["/", "/Madrid"]}, "the scope / selects everything, also what has no scope"),
        (
            {"georel": "coveredBy", "geometry": "box", "coords": "1,2;3,4"},
            "`geometry: box` has no counterpart in NGSI-LD",
        ),
        (
            {"georel": "nearby", "geometry": "point", "coords": "1,2"},
            "`georel: nearby` has no counterpart in NGSI-LD",
        ),
        ({"query": "!speed"}, "'!speed': NGSI-LD cannot query what an entity lacks"),
        ({"query": "speed>50;brand==Seat"}, "'brand==Seat': NGSI-LD writes texts in double quotes"),
        ({"query": "brand=='Seat'"}, "NGSI-LD writes texts in double quotes"),
        ({"query": 'brand=="Seat",Opel'}, "NGSI-LD writes texts in double quotes"),
        ({"query": "modifiedAt>=2026-01-01T00:00:00Z"}, "needs modifiedAt for itself"),
        ({"query": "(speed>1|createdAt>2026-01-01T00:00:00Z)"}, "needs createdAt for itself"),
        ({"query": "dateModified>2026-01-01T00:00:00Z"}, "needs dateModified for itself"),
        ({"metadata_query": "speed.unit==KMH"}, "'speed.unit==KMH': NGSI-LD writes texts in double quotes"),
        ({"service": "two words"}, "'two words' is not a tenant"),
        ({"service": "city\n"}, "is not a tenant"),
        ({"types": ["A"], "type_pattern": "^A"}, "exclude each other"),
    ],
)
def test_what_ngsi_ld_excludes_is_refused_by_name(source: dict[str, object], expected: str) -> None:
    assert expected in refusal(**source)


@pytest.mark.parametrize(
    "source",
    [
        {"query": 'speed>50;brand=="Seat"'},
        {"query": 'name=="O\'Neil; (the |second)"'},
        {"query": "isParkedAt==urn:ngsi-ld:Parking:1|speed==1..5"},
        {"query": "moving==true;seen>=2026-01-01T00:00:00Z;plate~=^(A|B)"},
        {"query": 'address[city]=="Madrid";speed.accuracy>0.9;speed'},
        {"metadata_query": "speed.accuracy>0.9"},
        {"georel": "near;maxDistance:1000", "geometry": "point", "coords": "40.4,-3.7"},
        {"georel": "within", "geometry": "polygon", "coords": "1,1;1,2;2,2;1,1"},
        {"service_path": ["/Madrid/+/Gardens", "/Paris/#"]},
        {"flavour": "orion-ld"},
        {"mode": "notifications"},
        {"flavour": "generic"},
        {"type_pattern": "^Car"},
    ],
)
def test_what_ngsi_ld_can_say_is_taken(source: dict[str, object]) -> None:
    assert publication(source).source.api == "ngsi-ld"


def test_tenants_and_scopes_keep_what_ngsiv2_would_refuse() -> None:
    source = publication({"service": "City-1.Madrid", "service_path": ["/a/+/#", "/b/#", "/b/c"]}).source
    assert (source.service, source.service_path) == ("City-1.Madrid", ("/a/+/#", "/b/#"))
    with pytest.raises(ValidationError, match="is not a service"):
        publication({"api": "ngsiv2", "context": None, "service": "City-1"})


def test_a_level_of_any_name_is_for_scopes_alone() -> None:
    with pytest.raises(ValidationError, match="'\\+' is not a level of a service path"):
        publication({"api": "ngsiv2", "context": None, "service_path": "/a/+"})


@pytest.mark.parametrize(
    ("source", "sections", "expected"),
    [
        ({}, {}, []),
        ({"api": "ngsiv2", "context": None}, {"topics": {"data_model": "dm-by-service-path"}}, []),
        ({"context": None}, {}, ["without `context`"]),
        ({"attributes": ["speed"]}, {}, ["`attributes` also selects"]),
        ({}, {"topics": {"data_model": "dm-by-service-path"}}, ["NGSI-LD has no service paths"]),
    ],
)
def test_notes_show_what_is_different(
    source: dict[str, object], sections: dict[str, object], expected: list[str]
) -> None:
    notes = [note.message for note in linked_data_notes(publication(source, **sections))]
    assert len(notes) == len(expected)
    assert all(words in note for words, note in zip(expected, notes, strict=True))


def test_one_type_alone_does_not_make_a_key_unique_for_an_entity_may_have_several() -> None:
    with pytest.raises(ValidationError, match="they differ in type"):
        publication({"types": ["Car"]}, message={"key": "id"}, topics={"data_model": "dm-by-service-path"})


def test_instances_of_one_attribute_share_a_topic_so_that_it_is_no_key() -> None:
    with pytest.raises(ValidationError, match="they differ in datasetId"):
        publication(message={"key": "topic"}, topics={"data_model": "dm-by-attribute"})
