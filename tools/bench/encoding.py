"""`encode`: what one core does with names, entities and events, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar

import orjson

from contexture.records.topics import encodings
from contexture.sources.ngsi.entity import ParsedEntity, parse_entity
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity
from tools.bench.cars import RECEIVED_AT, SERVICE, SERVICE_PATH, cars
from tools.bench.event_encoding import encode_events
from tools.bench.measures import Measure, Measurement, Target, alternate
from tools.bench.settings import Setting

NAMES_TARGET = Target(1_000_000, at_least=True)
SHAPES = ("vehicles", "/4wheels/{}", "car{}", "urn:ngsi-ld:Vehicle:{}", "Streetlight", "/sensors/devices", "speed_{}")
_ENTITY_SHARE = 4
"""An entity costs so many times what a name does, and more."""

Item = TypeVar("Item")


def encode(setting: Setting) -> list[Measure]:
    """Cygnus names, parsing, rules and CloudEvents on one core."""
    items = setting.sizes.single_core_items
    return [_names(setting, items), *_entities(setting, items // _ENTITY_SHARE), *encode_events(setting)]


def _names(setting: Setting, items: int) -> Measure:
    names = [SHAPES[number % len(SHAPES)].format(number) for number in range(items)]
    rates = tuple(items / _seconds(encodings.encode_cygnus, names) for _ in range(setting.sizes.pairs))
    setting.progress(f"{max(rates):,.0f} names/s")
    return Measure("encode", "cygnus.encode_cygnus of ordinary names, one core", "names/s", rates, target=NAMES_TARGET)


def _entities(setting: Setting, items: int) -> list[Measure]:
    bodies = list(islice(cars(), items))
    parsed = [_parse(body) for body in bodies]
    options = EntityRuleOptions(reference_time=RECEIVED_AT)
    steps: dict[str, Measurement] = {
        "parse_entity, one core": lambda: _microseconds(_parse, bodies),
        "all row rules of one entity, one core": lambda: _microseconds(lambda one: check_entity(one, options), parsed),
    }
    measures = []
    for what, step in steps.items():
        ours, peer = alternate(step, lambda: _microseconds(orjson.loads, bodies), setting.sizes.pairs, setting.progress)
        measures.append(Measure("encode", what, "us/entity", ours, peer, "orjson.loads of the same bodies"))
    return measures


def _parse(body: bytes) -> ParsedEntity:
    return parse_entity(body, service=SERVICE, service_path_hint=SERVICE_PATH)


def _microseconds(step: Callable[[Item], object], given: Sequence[Item]) -> float:
    return _seconds(step, given) / len(given) * 1_000_000


def _seconds(step: Callable[[Item], object], given: Iterable[Item]) -> float:
    began = time.perf_counter()
    for one in given:
        step(one)
    return time.perf_counter() - began
