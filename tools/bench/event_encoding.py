"""CloudEvents to Kafka records on one core, against the official Python SDK."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from typing import Any

from contexture.records.cloudevents import Mode, Template, encode
from tools.bench.measures import Measure, Target, alternate
from tools.bench.settings import Setting

TARGETS: dict[Mode, Target] = {"binary": Target(5, at_least=True), "structured": Target(4, at_least=True)}
_SHARE = 20
"""An event costs so many times what a name does, and more."""

_SHARED: dict[str, object] = {
    "specversion": "1.0",
    "source": "/ngsi/context_broker/city/lights",
    "type": "contexture.ngsi.entity.upsert",
    "datacontenttype": "application/ld+json",
    "entitytype": "Streetlight",
}
_VARYING = ("id", "subject", "time")
_MOMENT = datetime(2026, 3, 1, 8, tzinfo=UTC)
_TIME = "2026-03-01T08:00:00Z"

_Event = tuple[str, str, dict[str, object]]
_Step = Callable[[str, str, dict[str, object]], object]


def encode_events(setting: Setting) -> list[Measure]:
    """From attributes and a dictionary of data to headers and a value; nothing where the SDK isn't installed."""
    if find_spec("cloudevents") is None:
        setting.progress("CloudEvents are skipped: their peer, the package `cloudevents`, is not installed")
        return []
    count = setting.sizes.single_core_items // _SHARE
    events = [(_id(number), _subject(number), _streetlight(number)) for number in range(count)]
    return [measure for mode in TARGETS for measure in _measures(setting, mode, events)]


def _measures(setting: Setting, mode: Mode, events: list[_Event]) -> list[Measure]:
    peer = _sdk(mode)
    found = []
    for what, step, target in (
        (f"CloudEvents {mode} by a template, data as a dictionary", _template(mode), TARGETS[mode]),
        (f"CloudEvents {mode} by encode, data as a dictionary", _encode(mode), None),
    ):
        ours, theirs = alternate(
            partial(_rate, step, events), partial(_rate, peer, events), setting.sizes.pairs, setting.progress
        )
        found.append(Measure("encode", what, "events/s", ours, theirs, "the SDK `cloudevents`", target))
    return found


def _template(mode: Mode) -> _Step:
    template = Template(_SHARED, _VARYING, mode)

    def step(identity: str, subject: str, data: dict[str, object]) -> object:
        return template.record((identity, subject, _MOMENT), data, key=subject)

    return step


def _encode(mode: Mode) -> _Step:
    def step(identity: str, subject: str, data: dict[str, object]) -> object:
        event = {**_SHARED, "id": identity, "subject": subject, "time": _MOMENT, "data": data}
        return encode(event, mode=mode, key=subject)

    return step


def _sdk(mode: Mode) -> _Step:
    from cloudevents.core.bindings import kafka
    from cloudevents.core.v1.event import CloudEvent

    write: Callable[[Any], object] = kafka.to_binary_event if mode == "binary" else kafka.to_structured_event

    def step(identity: str, subject: str, data: dict[str, object]) -> object:
        attributes = {**_SHARED, "id": identity, "subject": subject, "time": _MOMENT}
        return write(CloudEvent(attributes, data))

    return step


def _rate(step: _Step, events: list[_Event]) -> float:
    # Time of the processor: neighbours on the same core then change little.
    began = time.process_time()
    for event in events:
        step(*event)
    return len(events) / (time.process_time() - began)


def _id(number: int) -> str:
    return f"0123456789abcdef{number:016x}"


def _subject(number: int) -> str:
    return f"urn:ngsi-ld:Streetlight:{number}"


def _streetlight(number: int) -> dict[str, object]:
    """About 1,200 bytes: nine attributes, as a broker notifies them."""
    names = ("powerState", "status", "dimming", "current", "voltage", "energy", "lanternHeight", "colour")
    measured = {
        name: {"type": "Property", "value": number % 97 + at / 10, "observedAt": _TIME, "unitCode": "KMH"}
        for at, name in enumerate(names)
    }
    return {
        "id": _subject(number),
        "type": "Streetlight",
        **measured,
        "location": {"type": "GeoProperty", "value": {"type": "Point", "coordinates": [-3.7, 40.4 + number % 10]}},
        "@context": ["https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld"],
    }
