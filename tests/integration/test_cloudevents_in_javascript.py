"""Our events on a real Kafka, as the official JavaScript SDK reads them; it is a second reader, not the judge.

Its known faults, each held here, so that a version without it is noticed: it refuses records without a value, and
structured events without a time; it takes the record's key for the partitionkey; it leaves JSON of other media types
than application/json as bytes in binary mode; it writes times anew; it takes headers as texts alone.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import orjson
import pytest

from builders import javascript_sdk
from builders.plain_kafka import consumed, made_topic, produce
from contexture.events import StructureIdentity
from contexture.records.cloudevents import Mode, Record, encode
from contexture.records.cloudevents.change_events import RunReference, structure_attributes

pytestmark = pytest.mark.integration

NOON = "2026-03-01T12:00:00.000Z"
EVENT: dict[str, object] = {
    "specversion": "1.0",
    "id": "17",
    "source": "/cars",
    "type": "moved",
    "subject": "Euro € 😀 50%",
    "time": NOON,
    "dataschema": "https://example.org/schema",
    "datacontenttype": "application/json",
    "myext": "x",
}
MODES: tuple[Mode, ...] = ("binary", "structured")
URN = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=BIS:CL_FREQ(1.0)"


@pytest.fixture(scope="module")
def sdk():
    return javascript_sdk.installed()


@pytest.fixture
def read(sdk, kafka):
    """Sends records and gives what the SDK finds in each."""

    def read(*records: Record) -> list[dict[str, Any]]:
        topic = made_topic(kafka)
        produce(kafka, topic, *records)
        return javascript_sdk.read(sdk, consumed(kafka, topic))

    return read


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_reads_attributes_and_json(read, mode):
    [found] = read(encode({**EVENT, "data": {"speed": [1.5, None, True]}}, mode=mode))
    assert {name: found["event"][name] for name in EVENT} == EVENT
    assert found["data"] == {"speed": [1.5, None, True]}


def test_the_sdk_reads_bytes(read):
    sent = {**EVENT, "datacontenttype": "application/octet-stream", "data": bytes(range(256))}
    [binary, structured] = read(encode(sent, mode="binary"), encode(sent, mode="structured"))
    assert b64decode(binary["data"]["base64"]) == bytes(range(256))
    assert b64decode(structured["event"]["data_base64"]) == bytes(range(256))


def test_the_sdk_reads_the_change_of_a_structure(read):
    attributes = structure_attributes(
        "upsert",
        StructureIdentity(URN),
        connection="registry",
        content_hash=b"\x01" * 32,
        occasion=RunReference(registry_transaction=41),
        media_type="application/vnd.sdmx.structure+json;version=2.0.0",
    )
    event = {**attributes, "time": NOON, "data": {"data": {}}}
    [binary, structured] = read(encode(event, mode="binary", key=URN), encode(event, mode="structured", key=URN))
    assert [each["event"]["subject"] for each in (binary, structured)] == [URN, URN]
    assert [each["event"]["id"] for each in (binary, structured)] == [attributes["id"], attributes["id"]]
    assert structured["data"] == {"data": {}}
    # A fault: this media type is JSON too.
    assert orjson.loads(b64decode(binary["data"]["base64"])) == {"data": {}}


def test_the_sdk_refuses_a_tombstone(read):
    [found] = read(encode(EVENT, mode="binary"))
    assert found == {"error": "TypeError: Value is null or undefined"}


def test_the_sdk_refuses_a_structured_event_without_a_time(read):
    timeless = {name: value for name, value in EVENT.items() if name != "time"}
    [binary, structured] = read(*(encode({**timeless, "data": 1}, mode=mode) for mode in MODES))
    assert binary["event"]["id"] == "17"
    assert structured == {"error": "RangeError: Invalid time value"}


def test_the_sdk_takes_the_key_for_the_partitionkey_and_writes_times_anew(read):
    event = {**EVENT, "time": "2026-03-01T14:00:00+02:00", "partitionkey": "blue", "data": 1}
    for found in read(*(encode(event, mode=mode, key="car1") for mode in MODES)):
        assert (found["event"]["partitionkey"], found["event"]["time"]) == ("car1", NOON)
