"""Example entities, and how another one of the same kind is made of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from random import Random

import orjson

from contexture_sandbox.context_broker.loading import SeedEntity, read_lines
from contexture_sandbox.context_broker.syntax import members
from contexture_sandbox.context_broker.times import parse_time

SMALLEST_FACTOR = 0.5
FACTOR_SPREAD = 0.65
"""Shares such as a battery level of 0.75 stay below 1."""
DEGREES = 0.05
STEP = timedelta(minutes=5)
STEPS = 12 * 24 * 28
Vary = Callable[[Random, int], object]


@dataclass(frozen=True, slots=True)
class EntityModel:
    """One kind of entity.

    Attributes:
        service, service_path: where its entities live.
        type: entity type.
        identifier: makes the id of the n-th entity.
        attributes: the example's, by name.
        variations: what makes another value, for the attributes that vary.
    """

    service: str
    service_path: str
    type: str
    identifier: Callable[[int], str]
    attributes: Mapping[str, Mapping[str, object]]
    variations: Mapping[str, Vary]

    def entity(self, number: int, random: Random) -> SeedEntity:
        """The n-th entity. Values that do not vary are shared with the others: do not change them in place."""
        varied = {name: {**self.attributes[name], "value": vary(random, number)}
                  for name, vary in self.variations.items()}  # fmt: skip
        body = {"id": self.identifier(number), "type": self.type, **self.attributes, **varied}
        return SeedEntity(self.service, self.service_path, body)


@cache
def models() -> tuple[EntityModel, ...]:
    """Cars and five Smart Data Models."""
    car = next(seed.entity for seed in recorded() if seed.entity["id"] == "car1")
    traffic = dict(example("TrafficFlowObserved"))
    # The official example gives an interval, which a broker refuses as a DateTime.
    traffic["dateObserved"] = {"type": "DateTime", "value": "2016-12-07T11:10:00Z"}
    return (
        _model("vehicles", "/4wheels", lambda n: f"car{n + 8}", car),
        _model("city", "/sensors", lambda n: f"Valladolid.station-{n:06d}", example("WeatherObserved")),
        _model(
            "city", "/mobility", lambda n: f"urn:ngsi-ld:Bcn-BikeHireDockingStation-{n + 1}",
            example("BikeHireDockingStation"),
        ),
        _model("city", "/lighting", lambda n: f"streetlight:guadalajara:{4567 + n}", example("Streetlight")),
        _model("city", "/sensors/devices", lambda n: f"device-{0x9845 + n:04X}A", example("Device")),
        _model(
            "city", "/mobility/traffic", lambda n: f"TrafficFlowObserved-Valladolid-osm-{60821110 + n}", traffic
        ),
    )  # fmt: skip


def example(name: str) -> Mapping[str, object]:
    """An official example, as published."""
    return _object(_data(f"{name}.json"))


@cache
def recorded() -> tuple[SeedEntity, ...]:
    """The vehicles of the recorded exchanges: seven cars, and in another path five bikes and a car."""
    return tuple(read_lines(_data("recorded.ndjson")))


def _data(name: str) -> bytes:
    return (files(__package__ or "") / "data" / name).read_bytes()


def _object(text: bytes) -> dict[str, object]:
    value = orjson.loads(text)
    assert isinstance(value, dict)
    return value


def _model(
    service: str, service_path: str, identifier: Callable[[int], str], entity: Mapping[str, object]
) -> EntityModel:
    attributes = {name: given for name, given in members(entity).items() if isinstance(given, dict)}
    found = {name: _variation(given["type"], given["value"]) for name, given in attributes.items()}
    variations = {name: vary for name, vary in found.items() if vary is not None}
    return EntityModel(service, service_path, str(entity["type"]), identifier, attributes, variations)


def _variation(type_: str, value: object) -> Vary | None:
    if isinstance(value, bool):
        return lambda random, _number: random.random() < 0.5
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str) and type_ == "DateTime" and parse_time(value) is not None:
        return _time(datetime.fromisoformat(value))
    if isinstance(value, dict) and value.get("type") == "Point":
        return _point(value["coordinates"])
    return None


def _number(value: float) -> Vary:
    if isinstance(value, int):
        low, high = int(value * SMALLEST_FACTOR), int(value * (SMALLEST_FACTOR + FACTOR_SPREAD))
        return lambda random, _number: low + int(random.random() * (high - low + 1))
    digits = len(repr(value).partition(".")[2])
    return lambda random, _number: round(value * (SMALLEST_FACTOR + FACTOR_SPREAD * random.random()), digits)


def _time(start: datetime) -> Vary:
    texts = [(start + STEP * step).isoformat().replace("+00:00", "Z") for step in range(STEPS)]
    return lambda _random, number: texts[number % STEPS]


def _point(coordinates: list[float]) -> Vary:
    longitude, latitude = coordinates

    def vary(random: Random, _number: int) -> object:
        east, north = random.random() - 0.5, random.random() - 0.5
        return {
            "type": "Point",
            "coordinates": [round(longitude + DEGREES * east, 6), round(latitude + DEGREES * north, 6)],
        }

    return vary
