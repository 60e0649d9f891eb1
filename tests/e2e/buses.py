"""Buses of a city: a publication of a few entities, whose every record is known."""

from __future__ import annotations

import json
from collections.abc import Iterable

import httpx

from contexture.kafka import read_committed
from contexture.kafka.reader import TopicRecord
from e2e.installation import Installation

DAG = "publish_buses"
BUSES = """\
name: buses
schedule: SCHEDULE
source: {kind: ngsi, connection: context_broker, service: city, service_path: /lines, types: [bus]}
topics: {naming: fixed, topics: [buses]}
resync: {on_startup: ON_STARTUP}
"""
HEADERS = {"Fiware-Service": "city", "Fiware-ServicePath": "/lines"}


def describe(platform: Installation, *, schedule: str, on_startup: str) -> None:
    """Puts the publication's file where Airflow looks."""
    text = BUSES.replace("SCHEDULE", schedule).replace("ON_STARTUP", on_startup)
    (platform.publications / "buses.yaml").write_text(text)


def drive(platform: Installation, **lines: int) -> None:
    """Sets the lines of buses; those the broker does not hold come to be."""
    for bus, line in lines.items():
        entity = {"id": bus, "type": "bus", "line": {"type": "Number", "value": line}}
        url = f"{platform.stack.broker.url}/v2/entities"
        httpx.post(url, params={"options": "upsert"}, headers=HEADERS, json=entity).raise_for_status()


def records(platform: Installation, topic: str) -> list[TopicRecord]:
    """What a read-committed consumer gets, partition by partition in order."""
    found = read_committed(platform.stack.kafka_settings(), [topic])
    return sorted(found, key=lambda record: (record.partition, record.offset))


def lines_by_bus(consumed: Iterable[TopicRecord]) -> dict[str, list[int]]:
    """Returns the lines of each bus in the order in which consumers receive them."""
    lines: dict[str, list[int]] = {}
    for record in consumed:
        assert record.key is not None
        assert record.value is not None
        entity = json.loads(record.value)
        assert json.loads(record.key) == ["city", "/lines", entity["id"], "bus"]
        lines.setdefault(entity["id"], []).append(entity["line"]["value"])
    return lines
