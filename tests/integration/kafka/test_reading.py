"""Readers, codecs, times and profiles on a real broker."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from contexture.kafka import (
    ClientSettings,
    CommittedReader,
    DamagedRecordsError,
    GroupOffsets,
    OffsetGoneError,
    TopicFilter,
    TopicSpec,
    ensure_topics,
)
from contexture.kafka.consumer_group import LEAVE_SECONDS
from contexture.sending import Publisher, SenderNames, encoded_values, one_after_the_other, partitioned
from contexture.sending.testing import MemoryShard, OutboxRow

pytestmark = pytest.mark.integration

NOON = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp() * 1000)
# Where the attributes of a batch begin in a log segment (record batch version 2); their lowest bits name the codec.
ATTRIBUTES_AT = 21
# What a busy machine may take longer.
SLACK_SECONDS = 60
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.fixture(scope="module")
def settings(kafka):
    return ClientSettings.from_extra(kafka.client_settings())


@pytest.fixture
def name():
    return f"read-{uuid.uuid4().hex[:10]}"


def send(settings, topic, rows, sequence=1):
    names = SenderNames(f"{topic}.{sequence}")
    Publisher(settings, names, shards=1).publish(MemoryShard(rows, sequence=sequence))


def ten(topic, first=0):
    """Ten records a minute apart."""
    return [
        OutboxRow(topic, b"k%d" % number, b"v%d" % number, timestamp_ms=NOON + number * 60_000)
        for number in range(first, first + 10)
    ]


def values(records):
    return [record.value for record in records]


def test_reading_begins_at_the_beginning_an_offset_a_time_or_a_group_s_offsets(settings, name):
    ensure_topics(settings, [TopicSpec(name)])
    send(settings, name, ten(name))
    reader = CommittedReader(settings, [name])
    expected = [b"v%d" % number for number in range(10)]
    assert values(reader.records()) == expected
    assert values(reader.records(since={(name, 0): 7})) == expected[7:]
    # Exactly at a record's time, between two, before the first and after the last one.
    for minutes, first in ((4, 4), (4.5, 5), (-60, 0), (9.001, 10)):
        moment = datetime.fromtimestamp(NOON / 1000 + minutes * 60, tz=UTC)
        assert values(reader.records(since=moment)) == expected[first:]
    group = f"group-{name}"
    assert values(reader.records(since=GroupOffsets(group))) == expected
    with reader.member(group) as member:
        given = [next(member.records(idle_seconds=30)) for _ in range(6)]
        member.commit()
    assert values(given) == expected[:6]
    assert values(reader.records(since=GroupOffsets(group))) == expected[6:]


def test_what_was_deleted_before_it_was_read_is_reported_loudly(settings, name):
    ensure_topics(settings, [TopicSpec(name)])
    send(settings, name, ten(name))
    reader, group = CommittedReader(settings, [name]), f"group-{name}"
    with reader.member(group) as member:
        next(member.records(idle_seconds=30))
        member.commit()
    admin = AdminClient(settings.admin())
    (deletion,) = admin.delete_records([TopicPartition(name, 0, 5)]).values()
    deletion.result(60)
    assert values(reader.records()) == [b"v%d" % number for number in range(5, 10)]
    for since in ({(name, 0): 2}, {(name, 0): 99}, GroupOffsets(group)):
        with pytest.raises(OffsetGoneError, match=rf"{name}\[0\] cannot be read.* the partition has 5 to 11") as caught:
            list(reader.records(since=since))
    assert "verify the replica or resynchronise" in caught.value.next_step
    with reader.member(group) as member, pytest.raises(OffsetGoneError, match="cannot be read"):
        list(member.records(idle_seconds=30))


def test_a_reader_may_accept_the_loss_of_what_was_deleted_before_it_was_read(settings, name, caplog):
    ensure_topics(settings, [TopicSpec(name)])
    send(settings, name, ten(name))
    group, remaining = f"group-{name}", [b"v%d" % number for number in range(5, 10)]
    with CommittedReader(settings, [name]).member(group) as member:
        next(member.records(idle_seconds=30))
        member.commit()
    admin = AdminClient(settings.admin())
    (deletion,) = admin.delete_records([TopicPartition(name, 0, 5)]).values()
    deletion.result(60)
    earliest = CommittedReader(settings, [name], out_of_range="earliest")
    latest = CommittedReader(settings, [name], out_of_range="latest")

    assert values(earliest.records(since=GroupOffsets(group))) == remaining
    assert f"{name}[0] is read from offset 5, records are left out: offset 1 does not exist" in caplog.text
    assert values(latest.records(since={(name, 0): 2})) == []
    assert values(earliest.records(since={(name, 0): 7})) == remaining[2:]
    with earliest.member(group) as member:
        assert values(next(member.records(idle_seconds=30)) for _ in range(5)) == remaining


def test_bytes_that_changed_on_a_brokers_disk_are_reported_loudly(kafka, name):
    settings = ClientSettings.from_extra({**kafka.client_settings(), "compression.type": "none"})
    ensure_topics(settings, [TopicSpec(name)])
    send(settings, name, ten(name))
    (segment,) = Path(kafka.folder).glob(f"node-*/data/{name}-0/00000000000000000000.log")
    with segment.open("r+b") as file:
        file.seek(segment.read_bytes().index(b"v7"))
        file.write(b"x7")
    with pytest.raises(DamagedRecordsError, match=rf"records of {name}\[0\] are damaged: _BAD_MSG"):
        list(CommittedReader(settings, [name]).records())
    with CommittedReader(settings, [name]).member(name) as member, pytest.raises(DamagedRecordsError):
        list(member.records(idle_seconds=30))
    careless = ClientSettings.from_extra({**kafka.client_settings(), "check.crcs": False})
    assert b"x7" in values(CommittedReader(careless, [name]).records())


def test_members_of_a_group_share_partitions_and_move_only_some_of_them(settings, name):
    topics = [f"{name}.cars", f"{name}.bikes", f"{name}.cars.test"]
    ensure_topics(settings, [TopicSpec(topic, partitions=4) for topic in topics])
    for topic in topics:
        send(settings, topic, ten(topic))
    reader = CommittedReader(settings, TopicFilter(rf"{name}\..*", exclude=r".*\.test"))
    assert reader.topics() == [f"{name}.bikes", f"{name}.cars"]
    expected = sorted([(topic, b"v%d" % number) for topic in topics[:2] for number in range(10)])
    with reader.member(name, instance="one") as first:
        got = [next(first.records(idle_seconds=30)) for _ in range(20)]
        first.commit()
        alone = first.assigned()
        assert len(alone) == 8
        with reader.member(name, instance="two") as second:
            list(second.records(idle_seconds=1))
            while not second.assigned() or sorted(first.assigned() + second.assigned()) != alone:
                list(first.records(idle_seconds=0.5))
                list(second.records(idle_seconds=0.5))
            shared = first.assigned()
            assert set(shared) < set(alone)
            assert sorted(shared + second.assigned()) == alone
    assert sorted((record.topic, record.value) for record in got) == expected


def test_a_member_that_leaves_while_partitions_move_comes_to_an_end(settings, name):
    ensure_topics(settings, [TopicSpec(name, partitions=8)])
    reader = CommittedReader(settings, [name])
    for idle_seconds in (0.01, 2.0):
        with reader.member(name) as staying:
            list(staying.records(idle_seconds=4))
            with reader.member(name) as leaving:
                list(leaving.records(idle_seconds=idle_seconds))
                list(staying.records(idle_seconds=0.01))
                begun = time.monotonic()
            assert time.monotonic() - begun < LEAVE_SECONDS + SLACK_SECONDS


def test_every_codec_is_in_the_log_segments(kafka, name):
    for codec, number in CODECS.items():
        settings = ClientSettings.from_extra({**kafka.client_settings(), "compression.type": codec})
        topic = f"{name}.{codec}"
        ensure_topics(settings, [TopicSpec(topic)])
        send(settings, topic, [OutboxRow(topic, b"k%d" % each, b"a value that repeats" * 20) for each in range(50)])
        (segment,) = Path(kafka.folder).glob(f"node-*/data/{topic}-0/00000000000000000000.log")
        assert segment.read_bytes()[ATTRIBUTES_AT + 1] & 0b111 == number, codec
        assert len(list(CommittedReader(settings, [topic]).records())) == 50


@pytest.mark.parametrize(("kind", "is_ours"), [("CreateTime", True), ("LogAppendTime", False)])
def test_a_record_has_its_own_time_or_the_brokers_as_the_topic_says(settings, name, kind, is_ours):
    ensure_topics(settings, [TopicSpec(name, config={"message.timestamp.type": kind})])
    send(settings, name, ten(name)[:1])
    (record,) = CommittedReader(settings, [name]).records()
    assert (record.timestamp_ms == NOON) is is_ours


@pytest.mark.parametrize("profile", ["latency", "throughput"])
def test_profiles_send_and_read_the_same(kafka, name, profile):
    settings = ClientSettings.from_extra({**kafka.client_settings(), "contexture.profile": profile})
    ensure_topics(settings, [TopicSpec(name)])
    send(settings, name, ten(name))
    assert values(CommittedReader(settings, [name]).records()) == [b"v%d" % number for number in range(10)]


def test_a_programs_own_encoder_partitioner_and_delivery_callback(settings, name):
    ensure_topics(settings, [TopicSpec(name, partitions=3)])
    delivered = []
    encode = one_after_the_other(
        encoded_values(lambda value: value[::-1]),
        partitioned(settings, lambda key, partitions: int(key[1:]) % partitions),
    )
    publisher = Publisher(
        settings,
        SenderNames(name),
        shards=1,
        encode=encode,
        delivered=lambda error, message: delivered.append((error, message.topic(), message.partition())),
    )
    rows = [OutboxRow(name, b"k%d" % number, b"v%d" % number) for number in range(6)]
    publisher.publish(MemoryShard([*rows, OutboxRow(name, b"k6", b"v6", partition=1)]))
    found = {record.key: (record.value, record.partition) for record in CommittedReader(settings, [name]).records()}
    expected = {b"k%d" % number: (b"%dv" % number, number % 3) for number in range(6)}
    assert found == {**expected, b"k6": (b"6v", 1)}
    assert sorted(partition for _, topic, partition in delivered if topic == name) == [0, 0, 1, 1, 1, 2, 2]
    assert all(error is None for error, _, _ in delivered)
