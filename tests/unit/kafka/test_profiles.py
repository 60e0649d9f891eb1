"""Profiles of a connection: one word instead of ten properties."""

from __future__ import annotations

import pickle

import pytest

from contexture.kafka import ClientSettings, KafkaConfigurationError

MINIMAL = {"bootstrap.servers": "a:9092"}


def settings(profile=None, **given):
    extra = {**MINIMAL, **given}
    return ClientSettings.from_extra(extra if profile is None else {**extra, "contexture.profile": profile})


def test_latency_lets_each_record_leave_at_once():
    assert settings("latency").producer()["linger.ms"] == 0
    assert settings("latency").consumer()["fetch.wait.max.ms"] == 10


def test_throughput_waits_for_full_batches():
    chosen = settings("throughput")
    assert (chosen.producer()["linger.ms"], chosen.producer()["queue.buffering.max.kbytes"]) == (100, 524_288)
    assert chosen.consumer()["fetch.min.bytes"] == 1_048_576


@pytest.mark.parametrize("profile", [None, "latency", "throughput"])
def test_a_profile_changes_nothing_that_records_depend_on_and_reaches_no_client(profile):
    producer = settings(profile).producer("tx.p.0")
    assert (producer["acks"], producer["enable.idempotence"], producer["partitioner"]) == (
        "all",
        True,
        "murmur2_random",
    )
    assert producer["compression.type"] == "lz4"
    for options in (producer, settings(profile).consumer(), settings(profile).admin()):
        assert "contexture.profile" not in options


def test_the_connections_own_word_wins_over_its_profile():
    assert settings("throughput", **{"linger.ms": 7}).producer()["linger.ms"] == 7


def test_a_profile_travels_with_its_settings():
    assert pickle.loads(pickle.dumps(settings("latency"))).producer()["linger.ms"] == 0


def test_a_profile_that_there_is_none_of_is_reported():
    with pytest.raises(KafkaConfigurationError, match=r"contexture\.profile: give latency or throughput"):
        settings("fast")
