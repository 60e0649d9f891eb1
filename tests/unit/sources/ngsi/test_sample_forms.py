"""The Smart Data Models samples in all four forms: which are entities to us, and what each of them breaks.

Smart Data Models initiative, CC BY 4.0. The simplified forms have no types and no metadata: brokers are never asked for
them, and every attribute of one breaks `attr-shape`.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

import pytest

from contexture.sources.ngsi.entity import parse_entity
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity
from samples_location import samples_or_skip

Form = Literal["ngsiv2", "ngsi-ld"]
FORMS: dict[str, Form] = {
    "v2-normalized.json": "ngsiv2",
    "v2-keyvalues.json": "ngsiv2",
    "ld-normalized.jsonld": "ngsi-ld",
    "ld-keyvalues.jsonld": "ngsi-ld",
}
# How many attributes there are, and the rules they break, by reading each file.
EXPECTED: dict[str, tuple[int, dict[str, int]]] = {
    "Device/Device/v2-normalized.json": (14, {}),
    "Device/Device/v2-keyvalues.json": (14, {"attr-shape": 14}),
    "Device/Device/ld-normalized.jsonld": (14, {}),
    "Device/Device/ld-keyvalues.jsonld": (17, {"attr-shape": 17}),
    # The id is a URL, which NGSIv2 refuses and NGSI-LD asks for.
    "Environment/MosquitoDensity/v2-normalized.json": (11, {"id-syntax": 1}),
    "Environment/MosquitoDensity/v2-keyvalues.json": (11, {"id-syntax": 1, "attr-shape": 11}),
    "Environment/MosquitoDensity/ld-normalized.jsonld": (11, {}),
    "Environment/MosquitoDensity/ld-keyvalues.jsonld": (11, {"attr-shape": 11}),
    "Streetlighting/Streetlight/v2-normalized.json": (23, {}),
    "Streetlighting/Streetlight/v2-keyvalues.json": (24, {"attr-shape": 24}),
    "Streetlighting/Streetlight/ld-normalized.jsonld": (21, {}),
    "Streetlighting/Streetlight/ld-keyvalues.jsonld": (24, {"attr-shape": 24}),
    "Transportation/BikeHireDockingStation/v2-normalized.json": (17, {}),
    "Transportation/BikeHireDockingStation/v2-keyvalues.json": (17, {"attr-shape": 17}),
    "Transportation/BikeHireDockingStation/ld-normalized.jsonld": (17, {}),
    "Transportation/BikeHireDockingStation/ld-keyvalues.jsonld": (17, {"attr-shape": 17}),
    # dateObserved: an interval in NGSIv2's sample, a moment without a zone in NGSI-LD's.
    "Transportation/TrafficFlowObserved/v2-normalized.json": (13, {"datetime": 1}),
    "Transportation/TrafficFlowObserved/v2-keyvalues.json": (13, {"attr-shape": 13}),
    "Transportation/TrafficFlowObserved/ld-normalized.jsonld": (13, {"datetime": 1}),
    "Transportation/TrafficFlowObserved/ld-keyvalues.jsonld": (13, {"attr-shape": 13}),
    "Weather/WeatherObserved/v2-normalized.json": (17, {}),
    "Weather/WeatherObserved/v2-keyvalues.json": (17, {"attr-shape": 17}),
    "Weather/WeatherObserved/ld-normalized.jsonld": (17, {}),
    "Weather/WeatherObserved/ld-keyvalues.jsonld": (17, {"attr-shape": 17}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_form_of_each_sample_breaks_exactly_these_rules(name: str) -> None:
    path = samples_or_skip() / "ngsi" / name
    form = FORMS[path.name]

    entity = parse_entity(path.read_bytes(), service="s", form=form)
    violations = check_entity(entity, EntityRuleOptions(linked_data=form == "ngsi-ld"))

    assert (len(entity.attributes), Counter(each.rule for each in violations)) == EXPECTED[name]


def test_no_sample_is_left_out() -> None:
    folder = samples_or_skip() / "ngsi"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.json*")} == set(EXPECTED)
