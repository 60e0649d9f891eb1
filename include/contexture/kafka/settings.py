"""The settings of a Kafka connection, checked, and completed for each kind of client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from contexture.kafka import key_stores
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.java_properties import (
    CALLBACKS,
    CONSUMER_ONLY,
    JAVA_NAMES,
    OWNED_NAMES,
    PRODUCER_ONLY,
    Translation,
    servers,
    translate,
)

PROFILE: Final = "contexture.profile"
"""The name by which the extra of a connection says it."""

Values = Mapping[str, str | int | float | bool]

_PRODUCERS: Final[Mapping[str, Values]] = MappingProxyType(
    {
        # Each record leaves at once: small batches, many requests.
        "latency": {"linger.ms": 0, "socket.nagle.disable": True},
        # Batches wait until they are full: fewer and better compressed requests, more memory.
        "throughput": {
            "linger.ms": 100,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 524_288,
        },
    }
)
_CONSUMERS: Final[Mapping[str, Values]] = MappingProxyType(
    {
        "latency": {"fetch.min.bytes": 1, "fetch.wait.max.ms": 10, "socket.nagle.disable": True},
        "throughput": {
            "fetch.min.bytes": 1_048_576,
            "fetch.wait.max.ms": 500,
            "fetch.message.max.bytes": 16_777_216,
            "queued.max.messages.kbytes": 131_072,
        },
    }
)
NAMES: Final = tuple(sorted(_PRODUCERS))


def of_producer(options: Mapping[str, object]) -> Values:
    """Returns what the chosen profile sets for producers; nothing without one."""
    return _PRODUCERS.get(str(options.get(PROFILE, "")), {})


def of_consumer(options: Mapping[str, object]) -> Values:
    """Returns what the chosen profile sets for readers."""
    return _CONSUMERS.get(str(options.get(PROFILE, "")), {})


def profile_problems(options: Mapping[str, object]) -> list[str]:
    """Returns a sentence where a profile is named that there is none of."""
    if PROFILE in options and options[PROFILE] not in NAMES:
        return [f"{PROFILE}: give {' or '.join(NAMES)}, or leave it out for a value in between"]
    return []


MASK: Final = "***"
_SECRET = re.compile(
    r"password|secret|passphrase|jaas|token(?!\.endpoint)|key\.pem|keystore\.key$|oauthbearer\.config|credential|assertion",
    re.IGNORECASE,
)
# The client quotes what it can't read of this option, from some place in it on.
_REST = re.compile(r"(beginning at:?).*", re.IGNORECASE | re.DOTALL)
_SHORTEST: Final = 4


def is_secret(name: str) -> bool:
    """Returns whether an option's value must never be shown."""
    return bool(_SECRET.search(name))


def secret_values(options: Mapping[str, object]) -> tuple[str, ...]:
    """Returns the secrets among options, the longest first."""
    found = {str(value) for name, value in options.items() if is_secret(name) and value not in (None, "")}
    return tuple(sorted(found, key=len, reverse=True))


def without_secrets(text: str, options: Mapping[str, object]) -> str:
    """Returns a text of the client about these options, its secrets replaced."""
    for value in secret_values(options):
        if len(value) >= _SHORTEST:
            text = text.replace(value, MASK)
    return _REST.sub(rf"\1 {MASK}", text)


_NEEDS_USER: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
# What Contexture computes with itself.
_NUMBERS: Final[Mapping[str, str]] = {
    "message.max.bytes": "bytes",
    "queue.buffering.max.kbytes": "kilobytes",
    "transaction.timeout.ms": "milliseconds",
    "message.timeout.ms": "milliseconds",
}
_OTHER_TOKENS: Final = ("enable.sasl.oauthbearer.unsecure.jwt", "sasl.oauthbearer.metadata.authentication.type")


def problems_of(
    options: Mapping[str, object], needed: Mapping[str, object], transaction_timeout_ms: object
) -> list[str]:
    """Returns all problems of options that are in this client's names.

    Args:
        options: what the connection says.
        needed: options that may only have these values.
        transaction_timeout_ms: where the connection says nothing.
    """
    problems = [f"{name}: {JAVA_NAMES[name]}" for name in options if name in JAVA_NAMES]
    problems += [f"{name}: {OWNED_NAMES[name]}" for name in options if name in OWNED_NAMES]
    problems += [f"{name}: remove it (callbacks are set by Contexture)" for name in options if name in CALLBACKS]
    problems += [
        f"{name}: remove it (Contexture needs {name}={str(value).lower()})"
        for name, value in needed.items()
        if name in options and _normal(options[name]) != _normal(value)
    ]
    problems += [
        f"{name}: write one text, number or true/false, not {type(value).__name__}"
        for name, value in options.items()
        if not isinstance(value, str | int | float | bool)
    ]
    if not str(options.get("bootstrap.servers", "")).strip():
        problems.append("bootstrap.servers: give the brokers as host:port,host:port")
    problems += [
        f"{name}: give {unit} as a whole number"
        for name, unit in _NUMBERS.items()
        if not str(options.get(name, "0")).isdecimal()
    ]
    problems += profile_problems(options)
    return problems + _timeouts(options, transaction_timeout_ms) + _login(options) + key_stores.problems(options)


