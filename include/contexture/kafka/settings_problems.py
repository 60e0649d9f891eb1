"""What of a Kafka connection's options can't be used: a sentence each that says what to do, and never a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from contexture.kafka import profiles, stores
from contexture.kafka.refused_properties import CALLBACKS, JAVA_NAMES, OWNED_NAMES

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
    """All problems of options that are in this client's names.

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
        f"{name}: give one text, number or true/false, not {type(value).__name__}"
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
    problems += profiles.problems(options)
    return problems + _timeouts(options, transaction_timeout_ms) + _login(options) + stores.problems(options)


def _timeouts(options: Mapping[str, object], default: object) -> list[str]:
    given = str(options.get("message.timeout.ms", default))
    limit = str(options.get("transaction.timeout.ms", default))
    if "message.timeout.ms" not in options or not (given + limit).isdecimal() or 0 < int(given) <= int(limit):
        # What is no number is told as such.
        return []
    return [f"message.timeout.ms: remove it, or set it to transaction.timeout.ms ({limit}) or less"]


def _login(options: Mapping[str, object]) -> list[str]:
    protocol = str(options.get("security.protocol", "")).upper()
    mechanism = str(options.get("sasl.mechanism", "")).upper()
    if mechanism and not protocol.startswith("SASL_"):
        return ["security.protocol: set it to SASL_SSL (or SASL_PLAINTEXT), or nobody logs in by sasl.mechanism"]
    if not protocol.startswith("SASL_"):
        return []
    if mechanism in _NEEDS_USER:
        names = ("sasl.username", "sasl.password")
        return [f"{name}: give it, sasl.mechanism {mechanism} needs it" for name in names if not options.get(name)]
    if mechanism == "OAUTHBEARER":
        return _tokens(options)
    if not mechanism and "sasl.username" in options:
        return ["sasl.mechanism: set it to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, as the brokers have it"]
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
