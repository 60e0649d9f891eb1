"""Names of client properties that can not be taken as they are, each with the sentence that says what to use."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_NO_EQUIVALENT = "remove it: the client has no such setting and needs none"

_TOKENS_RENEWED = "remove it: the client renews tokens by itself"
_BROKERS_CHECK = "remove it: brokers check tokens, clients only fetch them"
_NO_SHARES = "remove it: readers of Contexture are in no share group"
_OWN_FUNCTIONS = "remove it: a program gives functions to contexture.sending.Publisher (docs/how-to/extend-sending.md)"
_OFFSETS_IN_KAFKA = "remove it: offsets are in Kafka, there is no ZooKeeper any more"
_TICKETS_RENEWED = "use sasl.kerberos.min.time.before.relogin: how often the client renews its ticket"

JAVA_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ssl.protocol": "remove it: client and broker agree on TLS 1.2 or 1.3",
        "ssl.enabled.protocols": "remove it: client and broker agree on TLS 1.2 or 1.3",
        "ssl.provider": _NO_EQUIVALENT,
        "ssl.keymanager.algorithm": _NO_EQUIVALENT,
        "ssl.trustmanager.algorithm": _NO_EQUIVALENT,
        "ssl.secure.random.implementation": _NO_EQUIVALENT,
        "ssl.engine.factory.class": "remove it, and name stores in ssl.keystore.location and ssl.truststore.location",
        "security.providers": _NO_EQUIVALENT,
        "sasl.login.class": _NO_EQUIVALENT,
        "sasl.client.callback.handler.class": _NO_EQUIVALENT,
        **dict.fromkeys(
            [
                "sasl.login.connect.timeout.ms",
                "sasl.login.read.timeout.ms",
                "sasl.login.refresh.buffer.seconds",
                "sasl.login.refresh.min.period.seconds",
                "sasl.login.refresh.window.factor",
                "sasl.login.refresh.window.jitter",
                "sasl.login.retry.backoff.max.ms",
                "sasl.login.retry.backoff.ms",
            ],
            _TOKENS_RENEWED,
        ),
        **dict.fromkeys(
            [
                "sasl.oauthbearer.clock.skew.seconds",
                "sasl.oauthbearer.expected.audience",
                "sasl.oauthbearer.expected.issuer",
                "sasl.oauthbearer.jwks.endpoint.refresh.ms",
                "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
                "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
                "sasl.oauthbearer.jwks.endpoint.url",
                "sasl.oauthbearer.scope.claim.name",
            ],
            _BROKERS_CHECK,
        ),
        "sasl.oauthbearer.header.urlencode": _NO_EQUIVALENT,
        "sasl.oauthbearer.jwt.validator.class": _NO_EQUIVALENT,
        "sasl.kerberos.ticket.renew.jitter": _TICKETS_RENEWED,
        "sasl.kerberos.ticket.renew.window.factor": _TICKETS_RENEWED,
        "auto.include.jmx.reporter": _NO_EQUIVALENT,
        "default.api.timeout.ms": "remove it: how long a broker is waited for is publish.broker_wait_seconds",
        "exclude.internal.topics": "remove it: patterns never mean internal topics",
        "max.poll.records": _NO_EQUIVALENT,
        "share.acknowledgement.mode": _NO_SHARES,
        "share.acquire.mode": _NO_SHARES,
        "config.providers": "remove it: write the values themselves, and keep the connection in a secrets backend",
        "bootstrap.controllers": "use bootstrap.servers: clients speak to brokers",
        "max.block.ms": "remove it: how long a broker is waited for is publish.broker_wait_seconds of the publication",
        "partitioner.class": "remove it: Contexture always partitions as Java clients do (murmur2)",
        "partitioner.ignore.keys": _NO_EQUIVALENT,
        "partitioner.adaptive.partitioning.enable": _NO_EQUIVALENT,
        "partitioner.availability.timeout.ms": _NO_EQUIVALENT,
        "key.serializer": "remove it: keys are bytes",
        "value.serializer": "remove it: values are bytes",
        "key.deserializer": "remove it: keys are bytes",
        "value.deserializer": "remove it: values are bytes",
        "interceptor.classes": _NO_EQUIVALENT,
        "metric.reporters": _NO_EQUIVALENT,
        "metrics.num.samples": _NO_EQUIVALENT,
        "metrics.recording.level": _NO_EQUIVALENT,
        "metrics.sample.window.ms": _NO_EQUIVALENT,
        "metadata.max.idle.ms": _NO_EQUIVALENT,
        "socket.connection.setup.timeout.max.ms": "use socket.connection.setup.timeout.ms",
        "transaction.two.phase.commit.enable": _NO_EQUIVALENT,
        "zookeeper.connect": "remove it: clients speak to brokers; use bootstrap.servers",
        "zk.connect": "remove it: clients speak to brokers; use bootstrap.servers",
        "zookeeper_endpoint": "remove it: clients speak to brokers; use bootstrap.servers",
        "broker_list": "use bootstrap.servers",
        "broker.list": "use bootstrap.servers",
        # Names of the clients before those of today.
        "producer.type": "remove it: a thread of the client sends records in batches, and delivery is awaited",
        "queue.time": "use linger.ms: how long records wait until a batch is full",
        "event.handler": _OWN_FUNCTIONS,
        "callback.handler": _OWN_FUNCTIONS,
        "serializer.class": "remove it: values are bytes",
        "offsets.storage": _OFFSETS_IN_KAFKA,
        "dual.commit.enabled": _OFFSETS_IN_KAFKA,
    }
)

OWNED_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "transactional.id": "remove it: each shard gets its own, from publish.transactional_id_prefix",
        "allow.auto.create.topics": "remove it: topics are made as the publication says, before the first record",
        "isolation.level": "remove it: what must be read committed is read committed",
        "enable.auto.commit": "remove it: readers of Contexture commit no offsets",
        "enable.auto.offset.store": "remove it: readers of Contexture commit no offsets",
        "delivery.report.only.error": "remove it: it is always on",
        "auto.offset.reset": "remove it: readers of Contexture name their offsets",
    }
)

CALLBACKS: Final = frozenset(
    {"error_cb", "throttle_cb", "stats_cb", "on_delivery", "dr_cb", "on_commit", "oauth_cb", "logger", "partitioner_cb"}
)

PRODUCER_ONLY: Final = frozenset(
    {
        "acks",
        "request.required.acks",
        "batch.size",
        "batch.num.messages",
        "compression.codec",
        "compression.level",
        "compression.type",
        "delivery.timeout.ms",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "linger.ms",
        "message.send.max.retries",
        "message.timeout.ms",
        "partitioner",
        "queue.buffering.backpressure.threshold",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queue.buffering.max.ms",
        "queuing.strategy",
        "request.timeout.ms",
        "retries",
        "sticky.partitioning.linger.ms",
        "transaction.timeout.ms",
    }
)

CONSUMER_ONLY: Final = frozenset(
    {
        "check.crcs",
        "coordinator.query.interval.ms",
        "enable.partition.eof",
        "fetch.error.backoff.ms",
        "fetch.max.wait.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "session.timeout.ms",
    }
)