def _timeouts(options: Mapping[str, object], default: object) -> list[str]:
    given = str(options.get("message.timeout.ms", default))
    limit = str(options.get("transaction.timeout.ms", default))
    if "message.timeout.ms" not in options or not (given + limit).isdecimal() or 0 < int(given) <= int(limit):
        # What is no number is reported elsewhere.
        return []
    return [f"message.timeout.ms: remove it, or set it to transaction.timeout.ms ({limit}) or less"]


def _login(options: Mapping[str, object]) -> list[str]:
    protocol = str(options.get("security.protocol", "")).upper()
    mechanism = str(options.get("sasl.mechanism", "")).upper()
    if mechanism and not protocol.startswith("SASL_"):
        return ["security.protocol: set it to SASL_SSL (or SASL_PLAINTEXT); without it sasl.mechanism is not used"]
    if not protocol.startswith("SASL_"):
        return []
    if mechanism in _NEEDS_USER:
        names = ("sasl.username", "sasl.password")
        return [f"{name}: give it, sasl.mechanism {mechanism} needs it" for name in names if not options.get(name)]
    if mechanism == "OAUTHBEARER":
        return _tokens(options)
    if not mechanism and "sasl.username" in options:
        return ["sasl.mechanism: set it to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, as configured at the brokers"]
    return []


def _tokens(options: Mapping[str, object]) -> list[str]:
    if str(options.get("sasl.oauthbearer.method", "")).lower() == "oidc":
        # Only the client knows which further options each way of getting a token needs.
        return []
    if any(name in options for name in _OTHER_TOKENS):
        return []
    return [
        "sasl.oauthbearer.method: set it to oidc, with sasl.oauthbearer.token.endpoint.url, "
        "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"
    ]


