"""Content for the test broker: as much as is wanted, the same for the same seed, shaped like real city data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from contexture_sandbox.context_broker.loading import SeedEntity
from contexture_sandbox.context_broker.models import example, models, recorded

__all__ = ["BadEntity", "SeedEntity", "bad_entities", "changes", "seed_entities"]
CARS = ("vehicles", "/4wheels")


@dataclass(frozen=True, slots=True)
class BadEntity(SeedEntity):
    """An entity that breaks a row rule.

    Attributes:
        rule: the rule's name.
    """

    rule: str = ""


def seed_entities(count: int, seed: int = 1) -> Iterator[SeedEntity]:
    """The first `count` entities of a city.

    They begin with the 13 vehicles of the recorded exchanges (service `vehicles`, paths `/4wheels` and `/2wheels`);
    then come in turn a car of `vehicles` `/4wheels` and, in service `city`, a weather station of `/sensors`, a bike
    station of `/mobility`, a street light of `/lighting`, a device of `/sensors/devices` and a traffic observation of
    `/mobility/traffic`. A greater count continues where a smaller one ended. Every one of them a broker would take.

    Args:
        count: how many.
        seed: decides positions, numbers and truth values; ids and dates depend on the number alone.
    """
    yield from recorded()[:count]
    random = Random(seed)
    kinds = models()
    for number in range(max(0, count - len(recorded()))):
        yield kinds[number % len(kinds)].entity(number // len(kinds), random)


def bad_entities() -> tuple[BadEntity, ...]:
    """Cars, and two official examples, that break one row rule each; several could not be written through the API."""
    return (*_bad_cars(), *_bad_examples())


def _bad_cars() -> Iterator[BadEntity]:
    attributes: dict[str, dict[str, object]] = {
        "number-string": {"speed": {"type": "Number", "value": "12"}},
        "bool-string": {"parked": {"type": "Boolean", "value": "yes"}},
        "datetime": {"when": {"type": "DateTime", "value": "not a date"}},
        "geojson": {"location": {"type": "geo:json", "value": {"type": "Point", "coordinates": [2.1, 141.3]}}},
        "attr-shape": {"speed": 12},
        "null-value": {"speed": {"type": "Number", "value": None}},
        "datetime-range": {"when": {"type": "DateTime", "value": "1066-10-14T09:00:00Z"}},
        "geo-legacy": {"location": {"type": "geo:point", "value": "41.3, 2.1"}},
        "future-modified": {"dateModified": {"type": "DateTime", "value": "2050-01-01T00:00:00Z"}},
    }
    for rule, broken in attributes.items():
        yield BadEntity(*CARS, {"id": f"car-{rule}", "type": "car", **broken}, rule=rule)
    yield BadEntity(*CARS, {"id": "car-type-missing", "speed": {"type": "Number", "value": 1}}, rule="type-missing")


def _bad_examples() -> Iterator[BadEntity]:
    yield BadEntity("city", "/sensors", example("MosquitoDensity"), rule="id-syntax")
    interval = {**example("TrafficFlowObserved"), "id": "TrafficFlowObserved-Valladolid-interval"}
    yield BadEntity("city", "/mobility/traffic", interval, rule="datetime")


def changes(count: int, seed: int = 1, *, updates: int = 10) -> Iterator[SeedEntity]:
    """What happens to the cars of `seed_entities(count, seed)` next, as a second load.

    `updates` cars drive at another speed, the car after them is gone, one car is new, and two that came with it break
    a rule (`number-string`, `datetime`). Loading it twice changes nothing the second time.
    """
    cars = (one for one in seed_entities(count, seed) if (one.service, one.service_path) == CARS)
    known = list(islice(cars, updates + 1))
    random = Random(f"changes {seed}")
    for car in known[:updates]:
        speed = {"type": "Number", "value": round(random.uniform(1, 130), 1)}
        yield replace(car, entity={**car.entity, "speed": speed})
    if len(known) > updates:
        yield replace(known[updates], delete=True)
    yield SeedEntity(*CARS, {"id": "car-new", "type": "car", "speed": {"type": "Number", "value": 42}})
    yield from (
        bad for bad in bad_entities() if bad.service == "vehicles" and bad.rule in {"number-string", "datetime"}
    )
