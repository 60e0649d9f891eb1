"""Parts of a connection's test that need no broker."""

from __future__ import annotations

import socket

import pytest

from contexture.kafka import ClientSettings, test_connection
from contexture.kafka.connection_check import ReadBack, SentTestRecord, clock_verdict
from contexture.kafka.diagnosis import probe_addresses


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_every_server_is_tried_and_named(listening):
    found = probe_addresses(f"SASL_SSL://{listening}, 127.0.0.1:9", 2.0)
    assert [(each.address, each.problem) for each in found] == [
        (listening, ""),
        ("127.0.0.1:9", "nothing listens there"),
    ]
    assert found[1].remedy == "start the broker, or correct its port in bootstrap.servers"


@pytest.mark.slow
def test_one_server_that_is_away_fails_the_test_by_its_name(listening):
    settings = ClientSettings.from_extra({"bootstrap.servers": f"127.0.0.1:9,{listening}"})
    report = test_connection(settings, timeout_seconds=0.2)
    assert [(check.name, check.passed) for check in report.checks[:3]] == [
        ("server 127.0.0.1:9", False),
        (f"server {listening}", True),
        ("authentication", False),
    ]
    assert {check.passed for check in report.checks[3:]} == {None}
    assert (report.passed, report.reached) == (False, True)


@pytest.mark.parametrize(
    ("timestamp_ms", "passed", "detail"),
    [
        (1_000_500, True, "the broker's clock is within 1.0 s of this machine's"),
        (1_004_000, True, "the broker's clock is within 3.0 s of this machine's"),
        (1_031_000, False, "the broker's clock is 30 s ahead of this machine's"),
        (980_000, False, "the broker's clock is 20 s behind this machine's"),
    ],
)
def test_clocks_that_differ_by_more_than_ten_seconds_are_reported(timestamp_ms, passed, detail):
    verdict = clock_verdict(SentTestRecord(1000.0, ReadBack(b"", timestamp_ms, is_brokers_time=True), 1001.0))
    assert (verdict.passed, verdict.detail) == (passed, detail)


def test_a_topic_that_keeps_the_times_of_senders_shows_nothing_of_clocks():
    assert clock_verdict(SentTestRecord(1000.0, ReadBack(b"", 0, is_brokers_time=False), 1001.0)).passed is None
    assert clock_verdict(None).passed is None