def _normal(value: object) -> str:
    text = str(value).strip().lower()
    return "all" if text == "-1" else text


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
_SENDERS_ALWAYS: Final[Mapping[str, Option]] = MappingProxyType(
    {**_ALWAYS, "delivery.report.only.error": True, **_NEVER_BY_ASKING}
)
# A reader names its own partitions and offsets, and commits nothing.
_READERS_ALWAYS: Final[Mapping[str, Option]] = MappingProxyType(
    {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
)
ENFORCED: Final = frozenset({*_SENDERS_ALWAYS, *_READERS_ALWAYS, "isolation.level", "transactional.id"})
"""Options that no connection can set otherwise."""
_CONSUMER_DEFAULTS: Final[Mapping[str, Option]] = MappingProxyType(
    {
        "group.id": "contexture",
        # Bounds what a reader holds in memory, whatever the topics hold.
        "queued.max.messages.kbytes": 32_768,
        "receive.message.max.bytes": 1_000_000_000,
        "fetch.message.max.bytes": 4_194_304,
        # What brokers give is what was written, or an error.
        "check.crcs": True,
        # An end is noticed by an empty answer; brokers hold that back for 500 ms by default.
        "fetch.wait.max.ms": 20,
    }
)
_KBYTE: Final = 1024
_QUEUE_SHARE: Final = 1.25


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The options of one Kafka connection; neither `repr` nor `str` shows a secret.

    Make one with `from_extra` or `from_connection`. `producer`, `consumer` and `admin` give the complete dictionaries
    for the clients of confluent-kafka; each call gives a new one, for which stores of Java clients are read
    (KafkaConfigurationError where one does not open).

    Attributes:
        options: in the names of librdkafka; stores of Java clients by Java's names.
        sources: for each option, the name by which the connection gives it.
    """

    options: Mapping[str, Option] = field(repr=False)
    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_extra(cls, extra: Mapping[str, object]) -> ClientSettings:
        """The settings in the extra of an Airflow connection of type `kafka`: names of librdkafka or of Java clients.

        Raises:
            KafkaConfigurationError: a name that means nothing here, a name Contexture sets itself, an option that would
                break exactly-once, no `bootstrap.servers`. All problems are named at once.
        """
        found = translate_and_check(extra)
        if found.problems:
            raise KafkaConfigurationError(
                "the Kafka connection cannot be used as it is: " + "; ".join(found.problems),
                next_step="change the extra of the Airflow connection (docs/reference/kafka-connection.md)",
                properties=", ".join(sorted(found.options)),
            )
        options = {name: _option(value) for name, value in found.options.items()}
        return cls(MappingProxyType(options), MappingProxyType(found.sources))

    @classmethod
    def from_connection(
        cls,
        extra: Mapping[str, object],
        *,
        host: str = "",
        port: int | None = None,
        login: str = "",
        password: str = "",
    ) -> ClientSettings:
        """Returns the settings of a whole Airflow connection; what its extra says wins over its fields.

        Args:
            extra: as for `from_extra`.
            host: the brokers, where the extra does not name them: one, or several with commas.
            port: of brokers that come without one; 9092 when None.
            login: the user, for mechanisms that need one.
            password: of that user.

        Raises:
            KafkaConfigurationError: as for `from_extra`.
        """
        # A form leaves null where no one wrote anything.
        extra = {name: value for name, value in extra.items() if value is not None}
        fields: dict[str, object] = {}
        if host and not {"bootstrap.servers", "metadata.broker.list"} & set(extra):
            fields["bootstrap.servers"] = servers(host, port)
        if login and not {"sasl.username", "sasl.jaas.config"} & set(extra):
            fields |= {"sasl.username": login, "sasl.password": password}
        return cls.from_extra({**fields, **extra})

    @property
    def bootstrap_servers(self) -> str:
        """The brokers to ask first, as given: `host:port,host:port`."""
        return str(self.options["bootstrap.servers"])

    @property
    def transaction_timeout_seconds(self) -> float:
        """After how long the broker gives up a transaction that stays open."""
        return float({**_PRODUCER_DEFAULTS, **self.options}["transaction.timeout.ms"]) / 1000

    def producer(self, transactional_id: str | None = None) -> dict[str, Option]:
        """Returns the configuration of an idempotent producer; with an id, of a transactional one."""
        defaults = {**_PRODUCER_DEFAULTS, **of_producer(self.options)}
        options = {**self._with(defaults, without=CONSUMER_ONLY), **_SENDERS_ALWAYS}
        if "queue.buffering.max.kbytes" not in self.options:
            # The largest record fits beside those that wait to be delivered.
            needed = int(int(self.options.get("message.max.bytes", 0)) * _QUEUE_SHARE) // _KBYTE
            options["queue.buffering.max.kbytes"] = max(int(options["queue.buffering.max.kbytes"]), needed)
        if transactional_id is not None:
            options["transactional.id"] = transactional_id
        return options

    def consumer(self, *, isolation: str = "read_committed") -> dict[str, Option]:
        """Returns the configuration of a reader that names its own partitions and offsets, and commits nothing."""
        return {
            **self._with({**_CONSUMER_DEFAULTS, **of_consumer(self.options)}, without=PRODUCER_ONLY),
            "isolation.level": isolation,
            **_READERS_ALWAYS,
        }

    def admin(self) -> dict[str, Option]:
        return {**self._with({}, without=PRODUCER_ONLY | CONSUMER_ONLY), **_NEVER_BY_ASKING}

    def identity(self) -> str:
        """Which cluster as whom, without secrets: `SASL_SSL://user@a:9092,b:9092` (brokers sorted)."""
        servers = ",".join(sorted(part.strip() for part in self.bootstrap_servers.split(",") if part.strip()))
        user = str(self.options.get("sasl.username", self.options.get("sasl.kerberos.principal", "")))
        protocol = str(self.options.get("security.protocol", "plaintext")).upper()
        return f"{protocol}://{user + '@' if user else ''}{servers}"

    def secrets(self) -> tuple[str, ...]:
        """Returns the values that must be masked in logs."""
        return secret_values(self.options)

    def without_secrets(self, text: str) -> str:
        """Returns a text of the client, none of these settings' secrets in it."""
        return without_secrets(text, self.options)

    def shown(self) -> dict[str, str]:
        """Returns the options by name, sorted, for people to look at: no secret's value."""
        return {name: str(value) for name, value in self._masked().items()}

    def __repr__(self) -> str:
        return f"ClientSettings({self._masked()})"

    def __reduce__(self) -> tuple[object, ...]:
        return ClientSettings.from_extra, (dict(self.options),)

    def _masked(self) -> dict[str, Option]:
        return {name: MASK if is_secret(name) else value for name, value in sorted(self.options.items())}

    def _with(self, defaults: Mapping[str, Option], without: frozenset[str] = frozenset()) -> dict[str, Option]:
        hidden = without | key_stores.replaced(self.options) | {PROFILE}
        given = {name: value for name, value in self.options.items() if name not in hidden}
        return {**defaults, **given, **key_stores.client_options(self.options)}


def translate_and_check(extra: Mapping[str, object]) -> Translation:
    """Translates the extra of a connection; its problems are those of the translation and of the options."""
    found = translate(extra)
    limit = _PRODUCER_DEFAULTS["transaction.timeout.ms"]
    return replace(found, problems=found.problems + problems_of(found.options, _ALWAYS, limit))


def _option(value: object) -> Option:
    assert isinstance(value, str | int | float | bool)  # held by problems_of
    return value
