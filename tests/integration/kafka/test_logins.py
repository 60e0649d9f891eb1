"""Every way to log in, on a real broker with access control; and refusals: at once, clear, without a secret."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping

import pytest

from builders.at_once import AT_ONCE_SECONDS, at_once
from builders.java_stores import in_jks, trust_in_pkcs12
from builders.kafka_rights import allow, allow_everything, make_topics
from contexture.errors import ConfigurationError
from contexture.kafka import ClientSettings, ConnectionReport, TopicSpec, ensure_topics, read_committed, test_connection
from contexture.kafka.topic_identities import HIDDEN, topic_ids
from contexture.sending import Publisher, SenderNames
from contexture.sending.testing import MemoryShard, OutboxRow
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.listeners import Security
from fakes.token_service import TokenService, token_service

pytestmark = pytest.mark.integration

ANNA, BERT = 'open "sesame" \\ 1', "bert-hush"
SECRET = "client-hush"
STORE = "store-hush"
JAVA = "org.apache.kafka.common.security"
TRIAL_SECONDS = 60.0


@pytest.fixture(scope="module")
def tokens() -> Iterator[TokenService]:
    with token_service({"robot": SECRET}) as service:
        yield service


@pytest.fixture(scope="module")
def secured(tokens: TokenService) -> Iterator[EmbeddedKafka]:
    """Anna and the robot may do everything; Bert what a publication named bert needs."""
    security = Security(
        "SASL_SSL",
        users={"anna": ANNA, "bert": BERT},
        mechanisms=("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"),
        access_control=True,
        token_keys_url=tokens.keys_url,
    )
    with EmbeddedKafka(security=security) as cluster:
        allow_everything(cluster, "User:anna")
        allow_everything(cluster, "User:robot")
        make_topics(cluster, "bert-1", "anna-1", "seen-1")
        allow(cluster, "User:bert", "TOPIC", "seen-1", "DESCRIBE")
        allow(cluster, "User:bert", "TOPIC", "bert-*", "ALL")
        allow(cluster, "User:bert", "TOPIC", "contexture.ledger.*", "ALL")
        allow(cluster, "User:bert", "TRANSACTIONAL_ID", "tx.*", "WRITE", "DESCRIBE")
        allow(cluster, "User:bert", "GROUP", "contexture", "READ")
        yield cluster


def as_user(secured: EmbeddedKafka, **options: object) -> dict[str, object]:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return {**secured.client_settings("anna"), **named}


def tried(extra: Mapping[str, object], seconds: float = TRIAL_SECONDS) -> ConnectionReport:
    return test_connection(ClientSettings.from_extra(extra), timeout_seconds=seconds)


def failures(report: ConnectionReport) -> list[tuple[str, str]]:
    return [(check.name, check.detail) for check in report.checks if check.passed is False]


def send(
    secured: EmbeddedKafka, topic: str, extra: Mapping[str, object] = {}, prefix: str = "tx", rows: int = 1
) -> None:
    settings = ClientSettings.from_extra({**secured.client_settings("bert"), **extra})
    publisher = Publisher(settings, SenderNames("bert", prefix), shards=1)
    now = time.time_ns()
    publisher.publish(MemoryShard([OutboxRow(topic, b"k", b"v")] * rows, outbox_id=f"outbox-{now}", sequence=now))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_and_a_password_open_the_cluster(secured, mechanism):
    report = tried(as_user(secured, sasl_mechanism=mechanism))
    assert failures(report) == []
    assert [check.name for check in report.checks if check.passed][1:] == [
        "authentication",
        "create topics",
        "transactions",
        "message size",
        "clock",
        "clean up",
    ]
    assert f"as anna by {mechanism} over SASL_SSL" in report.checks[1].detail


@pytest.mark.parametrize("kind", ["p12", "jks"])
def test_a_java_clients_configuration_opens_the_cluster_as_it_is(secured, tmp_path, kind):
    store = trust_in_pkcs12(secured.certificates / "ca.pem", tmp_path / "trust.p12", STORE)
    if kind == "jks":
        store = in_jks(store, tmp_path / "trust.jks", STORE)
    password = ANNA.replace("\\", "\\\\").replace('"', '\\"')
    java = {
        "bootstrap.servers": [secured.bootstrap_servers],
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": STORE,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{JAVA}.scram.ScramLoginModule required\n username="anna"\n password="{password}";',
        "max.request.size": "1048576",
        "buffer.memory": "33554432",
        "delivery.timeout.ms": "120000",
    }
    assert failures(tried(java)) == []


def test_a_token_opens_the_cluster(secured, tokens):
    extra = as_user(secured, sasl_mechanism="OAUTHBEARER")
    extra |= {
        "sasl.oauthbearer.token.endpoint.url": tokens.token_url,
        "sasl.oauthbearer.client.id": "robot",
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.scope": "kafka",
    }
    report = tried(extra)
    assert failures(report) == []
    assert tokens.asked > 0
    jaas = f'{JAVA}.oauthbearer.OAuthBearerLoginModule required clientId="robot" clientSecret="{SECRET}" scope="kafka";'
    plain = {name: value for name, value in extra.items() if not name.startswith("sasl.oauthbearer.client")}
    del plain["sasl.oauthbearer.scope"], plain["sasl.username"], plain["sasl.password"]
    assert failures(tried({**plain, "sasl.jaas.config": jaas})) == []


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_reported_immediately(secured, mechanism):
    with at_once(), pytest.raises(ConfigurationError) as caught:
        send(secured, "bert-1", {"sasl.mechanism": mechanism, "sasl.password": "wrong-hush"})
    assert "_AUTHENTICATION" in caught.value.message
    assert "check user, password and sasl.mechanism" in caught.value.next_step
    assert "hush" not in str(caught.value)


def test_a_wrong_client_secret_is_reported_immediately(secured, tokens):
    extra = as_user(secured, sasl_mechanism="OAUTHBEARER")
    extra |= {
        "sasl.oauthbearer.token.endpoint.url": tokens.token_url,
        "sasl.oauthbearer.client.id": "robot",
        "sasl.oauthbearer.client.secret": "wrong-hush",
    }
    with at_once():
        report = tried(extra, seconds=4 * AT_ONCE_SECONDS)
    [(name, detail)] = failures(report)
    assert name == "authentication"
    assert "_AUTHENTICATION" in detail
    assert "hush" not in str(report)


def test_a_mechanism_that_brokers_do_not_offer_is_reported_with_those_they_offer():
    with EmbeddedKafka(security=Security("SASL_PLAINTEXT", users={"anna": "x1y2"}, mechanisms=("PLAIN",))) as cluster:
        assert failures(tried(cluster.client_settings())) == []
        [(_, detail)] = failures(tried({**cluster.client_settings(), "sasl.mechanism": "SCRAM-SHA-256"}))
        assert "broker's supported mechanisms: PLAIN" in detail


def test_who_may_do_what_a_publication_needs_can_send(secured):
    send(secured, "bert-1")
    settings = ClientSettings.from_extra(secured.client_settings("bert"))
    assert [record.value for record in read_committed(settings, ["bert-1"])] == [b"v"]


@pytest.mark.parametrize(
    ("topic", "prefix", "code", "advice"),
    [
        ("anna-1", "tx", "TOPIC_AUTHORIZATION_FAILED", "allow this user WRITE and DESCRIBE on the topic"),
        (
            "bert-1",
            "other",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            "allow this user WRITE and DESCRIBE on transactional ids with the prefix publish.transactional_id_prefix",
        ),
    ],
)
def test_a_denied_topic_or_transactional_id_is_reported_immediately(secured, topic, prefix, code, advice):
    with at_once(), pytest.raises(ConfigurationError) as caught:
        send(secured, topic, prefix=prefix)
    assert code in caught.value.message
    assert advice in caught.value.next_step


@pytest.mark.parametrize("topic", ["anna-1", "seen-1"])
@pytest.mark.parametrize("rows", [1, 40_000])
def test_a_denied_topic_is_named_however_much_was_given_to_it(secured, topic, rows):
    with pytest.raises(ConfigurationError, match=rf"\(topic {topic}\) failed: TOPIC_AUTHORIZATION_FAILED") as caught:
        send(secured, topic, rows=rows)
    assert "allow this user WRITE and DESCRIBE on the topic" in caught.value.next_step


def test_denied_operations_on_topics_are_reported_by_their_names(secured):
    bert = ClientSettings.from_extra(secured.client_settings("bert"))
    with pytest.raises(
        ConfigurationError, match=r"\(topic anna-2\).*CREATE on the topic, or make the topic beforehand"
    ):
        ensure_topics(bert, [TopicSpec("anna-2")])
    with pytest.raises(ConfigurationError, match=r"\(topic seen-1\).*DESCRIBE_CONFIGS on the topic"):
        ensure_topics(bert, [TopicSpec("seen-1", config={"retention.ms": "1000"})])
    send(secured, "bert-1")
    anna = ClientSettings.from_extra(secured.client_settings("anna"))
    Publisher(anna, SenderNames("bert"), shards=1).publish(
        MemoryShard([OutboxRow("seen-1", b"k", b"v")], outbox_id="seen", sequence=time.time_ns())
    )
    with pytest.raises(ConfigurationError, match=r"\(topic seen-1\).*READ and DESCRIBE on the topic"):
        list(read_committed(bert, ["seen-1"]))


def test_a_denied_group_is_reported_immediately(secured):
    settings = ClientSettings.from_extra({**secured.client_settings("bert"), "group.id": "theirs"})
    with at_once(), pytest.raises(ConfigurationError, match=r"READ on the group named by group\.id"):
        list(read_committed(settings, ["bert-1"]))


def test_who_may_not_make_topics_is_reported_and_can_name_one(secured):
    bert = ClientSettings.from_extra(secured.client_settings("bert"))
    report = test_connection(bert, timeout_seconds=TRIAL_SECONDS)
    checks = {check.name: check for check in report.checks}
    assert (report.passed, checks["create topics"].passed) == (False, False)
    assert "TOPIC_AUTHORIZATION_FAILED" in checks["create topics"].detail
    assert "--topic NAME" in checks["create topics"].remedy
    assert checks["transactions"].passed is None
    assert "may use transactional ids" in checks["transactions"].detail

    named = {check.name: check for check in test_connection(bert, timeout_seconds=TRIAL_SECONDS, topic="bert-1").checks}
    assert [named[name].passed for name in ("transactions", "message size")] == [True, True]
    assert "clean up" not in named


def test_no_secret_shows_in_logs_or_output_however_much_the_client_logs(secured, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    extra = {**secured.client_settings("bert"), "debug": "all"}
    test_connection(ClientSettings.from_extra(extra), timeout_seconds=TRIAL_SECONDS, topic="bert-1")
    with pytest.raises(ConfigurationError) as caught:
        send(secured, "bert-1", {"sasl.password": "wrong-hush", "debug": "all"})
    printed = capfd.readouterr()
    for text in (caplog.text, printed.out, printed.err, repr(caught.value), str(caught.value.as_dict())):
        assert "hush" not in text


def test_a_record_larger_than_the_topic_takes_is_reported_with_both_limits(secured):
    make_topics(secured, "narrow", max_message_bytes="5000")
    report = test_connection(ClientSettings.from_extra(as_user(secured)), timeout_seconds=TRIAL_SECONDS, topic="narrow")
    [(name, detail)] = failures(report)
    assert name == "message size"
    assert "message.max.bytes of the connection is 1000000, max.message.bytes of the topic 5000" in detail


def test_a_topic_that_a_user_may_not_see_is_reported_from_one_that_is_missing(secured):
    settings = ClientSettings.from_extra(secured.client_settings("bert"))
    found = topic_ids(settings, ["anna-1", "bert-1", "bert-missing"])
    assert sorted(found) == ["anna-1", "bert-1"]
    assert found["anna-1"] == HIDDEN != found["bert-1"]
