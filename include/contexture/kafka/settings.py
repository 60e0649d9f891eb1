"""What a Kafka connection says, checked, and completed to the configuration of each kind of client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.refused_properties import CALLBACKS, CONSUMER_ONLY, JAVA_NAMES, OWNED_NAMES, PRODUCER_ONLY

Option = str | int | float | bool

# Never to be switched off: without one of them "once, in order" is no longer true.
_ALWAYS: Final[Mapping[str, Option]] = MappingProxyType(
    {"acks": "all", "enable.idempotence": True, "partitioner": "murmur2_random"}
)
_PRODUCER_DEFAULTS: Final[Mapping[str, Option]] = MappingProxyType(
    {
        "compression.type": "lz4",
        # An open transaction of a dead sender holds back read-committed consumers for that long.
        "transaction.timeout.ms": 120_000,
        "linger.ms": 20,
        "batch.size": 1_000_000,
        "batch.num.messages": 10_000,
        "queue.buffering.max.messages": 200_000,
        "queue.buffering.max.kbytes": 131_072,
    }
)
# Producers and admin clients make a topic by asking for it where brokers allow that, with the brokers' defaults.
_NEVER_BY_ASKING: Final[Mapping[str, Option]] = MappingProxyType({"allow.auto.create.topics": False})
_CONSUMER_DEFAULTS: Final[Mapping[str, Option]] = MappingProxyType(
    {
        "group.id": "contexture",
        # Bounds what a reader holds in memory, whatever the topics hold.
        "queued.max.messages.kbytes": 32_768,
        "receive.message.max.bytes": 1_000_000_000,
        "fetch.message.max.bytes": 4_194_304,
        # An end is noticed by an empty answer; brokers hold that back for 500 ms by default.
        "fetch.wait.max.ms": 20,
    }
)
_SYNONYMS: Final = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "compression.codec": "compression.type",
    "request.required.acks": "acks",
    "delivery.timeout.ms": "message.timeout.ms",
    "queue.buffering.max.ms": "linger.ms",
}
_SECRET = re.compile(
    r"password|secret|jaas|token(?!\.endpoint)|key\.pem|oauthbearer\.config|credential|assertion", re.I
)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The options of one Kafka connection; neither `repr` nor `str` shows a secret.

    Make one with `from_extra`. `producer`, `consumer` and `admin` give the complete dictionaries for the clients of
    confluent-kafka; each call gives a new one.
    """

    options: Mapping[str, Option] = field(repr=False)

    @classmethod
    def from_extra(cls, extra: Mapping[str, object]) -> ClientSettings:
        """The settings in the extra of an Airflow connection of type `kafka` (names of librdkafka).

        Raises:
            KafkaConfigurationError: a name of the Java client, a name Contexture sets itself, an option that would
                break exactly-once, no `bootstrap.servers`. All problems are named at once.
        """
        options = {_SYNONYMS.get(name, name): value for name, value in extra.items() if value is not None}
        problems = _problems(options)
        if problems:
            raise KafkaConfigurationError(
                "the Kafka connection can not be used as it is: " + "; ".join(problems),
                next_step="change the extra of the Airflow connection (names of librdkafka's CONFIGURATION.md)",
                properties=", ".join(sorted(options)),
            )
        return cls(MappingProxyType({name: _option(value) for name, value in options.items()}))

    @property
    def bootstrap_servers(self) -> str:
        """The brokers to ask first, as given: `host:port,host:port`."""
        return str(self.options["bootstrap.servers"])

    @property
    def transaction_timeout_seconds(self) -> float:
        """After how long the broker gives up a transaction that stays open."""
        return float(self._with(_PRODUCER_DEFAULTS)["transaction.timeout.ms"]) / 1000

    def producer(self, transactional_id: str | None = None) -> dict[str, Option]:
        """The configuration of an idempotent producer; with an id, of a transactional one."""
        options = {**self._with(_PRODUCER_DEFAULTS, without=CONSUMER_ONLY), **_ALWAYS}
        options |= {"delivery.report.only.error": True, **_NEVER_BY_ASKING}
        if transactional_id is not None:
            options["transactional.id"] = transactional_id
        return options

    def consumer(self, *, isolation: str = "read_committed") -> dict[str, Option]:
        """The configuration of a reader that names its own partitions and offsets, and commits nothing."""
        return {
            **self._with(_CONSUMER_DEFAULTS, without=PRODUCER_ONLY),
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }

    def admin(self) -> dict[str, Option]:
        """The configuration of an admin client."""
        return {**self._with({}, without=PRODUCER_ONLY | CONSUMER_ONLY), **_NEVER_BY_ASKING}

    def identity(self) -> str:
        """Which cluster as whom, without secrets: `SASL_SSL://user@a:9092,b:9092` (brokers sorted)."""
        servers = ",".join(sorted(part.strip() for part in self.bootstrap_servers.split(",") if part.strip()))
        user = str(self.options.get("sasl.username", self.options.get("sasl.kerberos.principal", "")))
        protocol = str(self.options.get("security.protocol", "plaintext")).upper()
        return f"{protocol}://{user + '@' if user else ''}{servers}"

    def __repr__(self) -> str:
        shown = {name: "***" if _SECRET.search(name) else value for name, value in sorted(self.options.items())}
        return f"ClientSettings({shown})"

    def __reduce__(self) -> tuple[object, ...]:
        return ClientSettings.from_extra, (dict(self.options),)

    def _with(self, defaults: Mapping[str, Option], without: frozenset[str] = frozenset()) -> dict[str, Option]:
        return {**defaults, **{name: value for name, value in self.options.items() if name not in without}}


def _problems(options: Mapping[str, object]) -> list[str]:
    problems = [f"{name}: {JAVA_NAMES[name]}" for name in options if name in JAVA_NAMES]
    problems += [f"{name}: {OWNED_NAMES[name]}" for name in options if name in OWNED_NAMES]
    problems += [f"{name}: remove it (callbacks are set by Contexture)" for name in options if name in CALLBACKS]
    problems += [
        f"{name}: remove it (Contexture needs {name}={str(needed).lower()})"
        for name, needed in _ALWAYS.items()
        if name in options and _normal(options[name]) != _normal(needed)
    ]
    problems += [
        f"{name}: give one text, number or true/false, not {type(value).__name__}"
        for name, value in options.items()
        if not isinstance(value, str | int | float | bool)
    ]
    if not str(options.get("bootstrap.servers", "")).strip():
        problems.append("bootstrap.servers: give the brokers as host:port,host:port")
    return problems + _timeout_problems(options)


def _timeout_problems(options: Mapping[str, object]) -> list[str]:
    given = options.get("message.timeout.ms")
    limit = options.get("transaction.timeout.ms", _PRODUCER_DEFAULTS["transaction.timeout.ms"])
    try:
        if given is None or 0 < int(str(given)) <= int(str(limit)):
            return []
    except ValueError:
        return ["message.timeout.ms, transaction.timeout.ms: give milliseconds as whole numbers"]
    return [f"message.timeout.ms: remove it, or set it to transaction.timeout.ms ({limit}) or less"]


def _normal(value: object) -> str:
    text = str(value).strip().lower()
    return "all" if text == "-1" else text


def _option(value: object) -> Option:
    assert isinstance(value, str | int | float | bool)  # held by _problems
    return value
