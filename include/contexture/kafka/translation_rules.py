"""What a property of Java clients becomes, where it is more than another name: a rule for each.

A rule raises ValueError with what to do where a value has no equivalent; it never quotes the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from contexture.kafka import jaas

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
