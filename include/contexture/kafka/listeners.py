"""Whether brokers listen by another protocol than `security.protocol` says.

A client that speaks TLS to a port without it, or the other way round, only hears that the connection was closed, as by
a broker that is just going down. So the port is asked itself, with the first request of a login, which every listener
answers in its own way: one without login, one with, and one behind TLS. Only an answer counts, never a silence.
Nothing secret is sent.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from contexture.kafka.addresses import parts
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.settings import ClientSettings

_CONNECT_SECONDS: Final = 1.0
# Of a handshake, and of an answer: a busy broker is slow to give either.
_ANSWER_SECONDS: Final = 5.0
_BROKERS: Final = 3
_SASL_HANDSHAKE, _VERSION, _CORRELATION = 17, 1, 0x43545852
_LONGEST_ANSWER: Final = 4096
# Kafka's code for a login where none is asked for.
_ILLEGAL_SASL_STATE: Final = 34
# As RFC 4422, 3.1 has them; people read them in an error.
_MECHANISM = re.compile(rb"[A-Z0-9_-]{1,20}")


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a listener speaks.

    Attributes:
        tls: whether it does so over TLS.
        mechanisms: how users log in; empty where nobody does, None where the listener did not say.
    """

    tls: bool
    mechanisms: tuple[str, ...] | None

    def differs_from(self, protocol: str) -> bool:
        """Whether a client of that `security.protocol` would not be understood."""
        if self.tls != protocol.endswith("SSL"):
            return True
        return self.mechanisms is not None and bool(self.mechanisms) != protocol.startswith("SASL")

    @property
    def protocol(self) -> str:
        """The `security.protocol` for it, as far as the listener said."""
        transport = "SSL" if self.tls else "PLAINTEXT"
        if self.mechanisms is None:
            return f"{transport} or SASL_{transport}"
        return f"SASL_{transport}" if self.mechanisms else transport


def other_protocol(settings: ClientSettings, doing: str) -> KafkaConfigurationError | None:
    """The error that says which protocol a bootstrap server speaks; None where it is the connection's, or none answers.

    Args:
        settings: the connection.
        doing: what was tried.
    """
    ours = str(settings.options.get("security.protocol", "PLAINTEXT")).upper()
    for address in settings.bootstrap_servers.split(",")[:_BROKERS]:
        host, port = parts(address.strip().rpartition("://")[2])
        spoken = listener(host, port)
        if spoken is None:
            continue
        return _mismatch(f"{host}:{port}", ours, spoken, doing) if spoken.differs_from(ours) else None
    return None


def listener(host: str, port: int) -> Spoken | None:
    """What is spoken at an address; None where nobody answers as a broker of Kafka would."""
    plain = _asked(host, port, tls=False)
    return plain if plain is not None else _asked(host, port, tls=True)


def _mismatch(address: str, ours: str, spoken: Spoken, doing: str) -> KafkaConfigurationError:
    mechanisms = f", and sasl.mechanism to one of {', '.join(spoken.mechanisms)}" if spoken.mechanisms else ""
    return KafkaConfigurationError(
        f"{doing} failed: the broker at {address} speaks {spoken.protocol}, and security.protocol of the connection is "
        f"{ours}",
        next_step=f"set security.protocol to {spoken.protocol}{mechanisms}, or name the port in bootstrap.servers on "
        f"which the brokers speak {ours}",
        status=3,
    )


def _asked(host: str, port: int, *, tls: bool) -> Spoken | None:
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_SECONDS) as plain:
            plain.settimeout(_ANSWER_SECONDS)
            if not tls:
                mechanisms = _mechanisms(plain)
                return None if mechanisms is None else Spoken(False, mechanisms)
            with _unverified().wrap_socket(plain, server_hostname=host) as secured:
                # Who wants to see our certificate says no more.
                return Spoken(True, _mechanisms(secured))
    except OSError:
        return None


def _unverified() -> ssl.SSLContext:
    # Nothing is sent but the question: whether the certificate is good is seen when the client connects.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _mechanisms(connection: socket.socket) -> tuple[str, ...] | None:
    """How users log in, by a request for a mechanism that no broker has; None where the answer is none of Kafka's."""
    asked = b"contexture"
    request = struct.pack(">hhih", _SASL_HANDSHAKE, _VERSION, _CORRELATION, -1) + struct.pack(">h", len(asked)) + asked
    until = time.monotonic() + _ANSWER_SECONDS
    with suppress(OSError, struct.error):
        connection.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", _read(connection, 4, until))
        if 10 <= length <= _LONGEST_ANSWER:
            return mechanisms_in(_read(connection, length, until))
    return None


def mechanisms_in(answer: bytes) -> tuple[str, ...] | None:
    """How users log in, by an answer to the question; empty where nobody does, None where it is none of Kafka's."""
    with suppress(struct.error):
        correlation, code, count = struct.unpack_from(">ihi", answer)
        if correlation == _CORRELATION:
            return () if code == _ILLEGAL_SASL_STATE else _texts(answer, 10, count)
    return None


def _texts(answer: bytes, at: int, count: int) -> tuple[str, ...] | None:
    found = []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", answer, at)
        text = answer[at + 2 : at + 2 + length] if length > 0 else b""
        # A length below zero would lead back, for ever.
        if not _MECHANISM.fullmatch(text):
            return None
        found.append(text.decode("ascii"))
        at += 2 + length
    return tuple(found)


def _read(connection: socket.socket, count: int, until: float) -> bytes:
    found = b""
    while len(found) < count:
        # Who sends a byte now and then is not waited for byte by byte.
        if time.monotonic() > until or not (more := connection.recv(count - len(found))):
            raise ConnectionResetError
        found += more
    return found
