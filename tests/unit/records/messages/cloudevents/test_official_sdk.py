"""Our records as the official Python SDK reads them, where it is installed; it is a second reader, not the judge.

Its known faults: no data and empty data are the same to it, it makes up a `time`, the record's key overwrites
`partitionkey`, a structured record with `ce_` headers is taken for a binary one, and JSON media types beyond
`application/` and `text/` for text.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from builders.cloud_events import event
from contexture.events import StructureIdentity
from contexture.records.cloudevents import Mode, encode
from contexture.records.cloudevents.change_events import RunReference, structure_attributes

kafka: Any = pytest.importorskip("cloudevents.core.bindings.kafka", reason="the SDK `cloudevents` is not installed")

MODES: tuple[Mode, ...] = ("binary", "structured")


def read(sent_event: dict[str, object], mode: Mode, key: str | None = None) -> Any:
    """The event that the SDK finds in our record."""
    sent = encode(sent_event, mode=mode, key=key)
    return kafka.from_kafka_event(kafka.KafkaMessage(dict(sent.headers), sent.key, sent.value))


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_reads_attributes_and_json(mode):
    sent_event = event(
        subject="Euro € 😀 50%",
        time="2026-03-01T08:00:00Z",
        dataschema="https://example.org/schema",
        datacontenttype="application/json",
        myext="x",
        data={"speed": [1.5, None, True]},
    )

    found = read(sent_event, mode, key=None)

    attributes = found.get_attributes()
    assert {name: attributes[name] for name in sent_event if name not in {"data", "time"}} == {
        name: value for name, value in sent_event.items() if name not in {"data", "time"}
    }
    assert attributes["time"] == datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert found.get_data() == {"speed": [1.5, None, True]}


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_reads_bytes(mode):
    found = read(event(datacontenttype="application/octet-stream", data=bytes(range(256))), mode)

    assert found.get_data() == bytes(range(256))


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_reads_the_change_of_a_structure(mode):
    urn = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=BIS:CL_FREQ(1.0)"
    sent_event = structure_attributes(
        "upsert",
        StructureIdentity(urn),
        connection="registry",
        content_hash=b"\x01" * 32,
        occasion=RunReference(registry_transaction=41, modified_at=datetime(2026, 3, 1, 8, tzinfo=UTC)),
        media_type="application/vnd.sdmx.structure+json;version=2.0.0",
    )

    found = read({**sent_event, "data": {"data": {}}}, mode)

    assert found.get_subject() == urn
    assert found.get_id() == sent_event["id"]
    assert found.get_data() == {"data": {}}


def test_the_sdk_reads_a_structured_event_without_data():
    found = read(event(), "structured")

    assert (found.get_id(), found.get_data()) == ("17", None)
