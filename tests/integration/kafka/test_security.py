"""Users and permissions: refused at once, with the reason, and without a secret in the message."""

from __future__ import annotations

import pytest

from builders.at_once import at_once
from contexture.kafka import ClientSettings, KafkaConfigurationError, read_committed, test_connection
from contexture.kafka.topic_identities import topic_ids
from contexture.sending import Ledger, Publisher, SenderNames
from contexture.sending.testing import MemoryShard, OutboxRow
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.listeners import Security

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def secured():
    security = Security("SASL_SSL", users={"anna": "open-sesame"})
    with EmbeddedKafka(security=security, broker_config={"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


def shard():
    return MemoryShard([OutboxRow("t", b"k", b"v")])


def test_a_known_user_may_do_everything(secured):
    assert test_connection(ClientSettings.from_extra(secured.client_settings("anna"))).passed


def test_a_wrong_password_is_reported_immediately(secured):
    wrong = {**secured.client_settings("anna"), "sasl.password": "hush-hush"}
    with at_once(), pytest.raises(KafkaConfigurationError, match="check user, password") as caught:
        Publisher(ClientSettings.from_extra(wrong), SenderNames("p"), shards=1).publish(shard())
    assert "hush-hush" not in str(caught.value)


def test_an_unknown_authority_is_reported_immediately(secured):
    unknown = {**secured.client_settings("anna")}
    unknown.pop("ssl.ca.location")
    with at_once(), pytest.raises(KafkaConfigurationError, match=r"ssl\.ca\.location"):
        Publisher(ClientSettings.from_extra(unknown), SenderNames("p"), shards=1).publish(shard())


@pytest.mark.parametrize(
    ("where", "protocol", "reason"),
    [
        ("open", "SSL", "uses PLAINTEXT, and security.protocol of the connection is SSL"),
        ("open", "SASL_SSL", "uses PLAINTEXT, and security.protocol of the connection is SASL_SSL"),
        ("open", "SASL_PLAINTEXT", "uses PLAINTEXT, and security.protocol of the connection is SASL_PLAINTEXT"),
        ("secured", "PLAINTEXT", "uses SASL_SSL, and security.protocol of the connection is PLAINTEXT"),
        ("secured", "SASL_PLAINTEXT", "uses SASL_SSL, and security.protocol of the connection is SASL_PLAINTEXT"),
        ("secured", "SSL", "uses SASL_SSL, and security.protocol of the connection is SSL"),
    ],
)
def test_another_protocol_than_the_brokers_speak_is_reported_immediately(kafka, secured, where, protocol, reason):
    extra = dict(secured.client_settings("anna"))
    if not protocol.startswith("SASL"):
        extra = {name: value for name, value in extra.items() if not name.startswith("sasl.")}
    servers = (kafka if where == "open" else secured).bootstrap_servers
    settings = ClientSettings.from_extra({**extra, "bootstrap.servers": servers, "security.protocol": protocol})
    with at_once(), pytest.raises(KafkaConfigurationError) as caught:
        Publisher(settings, SenderNames("p"), shards=1).publish(shard())
    assert f"the broker at {servers} {reason}" in caught.value.message
    wanted = "PLAINTEXT" if where == "open" else "SASL_SSL, and sasl.mechanism to one of SCRAM-SHA-512"
    assert caught.value.next_step.startswith(f"set security.protocol to {wanted}, or name the port")


def test_no_topic_comes_into_being_by_asking_for_it(secured):
    settings = ClientSettings.from_extra(
        {**secured.client_settings("anna"), "topic.metadata.propagation.max.ms": 2_000}
    )
    with pytest.raises(KafkaConfigurationError, match="UNKNOWN_TOPIC"):
        Publisher(settings, SenderNames("asking"), shards=2).publish(shard())
    with pytest.raises(KafkaConfigurationError, match="topics do not exist"):
        list(read_committed(settings, ["t"]))
    assert topic_ids(settings, ["t"]) == {}
    assert Ledger(settings, SenderNames("asking")).partitions() == 2


def test_the_connection_test_says_which_step_failed(secured):
    wrong = {**secured.client_settings("anna"), "sasl.password": "hush-hush"}
    report = test_connection(ClientSettings.from_extra(wrong))
    assert [check.passed for check in report.checks] == [True, False, None, None, None, None]
    assert report.checks[1].name == "authentication"
    assert "invalid credentials" in report.checks[1].detail
    assert "check user, password" in report.checks[1].remedy
