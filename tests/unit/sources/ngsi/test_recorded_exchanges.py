"""What a real broker answered, as our readers take it: every recorded entity, and every recorded refusal."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.http.errors import refusal_error
from contexture.sources.ngsi.entity import parse_entity
from contexture.sources.ngsi.entity_head import read_entity_head
from contexture.sources.ngsi.query import EntityQuery
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity

SAMPLES = Path(__file__).parents[3] / "samples" / "orion"
RECORDED: dict[int, Any] = {
    exchange["n"]: exchange
    for exchange in map(json.loads, (SAMPLES / "exchanges.jsonl").read_text(encoding="utf-8").splitlines())
}
RECORDED_AT = datetime(2026, 11, 21, 5, 38, 58, tzinfo=UTC)

WHOLE, NONE, SPEED = "location oil_level speed when", "", "speed"
WEATHER = (
    "address atmosphericPressure dataProvider dateObserved illuminance location precipitation pressureTendency "
    "refDevice relativeHumidity snowHeight source streamGauge temperature uVIndexMax windDirection windSpeed"
)
STATION = (
    "address agency_fare_url agency_name agency_url availableBikeNumber contactPoint freeSlotNumber location mediaURL "
    "observationDate openingHours outOfServiceSlotNumber provider stationCode stationName status totalSlotNumber"
)
# Since 05:38:57.734 something happened to these, in this order.
SINCE = [
    ("/", "car3", "car", NONE, "57.734"),
    ("/", "car4", "car", NONE, "57.751"),
    ("/", "car5", "car", NONE, "57.762"),
    ("/", "car6", "car", NONE, "57.768"),
    ("/", "car7", "car", NONE, "57.775"),
    ("/", "bike0", "bike", NONE, "57.784"),
    ("/", "bike1", "bike", NONE, "57.795"),
    ("/", "bike2", "bike", NONE, "57.801"),
    ("/", "bike3", "bike", NONE, "57.807"),
    ("/", "bike4", "bike", NONE, "57.812"),
    ("/", "car1", "car", NONE, "57.817"),
]
# Without the builtin servicePath the two car1 cannot be distinguished.
EVERYTHING = [
    ("/", "car1", "car", WHOLE, None),
    *(("/", f"car{number}", "car", SPEED, None) for number in range(2, 8)),
    *(("/", f"bike{number}", "bike", SPEED, None) for number in range(5)),
    ("/", "car1", "car", SPEED, None),
]
# Path, id, type, attributes in the order sent, and when it was changed (second of 05:38).
ENTITIES: dict[int, list[tuple[str, str, str, str, str | None]]] = {
    17: [
        ("/sensors", "Valladolid.2016-11-30T07-00-00.00Z", "WeatherObserved", WEATHER, "57.863"),
        ("/sensors", "urn:ngsi-ld:Bcn-BikeHireDockingStation-1", "BikeHireDockingStation", STATION, "57.873"),
    ],
    18: [
        ("/4wheels", "car1", "car", WHOLE, "57.682"),
        ("/4wheels", "car2", "car", SPEED, "57.717"),
        ("/4wheels", "car3", "car", SPEED, "57.734"),
    ],
    19: [
        ("/4wheels", "car3", "car", SPEED, "57.734"),
        ("/4wheels", "car4", "car", SPEED, "57.751"),
        ("/4wheels", "car5", "car", SPEED, "57.762"),
    ],
    20: SINCE,
    22: SINCE,
    23: [("/", "car1", "car", NONE, "57.682")],
    37: EVERYTHING,
    44: [("/", "car1", "car", WHOLE, None), ("/", "car2", "car", SPEED, None)],
    47: EVERYTHING,
    48: [("/", "car1", "car", WHOLE, None), *(("/", f"car{number}", "car", SPEED, None) for number in range(3, 8))],
    49: [
        ("/", "car1", "car", WHOLE, None),
        ("/", "car2", "car", SPEED, None),
        ("/", "car1", "car", SPEED, None),
    ],
    50: [("/", "car1", "car", WHOLE, None)],
    51: [
        ("/", "car1", "car", WHOLE, None),
        ("/", "car2", "car", SPEED, None),
        ("/", "car1", "car", SPEED, None),
    ],
    57: [("/4wheels", "car1", "car", NONE, None)],
    58: [("/4wheels", "car1", "car", NONE, None)],
    59: [("/4wheels", "car1", "car", NONE, None)],
    88: [("/4wheels", "shadow", "T", NONE, "2050-01-01T00:00:00.000Z")],
    90: [("/4wheels", "car2", "car", NONE, "57.717")],
    92: [("/4wheels", "car2", "car", NONE, "57.717")],
    95: [("/", "car1", "car", SPEED, "57.682"), ("/", "car2", "car", SPEED, "57.717")],
}
# Key-values have neither types nor metadata: each attribute lacks its shape.
BROKEN = {
    44: ["attr-shape"] * 5,
    48: ["attr-shape"] * 9,
    49: ["attr-shape"] * 6,
    51: ["attr-shape"] * 6,
    88: ["shadowed-builtin"],
}


def answered(number: int) -> list[tuple[bytes, str | None]]:
    """The entities of an answer, each with the path that was asked for where that is one."""
    exchange = RECORDED[number]
    body = exchange["response"]["body"]
    path = EntityQuery(exchange["request"]["headers"]["Fiware-ServicePath"]).known_path
    return [(json.dumps(entity).encode(), path) for entity in (body if isinstance(body, list) else [body])]


def moment(shown: str | None) -> datetime | None:
    if shown is None:
        return None
    return datetime.fromisoformat(shown if "T" in shown else f"2026-11-21T05:38:{shown}Z")


@pytest.mark.parametrize("number", ENTITIES)
def test_every_recorded_entity_is_taken_apart(number: int) -> None:
    parsed = [parse_entity(body, service="s", service_path_hint=path) for body, path in answered(number)]
    found = [
        (each.identity.service_path, each.identity.id, each.identity.type, list(each.attributes), each.modified_at)
        for each in parsed
    ]
    assert found == [
        (path, id_, type_, attributes.split(), moment(modified))
        for path, id_, type_, attributes, modified in ENTITIES[number]
    ]


@pytest.mark.parametrize("number", ENTITIES)
def test_the_pull_sees_the_same_of_every_recorded_entity(number: int) -> None:
    heads = [read_entity_head(body, path) for body, path in answered(number)]
    expected = [path if path != "/" else None for path, *_ in ENTITIES[number]]
    assert [each.path for each in heads] == expected
    assert [(each.id, each.type) for each in heads] == [(id_, type_) for _, id_, type_, *_ in ENTITIES[number]]
    assert [moment(each.modified) for each in heads] == [moment(modified) for *_, modified in ENTITIES[number]]


@pytest.mark.parametrize("number", ENTITIES)
def test_recorded_entities_break_exactly_these_rules(number: int) -> None:
    options = EntityRuleOptions(reference_time=RECORDED_AT)
    parsed = [parse_entity(body, service="s", service_path_hint=path) for body, path in answered(number)]
    assert [each.rule for one in parsed for each in check_entity(one, options)] == BROKEN.get(number, [])


def test_no_recorded_entity_is_left_out() -> None:
    def has_entities(body: Any) -> bool:
        first = body[0] if isinstance(body, list) and body else body
        return isinstance(first, dict) and "id" in first and "subject" not in first

    found = {number for number, each in RECORDED.items() if has_entities(each["response"]["body"])}
    assert found == set(ENTITIES)


# What is refused for good, so that a person learns it immediately; and what is worth another try.
REFUSED = {
    400: [
        15,
        16,
        28,
        30,
        32,
        *range(34, 37),
        *range(38, 42),
        43,
        *range(52, 57),
        62,
        64,
        68,
        70,
        *range(73, 80),
        81,
        85,
        86,
    ],
    404: [66, 94],
    405: [69],
    406: [72],
    409: [67],
    415: [71],
    422: [12],
    500: [99],
}


@pytest.mark.parametrize(("status", "numbers"), REFUSED.items())
def test_recorded_refusals_lead_to_errors_by_what_to_do(status: int, numbers: list[int]) -> None:
    for number in numbers:
        recorded = RECORDED[number]["response"]
        assert recorded["status"] == status
        answer = httpx.Response(status, headers=recorded["headers"], json=recorded["body"])
        error = refusal_error("http://broker:1026", answer, {"q": ""})
        assert isinstance(error, RetriableError if status == 500 else ConfigurationError)
        assert error.context["correlator"] == recorded["headers"]["fiware-correlator"]
        # Descriptions are free text with what a client sent: they are never repeated.
        assert recorded["body"]["description"] not in str(error)


def test_no_recorded_refusal_is_left_out() -> None:
    refused = {number for number, each in RECORDED.items() if each["response"]["status"] >= 400}
    assert refused == {number for numbers in REFUSED.values() for number in numbers}
