"""Every property of the client is listed; every one of Java's producer is taken, translated, or refused with advice."""

from __future__ import annotations

import pytest

from contexture.kafka import ClientSettings, KafkaConfigurationError
from contexture.kafka.java_properties import JAVA_NAMES, OWNED_NAMES, TRANSLATED
from contexture.kafka.key_stores import STORE_NAMES
from contexture.kafka.properties import ClientProperty, catalogue, client_properties

# The names in Kafka's own documentation of its producer, 4.3.
JAVA_PRODUCER = [
    "key.serializer",
    "value.serializer",
    "bootstrap.servers",
    "buffer.memory",
    "compression.type",
    "retries",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "batch.size",
    "client.dns.lookup",
    "client.id",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "connections.max.idle.ms",
    "delivery.timeout.ms",
    "linger.ms",
    "max.block.ms",
    "max.request.size",
    "partitioner.class",
    "partitioner.ignore.keys",
    "receive.buffer.bytes",
    "request.timeout.ms",
    "sasl.client.callback.handler.class",
    "sasl.jaas.config",
    "sasl.kerberos.service.name",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.mechanism",
    "sasl.oauthbearer.token.endpoint.url",
    "security.protocol",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "ssl.enabled.protocols",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.provider",
    "ssl.truststore.type",
    "acks",
    "enable.idempotence",
    "enable.metrics.push",
    "interceptor.classes",
    "max.in.flight.requests.per.connection",
    "metadata.max.age.ms",
    "metadata.max.idle.ms",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
    "security.providers",
    "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "transaction.timeout.ms",
    "transaction.two.phase.commit.enable",
    "transactional.id",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "config.providers",
    "metadata.recovery.strategy",
    "metadata.recovery.rebootstrap.trigger.ms",
    "auto.include.jmx.reporter",
]


# What its consumers and administrators have beside that.
JAVA_READERS = [
    "group.id",
    "group.instance.id",
    "max.poll.records",
    "max.poll.interval.ms",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol",
    "group.remote.assignor",
    "enable.auto.commit",
    "auto.commit.interval.ms",
    "partition.assignment.strategy",
    "auto.offset.reset",
    "fetch.min.bytes",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "max.partition.fetch.bytes",
    "client.rack",
    "check.crcs",
    "key.deserializer",
    "value.deserializer",
    "default.api.timeout.ms",
    "exclude.internal.topics",
    "isolation.level",
    "allow.auto.create.topics",
    "share.acknowledgement.mode",
    "share.acquire.mode",
    "bootstrap.controllers",
]


@pytest.mark.parametrize("name", [*JAVA_PRODUCER, *JAVA_READERS])
def test_a_property_of_java_clients_has_its_answer(name):
    assert name in catalogue() or name in TRANSLATED | STORE_NAMES or name in JAVA_NAMES or name in OWNED_NAMES


def named(settings: ClientSettings | None, name: str) -> ClientProperty:
    [found] = [each for each in client_properties(settings) if each.name == name]
    return found


def test_all_that_the_client_knows_is_listed_once():
    names = [each.name for each in client_properties()]
    assert len(names) == len(set(names)) > 150
    assert {"acks", "client.id", "ssl.ca.location", "fetch.min.bytes"} < set(names)


def test_the_origin_of_a_value_is_reported():
    extra = {"bootstrap.servers": "a:1", "max.request.size": 25_000_000, "client.id": "me"}
    settings = ClientSettings.from_extra(extra)
    largest = named(settings, "message.max.bytes")
    assert (largest.value, largest.default, largest.origin) == ("25000000", "1000000", "connection")
    assert largest.given_as == "max.request.size"
    mine = named(settings, "client.id")
    assert (mine.value, mine.default, mine.origin, mine.given_as) == ("me", "rdkafka", "connection", "")
    ours = named(settings, "linger.ms")
    assert (ours.value, ours.default, ours.origin) == ("20", "5", "contexture")
    theirs = named(settings, "reconnect.backoff.ms")
    assert (theirs.value, theirs.default, theirs.origin) == ("100", "100", "client")


@pytest.mark.parametrize(
    ("name", "default"),
    [
        # Among the properties of topics it is called "inherit" once more.
        ("compression.type", "none"),
        ("auto.commit.interval.ms", "5000"),
        (
            "sasl.kerberos.kinit.cmd",
            'kinit -R -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal} || '
            'kinit -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}',
        ),
    ],
)
def test_a_default_is_the_clients(name, default):
    assert named(None, name).default == default


def test_what_the_client_was_built_with_is_reported():
    features = named(None, "builtin.features").value.split(",")
    assert {"ssl", "sasl_scram", "zstd"} < set(features)
    assert "sasl_gssapi" not in features


@pytest.mark.parametrize(
    ("extra", "reason", "advice"),
    [
        ({"comression.type": "hush"}, "no such properties: comression.type", "write compression.type for it"),
        ({"Max.Request.Size": 5, "a.b": 6}, "no such properties: Max.Request.Size, a.b", "max.request.size for Max"),
        ({"a.b": 6}, "no such properties: a.b", "take it out of the extra"),
    ],
)
def test_a_name_that_no_client_knows_is_refused_with_the_nearest(extra, reason, advice):
    settings = ClientSettings.from_extra({"bootstrap.servers": "a:1", **extra})
    with pytest.raises(KafkaConfigurationError) as caught:
        client_properties(settings)
    assert reason in caught.value.message
    assert advice in caught.value.next_step
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(("chosen", "origin"), [("latency", "connection"), ("", "contexture")])
def test_the_profile_is_listed_too(chosen, origin):
    extra = {"bootstrap.servers": "a:1", **({"contexture.profile": chosen} if chosen else {})}
    profile = named(ClientSettings.from_extra(extra), "contexture.profile")
    assert (profile.value, profile.origin, profile.range) == (chosen, origin, "latency, throughput")


def test_an_alias_has_the_same_description():
    settings = ClientSettings.from_extra({"bootstrap.servers": "a:1", "compression.codec": "zstd"})
    assert named(settings, "compression.type").value == "zstd" == named(settings, "compression.codec").value
    assert named(settings, "metadata.broker.list").value == "a:1"


def test_secrets_are_masked_and_stores_not_read():
    extra = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "anna",
        "sasl.password": "hush-1",
        "ssl.keystore.location": "/nowhere/keys.jks",
        "ssl.keystore.password": "hush-2",
        "ssl.truststore.location": "/nowhere/trust.jks",
        "ssl.truststore.password": "hush-3",
        "ssl.key.password": "hush-4",
        "sasl.oauthbearer.client.secret": "hush-5",
    }
    settings = ClientSettings.from_extra(extra)
    assert "hush" not in str(client_properties(settings))
    assert named(settings, "sasl.password").value == "***"
    assert named(settings, "ssl.truststore.location").value == "/nowhere/trust.jks"
    assert named(settings, "ssl.keystore.location").value == "/nowhere/keys.jks"
    assert named(settings, "sasl.username").value == "anna"
