"""What a Kafka connection may say, and what the clients get."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from contexture.kafka import ClientSettings, KafkaConfigurationError

MINIMAL = {"bootstrap.servers": "b:9092,a:9092"}
SECURED = {
    **MINIMAL,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "anna",
    "sasl.password": "hush-1",
    "ssl.key.pem": "hush-2",
    "ssl.keystore.password": "hush-3",
    "sasl.oauthbearer.client.secret": "hush-4",
}


def test_the_producer_is_idempotent_partitions_like_java_and_compresses():
    options = ClientSettings.from_extra(MINIMAL).producer("tx.p.0")
    assert options["acks"] == "all"
    assert options["enable.idempotence"] is True
    assert options["partitioner"] == "murmur2_random"
    assert options["compression.type"] == "lz4"
    assert options["transaction.timeout.ms"] == 120000
    assert options["delivery.report.only.error"] is True
    assert options["allow.auto.create.topics"] is False
    assert options["transactional.id"] == "tx.p.0"
    assert "message.timeout.ms" not in options


def test_a_producer_without_id_is_not_transactional():
    assert "transactional.id" not in ClientSettings.from_extra(MINIMAL).producer()


def test_the_connections_own_choices_win_over_defaults():
    settings = ClientSettings.from_extra({**MINIMAL, "compression.codec": "zstd", "transaction.timeout.ms": "60000"})
    assert settings.producer()["compression.type"] == "zstd"
    assert settings.transaction_timeout_seconds == 60.0


def test_each_kind_of_client_gets_only_its_own_options():
    settings = ClientSettings.from_extra({**MINIMAL, "linger.ms": 5, "group.id": "g", "client.id": "me"})
    assert settings.admin() == {
        "bootstrap.servers": "b:9092,a:9092",
        "client.id": "me",
        "allow.auto.create.topics": False,
    }
    assert "linger.ms" not in settings.consumer()
    assert "group.id" not in settings.producer()
    assert settings.consumer()["group.id"] == "g"
    assert settings.consumer()["isolation.level"] == "read_committed"
    assert settings.consumer()["enable.auto.commit"] is False


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("ssl.truststore.location", "ssl.ca.location"),
        ("sasl.jaas.config", "sasl.username and sasl.password"),
        ("max.request.size", "use message.max.bytes"),
        ("buffer.memory", "queue.buffering.max.kbytes"),
        ("key.serializer", "keys are bytes"),
        ("broker_list", "bootstrap.servers"),
        ("transactional.id", "each shard gets its own"),
        ("error_cb", "callbacks are set by Contexture"),
    ],
)
def test_names_that_mean_nothing_here_are_refused_with_what_to_use(name, advice):
    with pytest.raises(KafkaConfigurationError, match=advice) as caught:
        ClientSettings.from_extra({**MINIMAL, name: "hush"})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"), [("acks", "1"), ("enable.idempotence", False), ("partitioner", "random"), ("acks", 0)]
)
def test_nothing_may_switch_exactly_once_off(name, value):
    with pytest.raises(KafkaConfigurationError, match=f"{name}: remove it"):
        ClientSettings.from_extra({**MINIMAL, name: value})


@pytest.mark.parametrize("value", ["all", -1, "-1"])
def test_saying_what_is_always_on_is_no_mistake(value):
    assert ClientSettings.from_extra({**MINIMAL, "request.required.acks": value}).producer()["acks"] == "all"


def test_all_problems_are_named_at_once():
    with pytest.raises(KafkaConfigurationError) as caught:
        ClientSettings.from_extra({"buffer.memory": 1, "acks": "0", "ssl.ca.location": ["x"]})
    message = str(caught.value)
    for name in ("buffer.memory", "acks", "ssl.ca.location", "bootstrap.servers: give the brokers"):
        assert name in message


def test_a_delivery_time_beyond_the_transactions_is_refused():
    with pytest.raises(KafkaConfigurationError, match=r"message\.timeout\.ms.*120000"):
        ClientSettings.from_extra({**MINIMAL, "delivery.timeout.ms": 300000})


def test_no_secret_shows():
    settings = ClientSettings.from_extra(SECURED)
    for text in (repr(settings), str(settings), f"{settings}", settings.identity()):
        assert "hush" not in text
    assert "anna" in repr(settings)
    assert settings.producer()["sasl.password"] == "hush-1"


def test_identity_says_which_cluster_as_whom():
    assert ClientSettings.from_extra(SECURED).identity() == "SASL_SSL://anna@a:9092,b:9092"
    assert ClientSettings.from_extra(MINIMAL).identity() == "PLAINTEXT://a:9092,b:9092"


def test_settings_travel_to_other_processes():
    settings = ClientSettings.from_extra(SECURED)
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_importing_the_package_needs_no_kafka_client():
    code = (
        "import sys; from contexture.kafka import partition_for, ClientSettings; "
        "ClientSettings.from_extra({'bootstrap.servers': 'x:1'}); "
        "print(sorted({'confluent_kafka', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
