"""From the names of Java clients, and other names for the same, to those of this client.

What means the same is translated; what does not stays as it is, and `contexture.kafka.settings` refuses it. No error
quotes a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from contexture.kafka import jaas

Given = Mapping[str, object]
Rule = Callable[[object, Given], Mapping[str, object]]

DEFAULT_PORT: Final = 9092
_BYTES_IN_KBYTE: Final = 1024
_HAS_PORT = re.compile(r"^(\[[^\]]*\]|[^:]*):\d+$")

# Other names for the same, of this client itself and of Java's, with the same values.
_SAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "metadata.broker.list": "bootstrap.servers",
        "sasl.mechanisms": "sasl.mechanism",
        "compression.codec": "compression.type",
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
    }
)


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
        rule = _RULES.get(name)
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


def _brokers(value: object, _: Given) -> Mapping[str, object]:
    several = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return {"bootstrap.servers": ",".join(value) if several else value}  # type: ignore[arg-type]


def _queue(value: object, _: Given) -> Mapping[str, object]:
    return {"queue.buffering.max.kbytes": max(1, _number(value) // _BYTES_IN_KBYTE)}


def _socket_buffer(option: str) -> Rule:
    # Java's -1 leaves the size to the system; this client's 0 does.
    return lambda value, _: {option: max(0, _number(value))}


def _level(codec: str) -> Rule:
    def rule(value: object, given: Given) -> Mapping[str, object]:
        if str(given.get("compression.type", given.get("compression.codec", "lz4"))).lower() != codec:
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


def _number(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ValueError("give a whole number") from None


_RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "bootstrap.servers": _brokers,
        "buffer.memory": _queue,
        "send.buffer.bytes": _socket_buffer("socket.send.buffer.bytes"),
        "receive.buffer.bytes": _socket_buffer("socket.receive.buffer.bytes"),
        "compression.gzip.level": _level("gzip"),
        "compression.lz4.level": _level("lz4"),
        "compression.zstd.level": _level("zstd"),
        "ssl.endpoint.identification.algorithm": _host_name_check,
        "sasl.jaas.config": _jaas,
        "sasl.login.callback.handler.class": _callback,
    }
)
TRANSLATED: Final = frozenset(_SAME) | frozenset(_RULES) - {
    "bootstrap.servers",
    "ssl.endpoint.identification.algorithm",
}
"""Names that are taken and become others."""
