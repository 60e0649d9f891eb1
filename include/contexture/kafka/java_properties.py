"""Properties as Java clients name them, translated to those of this client, or refused with a reason.

What means the same is translated; what does not stays as it is, and `contexture.kafka.settings` refuses it. No error
quotes a value.

A rule raises ValueError with what to do where a value has no equivalent; it never quotes the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from contexture.kafka import jaas

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
        "default.api.timeout.ms": "remove it: how long Contexture waits for a broker is publish.broker_wait_seconds",
        "exclude.internal.topics": "remove it: patterns never match internal topics",
        "max.poll.records": _NO_EQUIVALENT,
        "share.acknowledgement.mode": _NO_SHARES,
        "share.acquire.mode": _NO_SHARES,
        "config.providers": "remove it: write the values themselves, and keep the connection in a secrets backend",
        "bootstrap.controllers": "use bootstrap.servers: clients connect to brokers",
        "max.block.ms": "remove it: how long Contexture waits for a broker is publish.broker_wait_seconds of the "
        "publication",
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
        "zookeeper.connect": "remove it: clients connect to brokers; use bootstrap.servers",
        "zk.connect": "remove it: clients connect to brokers; use bootstrap.servers",
        "zookeeper_endpoint": "remove it: clients connect to brokers; use bootstrap.servers",
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
        "allow.auto.create.topics": "remove it: topics are created as the publication specifies, before the first "
        "record",
        "isolation.level": "remove it: Contexture sets it",
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

Given = Mapping[str, object]
Rule = Callable[[object, Given], Mapping[str, object]]

_BYTES_IN_KBYTE: Final = 1024
_ASSIGNORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RangeAssignor": "range",
        "RoundRobinAssignor": "roundrobin",
        "CooperativeStickyAssignor": "cooperative-sticky",
    }
)


def _brokers(value: object, _: Given) -> Mapping[str, object]:
    several = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    # `several` says that it is a list or a tuple, which the checker does not follow.
    return {"bootstrap.servers": ",".join(value) if several else value}  # type: ignore[arg-type]


def _queue(value: object, _: Given) -> Mapping[str, object]:
    return {"queue.buffering.max.kbytes": max(1, _number(value) // _BYTES_IN_KBYTE)}


def _socket_buffer(option: str) -> Rule:
    # Java's -1 leaves the size to the system; this client's 0 does.
    return lambda value, _: {option: max(0, _number(value))}


def _codec(value: object, _: Given) -> Mapping[str, object]:
    # In the words of a form it may be GZIP, or None.
    return {"compression.type": value.strip().lower() if isinstance(value, str) else value}


def _level(codec: str) -> Rule:
    def rule(value: object, given: Given) -> Mapping[str, object]:
        if str(given.get("compression.type", given.get("compression.codec", "lz4"))).strip().lower() != codec:
            raise ValueError(f"remove it, or set compression.type to {codec}")
        return {"compression.level": _number(value)}

    return rule


def _host_name_check(value: object, _: Given) -> Mapping[str, object]:
    # An empty name switches the check off in Java.
    return {"ssl.endpoint.identification.algorithm": value if str(value).strip() else "none"}


def _jaas(value: object, given: Given) -> Mapping[str, object]:
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", ""))
    return jaas.login_options(str(value), str(mechanism))


def _callback(value: object, _: Given) -> Mapping[str, object]:
    if not str(value).endswith("OAuthBearerLoginCallbackHandler"):
        raise ValueError("use sasl.oauthbearer.method and its token endpoint")
    return {"sasl.oauthbearer.method": "oidc"}


def _retriever(value: object, _: Given) -> Mapping[str, object]:
    match str(value).rpartition(".")[2]:
        case "ClientCredentialsJwtRetriever" | "DefaultJwtRetriever":
            return {"sasl.oauthbearer.method": "oidc"}
        case "JwtBearerJwtRetriever":
            bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
            return {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.grant.type": bearer}
    raise ValueError("use sasl.oauthbearer.method and its token endpoint: the client gets its tokens nowhere else")


def _assignors(value: object, _: Given) -> Mapping[str, object]:
    """Classes of Java clients by the names that this one has for them."""
    given = value if isinstance(value, list | tuple) else str(value).split(",")
    names = [str(each).strip().rpartition(".")[2] for each in given]
    if "StickyAssignor" in names:
        raise ValueError("use cooperative-sticky (CooperativeStickyAssignor)")
    return {"partition.assignment.strategy": ",".join(_ASSIGNORS.get(name, name) for name in names)}


def _ciphers(value: object, _: Given) -> Mapping[str, object]:
    if any(mark in str(value) for mark in ("TLS_", "_WITH_", ",")):
        raise ValueError(
            "write the names that OpenSSL has for them, with colons between them "
            "(ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256), or remove it: TLS 1.3 has its own"
        )
    return {"ssl.cipher.suites": value}


def _ticket_command(value: object, _: Given) -> Mapping[str, object]:
    if " " not in str(value).strip():
        # Java adds the arguments to a path; this client runs the text as it is.
        raise ValueError("remove it, or write the whole command with its arguments, as in the client's default")
    return {"sasl.kerberos.kinit.cmd": value}


def _number(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ValueError("give a whole number") from None


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "bootstrap.servers": _brokers,
        "buffer.memory": _queue,
        "compression.type": _codec,
        "compression.codec": _codec,
        "partition.assignment.strategy": _assignors,
        "send.buffer.bytes": _socket_buffer("socket.send.buffer.bytes"),
        "receive.buffer.bytes": _socket_buffer("socket.receive.buffer.bytes"),
        "compression.gzip.level": _level("gzip"),
        "compression.lz4.level": _level("lz4"),
        "compression.zstd.level": _level("zstd"),
        "ssl.cipher.suites": _ciphers,
        "ssl.endpoint.identification.algorithm": _host_name_check,
        "sasl.kerberos.kinit.cmd": _ticket_command,
        "sasl.oauthbearer.jwt.retriever.class": _retriever,
        "sasl.jaas.config": _jaas,
        "sasl.login.callback.handler.class": _callback,
    }
)
"""Rules by the names of properties."""

DEFAULT_PORT: Final = 9092
_HAS_PORT = re.compile(r"^(\[[^\]]*\]|[^:]*):\d+$")

# Other names for the same, of this client itself and of Java's, with the same values.
_SAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "metadata.broker.list": "bootstrap.servers",
        "sasl.mechanisms": "sasl.mechanism",
        "request.required.acks": "acks",
        "delivery.timeout.ms": "message.timeout.ms",
        "queue.buffering.max.ms": "linger.ms",
        "max.request.size": "message.max.bytes",
        "fetch.max.wait.ms": "fetch.wait.max.ms",
        "ssl.truststore.certificates": "ssl.ca.pem",
        "ssl.keystore.certificate.chain": "ssl.certificate.pem",
        "ssl.keystore.key": "ssl.key.pem",
        "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
    }
)
_VALUES_ALONE: Final = frozenset(
    {
        "bootstrap.servers",
        "compression.type",
        "partition.assignment.strategy",
        "sasl.kerberos.kinit.cmd",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
    }
)
TRANSLATED: Final = (frozenset(_SAME) | frozenset(RULES)) - _VALUES_ALONE
"""Names that are taken and become others."""


@dataclass(frozen=True, slots=True)
class Translation:
    """What was given, in this client's names.

    Attributes:
        options: by the names of this client.
        sources: for each option, the name it was given by.
        problems: what can't be translated; a sentence each, without values.
    """

    options: dict[str, object] = field(repr=False)
    sources: dict[str, str]
    problems: list[str]


def translate(extra: Given) -> Translation:
    """The options in the extra of a connection; names without a rule stay as they are, and null is as if not given."""
    given = {name: value for name, value in extra.items() if value is not None}
    done = Translation({}, {}, [])
    for name, value in given.items():
        rule = RULES.get(name)
        try:
            found = rule(value, given) if rule is not None else {_SAME.get(name, name): value}
        except ValueError as problem:
            done.problems.append(f"{name}: {problem}")
            continue
        for option, meant in found.items():
            _take(done, option, meant, name)
    if "sasl.oauthbearer.token.endpoint.url" in done.options:
        done.options.setdefault("sasl.oauthbearer.method", "oidc")
    return done


def servers(host: str, port: int | None) -> str:
    """The brokers that a connection's host (one, or several with commas) and port name, as `host:port,host:port`."""
    parts = [part.strip() for part in host.split(",") if part.strip()]
    return ",".join(part if _HAS_PORT.match(part) else f"{part}:{port or DEFAULT_PORT}" for part in parts)


def _take(done: Translation, option: str, meant: object, name: str) -> None:
    if option in done.options and str(done.options[option]) != str(meant):
        done.problems.append(f"{done.sources[option]} and {name} set {option} in two ways: remove one of them")
    done.options[option] = meant
    done.sources[option] = name
