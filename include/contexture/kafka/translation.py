"""From the names of Java clients, and other names for the same, to those of this client.

What means the same is translated; what does not stays as it is, and `contexture.kafka.settings` refuses it. No error
quotes a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from contexture.kafka.translation_rules import RULES, Given

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
        done.problems.append(f"{done.sources[option]} and {name} say {option} in two ways: give one of them")
    done.options[option] = meant
    done.sources[option] = name
