"""Users and permissions: refused at once, with the reason, and without a secret in the message."""

from __future__ import annotations

import time

import pytest

from contexture.kafka import ClientSettings, KafkaConfigurationError, Publisher, SenderNames, test_connection
from contexture.kafka.testing import MemoryShard, OutboxRow
from contexture.sandbox.kafka import EmbeddedKafka
from contexture.sandbox.listeners import Security

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def secured():
    with EmbeddedKafka(security=Security("SASL_SSL", users={"anna": "open-sesame"})) as cluster:
        yield cluster


def shard():
    return MemoryShard([OutboxRow("t", b"k", b"v")])


def test_a_known_user_may_do_everything(secured):
    assert test_connection(ClientSettings.from_extra(secured.client_settings("anna"))).passed


def test_a_wrong_password_is_told_at_once(secured):
    wrong = {**secured.client_settings("anna"), "sasl.password": "hush-hush"}
    started = time.monotonic()
    with pytest.raises(KafkaConfigurationError, match="check user, password") as caught:
        Publisher(ClientSettings.from_extra(wrong), SenderNames("p"), shards=1).publish(shard())
    assert time.monotonic() - started < 20
    assert "hush-hush" not in str(caught.value)


def test_an_unknown_authority_is_told_at_once(secured, tmp_path):
    unknown = {**secured.client_settings("anna")}
    unknown.pop("ssl.ca.location")
    started = time.monotonic()
    with pytest.raises(KafkaConfigurationError, match=r"ssl\.ca\.location"):
        Publisher(ClientSettings.from_extra(unknown), SenderNames("p"), shards=1).publish(shard())
    assert time.monotonic() - started < 20


def test_the_connection_test_says_which_step_failed(secured):
    wrong = {**secured.client_settings("anna"), "sasl.password": "hush-hush"}
    report = test_connection(ClientSettings.from_extra(wrong))
    assert [check.passed for check in report.checks] == [False, None, None]
    assert "check user, password" in report.checks[0].detail
