"""What a Kafka connection may say, and what the clients get."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from contexture.kafka import ClientSettings, KafkaConfigurationError

MINIMAL = {"bootstrap.servers": "b:9092,a:9092"}
TOKENS_OF_JAVA = "org.apache.kafka.common.security.oauthbearer"
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
        ("key.serializer", "keys are bytes"),
        ("ssl.protocol", "agree on TLS"),
        ("partitioner.class", "partitions as Java clients do"),
        ("max.block.ms", "broker_wait_seconds"),
        ("broker_list", "bootstrap.servers"),
        ("transactional.id", "each shard gets its own"),
        ("error_cb", "callbacks are set by Contexture"),
        ("buffer.memory", "give a whole number"),
        ("max.request.size", "give bytes as a whole number"),
        ("compression.zstd.level", "set compression.type to zstd"),
        ("sasl.jaas.config", "write it as Java has it"),
        ("sasl.login.callback.handler.class", "sasl.oauthbearer.method"),
        ("ssl.truststore.type", "JKS, PKCS12 or PEM"),
        ("transaction.timeout.ms", r"transaction\.timeout\.ms: give milliseconds as a whole number"),
        ("queue.buffering.max.kbytes", "give kilobytes as a whole number"),
        ("delivery.timeout.ms", "give milliseconds as a whole number"),
        ("sasl.oauthbearer.jwt.retriever.class", r"sasl\.oauthbearer\.method"),
        ("sasl.kerberos.kinit.cmd", "the whole command with its arguments"),
        ("config.providers", "secrets backend"),
    ],
)
def test_what_means_nothing_here_is_refused_with_what_to_do(name, advice):
    with pytest.raises(KafkaConfigurationError, match=advice) as caught:
        ClientSettings.from_extra({**MINIMAL, name: "hush"})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"max.request.size": "26214400"}, {"message.max.bytes": "26214400"}),
        ({"buffer.memory": 33554432}, {"queue.buffering.max.kbytes": 32768}),
        ({"send.buffer.bytes": -1}, {"socket.send.buffer.bytes": 0}),
        ({"receive.buffer.bytes": 65536}, {"socket.receive.buffer.bytes": 65536}),
        (
            {"compression.type": "gzip", "compression.gzip.level": "9"},
            {"compression.type": "gzip", "compression.level": 9},
        ),
        ({"compression.lz4.level": 3}, {"compression.level": 3}),
        ({"delivery.timeout.ms": 60000}, {"message.timeout.ms": 60000}),
        ({"ssl.truststore.certificates": "PEM"}, {"ssl.ca.pem": "PEM"}),
        ({"ssl.keystore.certificate.chain": "PEM"}, {"ssl.certificate.pem": "PEM"}),
        ({"ssl.keystore.key": "PEM"}, {"ssl.key.pem": "PEM"}),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        ({"bootstrap.servers": ["a:1", "b:2"]}, {"bootstrap.servers": "a:1,b:2"}),
        ({"client.id": "me", "reconnect.backoff.ms": 50}, {"client.id": "me", "reconnect.backoff.ms": 50}),
    ],
)
def test_names_of_java_clients_are_translated(given, options):
    found = ClientSettings.from_extra({**MINIMAL, **given}).options
    assert dict(found) == {**MINIMAL, **options}


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("zookeeper.connect", r"use bootstrap\.servers"),
        ("producer.type", "sends records in batches"),
        ("queue.time", r"use linger\.ms"),
        ("event.handler", r"contexture\.sending\.Publisher"),
        ("callback.handler", r"contexture\.sending\.Publisher"),
        ("partitioner.class", "murmur2"),
        ("offsets.storage", "offsets are in Kafka"),
        ("dual.commit.enabled", "offsets are in Kafka"),
    ],
)
def test_properties_of_the_clients_before_todays_are_refused_with_what_to_use(name, advice):
    with pytest.raises(KafkaConfigurationError, match=f"{name}: .*{advice}"):
        ClientSettings.from_extra({**MINIMAL, name: "hush"})


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"compression.type": "GZIP"}, {"compression.type": "gzip"}),
        ({"compression.codec": " None"}, {"compression.type": "none"}),
        (
            {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor,cooperative-sticky"},
            {"partition.assignment.strategy": "range,cooperative-sticky"},
        ),
        (
            {"partition.assignment.strategy": ["org.apache.kafka.clients.consumer.CooperativeStickyAssignor"]},
            {"partition.assignment.strategy": "cooperative-sticky"},
        ),
        ({"ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"}, {"ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"}),
        (
            {"sasl.oauthbearer.jwt.retriever.class": f"{TOKENS_OF_JAVA}.ClientCredentialsJwtRetriever"},
            {"sasl.oauthbearer.method": "oidc"},
        ),
        (
            {"sasl.oauthbearer.jwt.retriever.class": f"{TOKENS_OF_JAVA}.JwtBearerJwtRetriever"},
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            },
        ),
        (
            {"sasl.oauthbearer.assertion.template.file": "/t.json"},
            {"sasl.oauthbearer.assertion.jwt.template.file": "/t.json"},
        ),
    ],
)
def test_values_of_java_clients_are_translated(given, options):
    assert dict(ClientSettings.from_extra({**MINIMAL, **given}).options) == {**MINIMAL, **options}


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("ssl.cipher.suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "names that OpenSSL has for them, with colons"),
        ("ssl.cipher.suites", "ECDHE-RSA-AES256-GCM-SHA384,ECDHE-RSA-AES128-GCM-SHA256", "with colons"),
        ("partition.assignment.strategy", "org.apache.kafka.clients.consumer.StickyAssignor", "use cooperative-sticky"),
        ("sasl.kerberos.kinit.cmd", "/usr/bin/kinit", "the whole command with its arguments"),
    ],
)
def test_values_of_java_clients_that_mean_nothing_here_are_refused(name, value, advice):
    with pytest.raises(KafkaConfigurationError, match=f"{name}: .*{advice}"):
        ClientSettings.from_extra({**MINIMAL, name: value})


def test_two_names_for_the_same_may_not_say_different_things():
    with pytest.raises(
        KafkaConfigurationError, match=r"max\.request\.size and message\.max\.bytes set message\.max\.bytes"
    ):
        ClientSettings.from_extra({**MINIMAL, "max.request.size": 5000, "message.max.bytes": 6000})
    ClientSettings.from_extra({**MINIMAL, "max.request.size": 5000, "message.max.bytes": "5000"})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"sasl.mechanism": "PLAIN"}, "security.protocol: set it to SASL_SSL"),
        ({"security.protocol": "SASL_SSL", "sasl.username": "anna"}, "sasl.mechanism: set it to PLAIN"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "a"}, "sasl.password: give it"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.method: set it to oidc"),
        (
            {"ssl.truststore.location": "a.jks", "ssl.ca.location": "b.pem"},
            "ssl.truststore.location: give it or ssl.ca.location, not both",
        ),
    ],
)
def test_half_a_login_is_reported_before_any_broker_is_asked(given, problem):
    with pytest.raises(KafkaConfigurationError, match=problem.replace(".", r"\.")):
        ClientSettings.from_extra({**MINIMAL, **given})


def test_a_token_endpoint_means_openid_connect():
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://idm/token",
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "hush",
    }
    options = ClientSettings.from_extra({**MINIMAL, **given}).options
    assert options["sasl.oauthbearer.method"] == "oidc"
    assert options["sasl.oauthbearer.client.id"] == "me"
    assert options["sasl.oauthbearer.client.secret"] == "hush"


@pytest.mark.parametrize(
    ("fields", "servers"),
    [
        ({"host": "a"}, "a:9092"),
        ({"host": "a", "port": 9093}, "a:9093"),
        ({"host": "a, b:9094", "port": 9093}, "a:9093,b:9094"),
        ({"host": "[::1]:9094,[::2]", "port": 9093}, "[::1]:9094,[::2]:9093"),
    ],
)
def test_host_and_port_of_a_connection_name_brokers(fields, servers):
    assert ClientSettings.from_connection({}, **fields).bootstrap_servers == servers


def test_the_extra_wins_over_the_fields_of_a_connection():
    extra = {**MINIMAL, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    fields = {"host": "other", "login": "anna", "password": "hush"}
    settings = ClientSettings.from_connection(extra, **fields)
    assert settings.bootstrap_servers == MINIMAL["bootstrap.servers"]
    assert (settings.options["sasl.username"], settings.options["sasl.password"]) == ("anna", "hush")
    bert = ClientSettings.from_connection({**extra, "sasl.username": "bert", "sasl.password": "his"}, **fields)
    assert (bert.options["sasl.username"], bert.options["sasl.password"]) == ("bert", "his")


def test_the_queue_has_room_for_the_largest_record():
    settings = ClientSettings.from_extra({**MINIMAL, "message.max.bytes": 209_715_200})
    assert settings.producer()["queue.buffering.max.kbytes"] == 256_000
    assert ClientSettings.from_extra(MINIMAL).producer()["queue.buffering.max.kbytes"] == 131_072
    own = ClientSettings.from_extra({**MINIMAL, "message.max.bytes": 209_715_200, "queue.buffering.max.kbytes": 9})
    assert own.producer()["queue.buffering.max.kbytes"] == 9


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
        ClientSettings.from_extra({"key.serializer": 1, "acks": "0", "ssl.ca.location": ["x"]})
    message = str(caught.value)
    for name in ("key.serializer", "acks", "ssl.ca.location", "bootstrap.servers: give the brokers"):
        assert name in message


def test_a_delivery_time_beyond_the_transactions_is_refused():
    with pytest.raises(KafkaConfigurationError, match=r"message\.timeout\.ms.*120000"):
        ClientSettings.from_extra({**MINIMAL, "delivery.timeout.ms": 300000})


def test_no_secret_shows():
    settings = ClientSettings.from_extra(SECURED)
    for text in (repr(settings), str(settings), f"{settings}", settings.identity()):
        assert "hush" not in text
    assert "anna" in repr(settings)
    assert settings.shown()["sasl.username"] == "anna"
    assert settings.shown()["sasl.password"] == "***"
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
