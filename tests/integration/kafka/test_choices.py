"""What a publication chooses of the producer, on a real broker."""

from __future__ import annotations

import uuid
from io import BytesIO
from pathlib import Path

import pytest

from builders.outboxes import publication
from builders.registry import EXR, SEX, SEX_AND_FLOW, codelist, codelists, urn
from builders.structure_runs import InProcess, StructurePreparer, only, registry_publication, upserts
from contexture.errors import ConfigurationError
from contexture.events import ContextIdentity, identity_key
from contexture.kafka import ClientSettings, CommittedReader, partition_for
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.sending.target import KafkaTarget, SendRequest
from contexture.sending.testing import MemoryShard, OutboxRow
from contexture.sources.sdmx import split
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration

A = urn("CL_A")


@pytest.fixture(scope="module")
def settings(kafka: EmbeddedKafka) -> ClientSettings:
    return ClientSettings.from_extra(kafka.client_settings())


@pytest.fixture
def name() -> str:
    return f"choices-{uuid.uuid4().hex[:10]}"


def key(number: int, kind: str) -> bytes:
    return identity_key(ContextIdentity("vehicles", "/4wheels", f"{kind}{number}", kind))


def test_entities_of_one_type_share_a_partition_and_keep_their_keys(settings: ClientSettings, name: str) -> None:
    target = KafkaTarget(settings, publication(name=name, publish={"partitioner": "type"}, topics={"partitions": 5}))
    target.ensure_topics([name])
    rows = [OutboxRow(name, key(number, kind), b"x") for number in range(3) for kind in ("car", "bus", "tram")]

    target.send(SendRequest(MemoryShard(rows), 1, lambda failure: None))

    found = {record.key: record.partition for record in CommittedReader(settings, [name]).records()}
    assert found == {row.key: partition_for((row.key or b"").split(b'"')[7], 5) for row in rows}
    assert len(set(found.values())) > 1


def test_a_partition_beyond_the_topic_s_own_stops_before_anything_is_visible(
    settings: ClientSettings, name: str
) -> None:
    KafkaTarget(settings, publication(name=name)).ensure_topics([name])
    target = KafkaTarget(settings, publication(name=name, publish={"partitioner": 3}, topics={"partitions": 4}))

    with pytest.raises(ConfigurationError, match=f"chose partition 3 of topic {name}, which has 1"):
        target.send(SendRequest(MemoryShard([OutboxRow(name, b"k", b"x")]), 1, lambda failure: None))

    assert list(CommittedReader(settings, [name]).records()) == []


def test_an_encoder_that_is_not_installed_is_known_before_topics_are_made(settings: ClientSettings, name: str) -> None:
    target = KafkaTarget(settings, publication(name=name, message={"encoder": "nowhere"}))
    with pytest.raises(ConfigurationError, match="no installed package offers 'nowhere'"):
        target.ensure_topics([name])
    assert name not in TopicAdmin(settings, BrokerWait(60)).listed()


def test_a_transaction_is_one_record_and_its_deletions_follow_it(
    settings: ClientSettings, name: str, tmp_path: Path
) -> None:
    owner = registry_publication(
        name=name, topics={"topics": [name], "keep": "history"}, message={"bundle": "transaction"}
    )
    runs, target = StructurePreparer(InProcess(), tmp_path, owner), KafkaTarget(settings, owner)  # type: ignore[arg-type]
    target.ensure_topics([name])
    full = upserts(SEX_AND_FLOW, codelists(codelist("CL_A", "1.0", "x")))
    change = [*upserts(codelists(codelist("CL_A", "1.0", "y")), transaction=6), *only("delete", SEX, transaction=6)]
    for rows, options in (
        (full, {"mode": "full", "complete": True, "registry_transaction": 5}),
        (change, {"watermark": "6"}),
    ):
        manifest = runs.concluded(rows, **options)
        reader = runs.storage.publication(name).reader(manifest, 0)
        target.check_sizes(reader, [name], manifest.shards[0].bytes)
        target.send(SendRequest(reader, 1, lambda failure: None, bytes=manifest.shards[0].bytes))

    found = list(CommittedReader(settings, [name]).records())

    assert [
        (record.key, None if record.value is None else [each.urn for each in split(BytesIO(record.value))])
        for record in found
    ] == [(None, [EXR, SEX, A]), (None, [A]), (SEX.encode(), None)]
    assert [dict(record.headers)["contexture_registry_transaction"] for record in found] == [b"5", b"6", b"6"]
