"""Rules that a publication switches or feeds: allowed values, ages by type, intervals, NGSI-LD names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import orjson
import pytest

from contexture.publications import Publication
from contexture.sources.ngsi.entity import parse_entity
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity
from tests.samples_location import samples_or_skip

NOW = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


def options(**quality: object) -> EntityRuleOptions:
    publication = Publication.model_validate(
        {
            "name": "p",
            "source": {"kind": "ngsi", "connection": "b", "service": "s"},
            "quality": quality,
        }
    )
    return EntityRuleOptions.for_publication(publication, NOW)


def broken(body: str | bytes, chosen: EntityRuleOptions) -> list[str]:
    raw = body if isinstance(body, bytes) else body.encode()
    return [each.rule for each in check_entity(parse_entity(raw, service="s"), chosen)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [('"on"', []), ("1", []), ("1.0", []), ("true", ["enum"]), ('"1"', ["enum"]), ('"of"', ["enum"]), ("[]", ["enum"])],
)
def test_values_are_among_those_allowed(value: str, expected: list[str]) -> None:
    chosen = options(allowed_values={"state": ["on", "off", 1]})
    assert broken(f'{{"id":"i","type":"t","state":{{"value":{value}}}}}', chosen) == expected


def test_an_absent_attribute_is_no_wrong_value() -> None:
    assert broken('{"id":"i","type":"t"}', options(allowed_values={"state": ["on"]})) == []


def test_each_type_has_its_own_age() -> None:
    chosen = options(fresh_within_seconds=86_400, stale_after_seconds={"sensor": 3600})
    seen = '"TimeInstant":{"type":"DateTime","value":"2026-11-21T04:00:00Z"}'
    assert broken(f'{{"id":"i","type":"sensor",{seen}}}', chosen) == ["stale"]
    assert broken(f'{{"id":"i","type":"street",{seen}}}', chosen) == []


@pytest.mark.parametrize(
    ("value", "allowed", "expected"),
    [
        ("2016-12-07T11:10:00Z/2016-12-07T11:15:00Z", False, ["datetime"]),
        ("2016-12-07T11:10:00Z/2016-12-07T11:15:00Z", True, []),
        ("2016-12-07T11:10:00Z/later", True, ["datetime"]),
        ("noon", True, ["datetime"]),
    ],
)
def test_intervals_pass_only_by_policy(value: str, allowed: bool, expected: list[str]) -> None:
    body = f'{{"id":"i","type":"t","a":{{"type":"DateTime","value":"{value}"}}}}'
    assert broken(body, options(allow_intervals=allowed)) == expected


@pytest.mark.parametrize(
    ("body", "ngsiv2", "linked_data"),
    [
        ('{"id":"car1","type":"Car"}', [], ["id-syntax"]),
        ('{"id":"urn:ngsi-ld:Car:1","type":"Car"}', [], []),
        ('{"id":"https://a/b?c#d","type":"Car"}', ["id-syntax"], []),
        ('{"id":"urn:a b","type":"Car"}', ["id-syntax"], ["id-syntax"]),
        ('{"id":"urn:a:1","type":"https://a/Car"}', ["type-syntax"], []),
        ('{"id":"urn:a:1","type":"a-b"}', [], ["type-syntax"]),
        ('{"id":"urn:a:1","type":"T","https://a/speed":{"value":1}}', ["attr-syntax"], []),
        ('{"id":"urn:a:1","type":"T","fart_é":{"value":1}}', ["attr-syntax"], []),
        ('{"id":"urn:a:1","type":"T","1speed":{"value":1}}', [], ["attr-syntax"]),
        ('{"id":"urn:a:1","type":"T","@context":{"value":1}}', [], ["attr-syntax"]),
        # Several types are one name, joined by commas.
        ('{"id":"urn:a:1","type":"Asset,Car"}', [], []),
        ('{"id":"urn:a:1","type":"Asset,a-b"}', [], ["type-syntax"]),
        # An instance of several has the attribute's name and its datasetId.
        ('{"id":"urn:a:1","type":"T","my_speed:urn:gps":{"value":1}}', [], []),
        ('{"id":"urn:a:1","type":"T","scope":{"value":"/a"}}', [], []),
        # The names of metadata are made of those of attributes of attributes.
        ('{"id":"urn:a:1","type":"T","a":{"value":1,"metadata":{"https://a/b":{"value":1}}}}', ["attr-syntax"], []),
        ('{"id":"urn:a:1","type":"T","a":{"value":1,"metadata":{"b":{}}}}', ["attr-shape"], ["attr-shape"]),
        # NGSI-LD forbids no character in a value.
        ('{"id":"urn:a:1","type":"T","a":{"value":"f(x)=<1>"}}', ["forbidden-char"], []),
    ],
)
def test_names_follow_the_interface_that_is_read(body: str, ngsiv2: list[str], linked_data: list[str]) -> None:
    assert broken(body, options(syntax="ngsiv2")) == ngsiv2
    assert broken(body, options(syntax="ngsi-ld")) == linked_data


# Written from the rules by reading each sample, attribute by attribute (Smart Data Models, CC BY 4.0).
SAMPLES = {
    # No forbidden character: `l%3D0.22%3Bt%3D21.2` is percent-encoded; every Number is one; one plain UTC moment.
    "Device/Device": [],
    # The id is a URL with slashes; `Date-Time` is a custom type and its value no moment to NGSIv2.
    "Environment/MosquitoDensity": ["id-syntax"],
    "Streetlighting/Streetlight": [],
    "Transportation/BikeHireDockingStation": [],
    # dateObserved is 11:10 to 11:15 in one text.
    "Transportation/TrafficFlowObserved": ["datetime"],
    "Weather/WeatherObserved": [],
}


@pytest.mark.parametrize(("sample", "expected"), SAMPLES.items())
def test_the_smart_data_models_samples_break_exactly_these_rules(sample: str, expected: list[str]) -> None:
    folder = samples_or_skip() / "ngsi"
    assert broken((folder / sample / "v2-normalized.json").read_bytes(), options()) == expected


def test_every_smart_data_models_sample_is_listed() -> None:
    folder = samples_or_skip() / "ngsi"
    there = {file.parent.relative_to(folder).as_posix() for file in folder.rglob("v2-normalized.json")}
    assert there == set(SAMPLES) == set(LINKED_DATA_SAMPLES)


# The same models as NGSI-LD examples, read the same way.
LINKED_DATA_SAMPLES = {
    # Ids and relationships are URIs; Properties have no type of their own that a value could belie.
    "Device/Device": [],
    # A URL with slashes is a URI; `Date-Time` is no known type, so its value is no moment.
    "Environment/MosquitoDensity": [],
    # deviceInfo below municipalityInfo is a Property with a value; every DateTime names its zone.
    "Streetlighting/Streetlight": [],
    "Transportation/BikeHireDockingStation": [],
    # dateObserved is 2016-12-07T11:10:00, without a zone.
    "Transportation/TrafficFlowObserved": ["datetime"],
    "Weather/WeatherObserved": [],
}


@pytest.mark.parametrize(("sample", "expected"), LINKED_DATA_SAMPLES.items())
def test_the_linked_data_samples_break_exactly_these_rules(sample: str, expected: list[str]) -> None:
    body = (samples_or_skip() / "ngsi" / sample / "ld-normalized.jsonld").read_bytes()
    found = check_entity(parse_entity(body, service="s", form="ngsi-ld"), options(syntax="ngsi-ld"))
    assert [violation.rule for violation in found] == expected


def test_an_entity_of_several_types_has_a_declared_one() -> None:
    body = orjson.dumps({"id": "urn:a:1", "type": ["Car", "Asset"]})
    declared = replace(options(syntax="ngsi-ld"), entity_types=frozenset(("Car",)))
    entity = parse_entity(body, service="s", form="ngsi-ld")
    assert check_entity(entity, declared) == []
    other = replace(declared, entity_types=frozenset(("Bus",)))
    assert [violation.rule for violation in check_entity(entity, other)] == ["unknown-type"]


def test_a_sample_with_its_interval_allowed_is_clean() -> None:
    body = (samples_or_skip() / "ngsi/Transportation/TrafficFlowObserved/v2-normalized.json").read_bytes()
    assert orjson.loads(body)["dateObserved"]["value"] == "2016-12-07T11:10:00/2016-12-07T11:15:00"
    assert broken(body, options(allow_intervals=True)) == []
