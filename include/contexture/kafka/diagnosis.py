"""Why a client cannot connect, found out after it failed: addresses, TLS handshake, files, listeners.

The client says that the broker's certificate could not be verified, whatever is wrong with it. So the handshake is done
once more, by Python, which distinguishes an unknown authority, an expired certificate and another host's; and the
certificates are inspected.

A client that speaks TLS to a port without it, or the other way round, only sees that the connection was closed, as by
a broker that is just going down. So the port itself is queried, with the first request of a login, which every listener
answers in its own way: one without login, one with, and one behind TLS. Only a response counts, never its absence.
Nothing secret is sent.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.interfaces import KafkaErrorLike
from contexture.kafka.java_properties import DEFAULT_PORT
from contexture.kafka.settings import ClientSettings

if TYPE_CHECKING:
    from cryptography import x509

_AT_ONCE: Final = 16
_PROTOCOL_MARK: Final = "://"


class HostAndPort(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int


class Explanation(NamedTuple):
    """Why a connection fails, and what to do."""

    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class AddressProbe:
    """One address: why no one answers (empty when someone does), what to do, and how long it took."""

    address: str
    problem: str
    remedy: str
    seconds: float


def probe_addresses(addresses: str | Sequence[str], timeout_seconds: float) -> list[AddressProbe]:
    """Probes every address, several concurrently; they come as `host:port,host:port` or as a list of such."""
    parts = addresses.split(",") if isinstance(addresses, str) else addresses
    wanted = [part.strip().rpartition(_PROTOCOL_MARK)[2] for part in parts if part.strip()]
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
        return list(threads.map(lambda address: _reach(address, timeout_seconds), wanted))


def _reach(address: str, timeout_seconds: float) -> AddressProbe:
    started = time.monotonic()
    problem, remedy = "", ""
    host, port = parts(address)
    try:
        socket.create_connection((host, port), timeout=timeout_seconds).close()
    except socket.gaierror:
        problem = f"no such host: {host}"
        remedy = "correct its name in bootstrap.servers, or the name service of this machine"
    except ConnectionRefusedError:
        problem = "nothing listens there"
        remedy = "start the broker, or correct its port in bootstrap.servers"
    except TimeoutError:
        problem = f"no response within {timeout_seconds:.0f} s"
        remedy = "allow this machine through the firewall, or correct the address in bootstrap.servers"
    except (OSError, OverflowError) as error:
        problem = f"cannot be reached ({type(error).__name__})"
        remedy = "correct the address in bootstrap.servers, or the network of this machine"
    return AddressProbe(address, problem, remedy, time.monotonic() - started)


def parts(address: str) -> HostAndPort:
    """Host and port of an address, with Kafka's own port where it names none."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or (host.count(":") and not host.endswith("]")):
        return HostAndPort(address.strip("[]"), DEFAULT_PORT)
    return HostAndPort(host.strip("[]"), int(port))


# A listener is there, or the client had received nothing; a busy broker needs time for a handshake.
_SECONDS: Final = 10.0
_ADDRESS = re.compile(r"ssl://(.+?):(\d+)/", re.IGNORECASE)
_EXPIRED, _NOT_YET = 10, 9
_OTHER_HOST: Final = frozenset({62, 63, 64})
_UNKNOWN: Final = frozenset({2, 18, 19, 20, 21, 24})
_ALERT = re.compile(r"alert ([a-z ]+?)(?::|$)", re.IGNORECASE)


def explain_handshake(settings: ClientSettings, error: KafkaErrorLike, doing: str) -> KafkaConfigurationError | None:
    """Returns the error that names the fault in TLS and the setting that corrects it; None when none is found."""
    found = _ADDRESS.search(error.str())
    if found is None:
        return None
    host, port = found[1].strip("[]"), int(found[2])
    found_out = _of_broker(settings, host, port) or _of_ours(settings, error.str())
    if found_out is None:
        return None
    return KafkaConfigurationError(
        f"{doing} failed in the TLS handshake with {host}:{port}: {found_out.reason}",
        next_step=found_out.remedy,
        status=3,
    )


def _of_broker(settings: ClientSettings, host: str, port: int) -> Explanation | None:
    """Returns what is wrong with the broker's certificate, and what to do."""
    options = settings.admin()
    if str(options.get("enable.ssl.certificate.verification", True)).lower() == "false":
        return None
    try:
        _shake_hands(_context(options), host, port)
    except ssl.SSLCertVerificationError as failure:
        return _sentence(failure.verify_code, host, _certificate_of(host, port))
    except OSError:
        return None
    return None


def _sentence(code: int, host: str, certificate: x509.Certificate | None) -> Explanation:
    if code in _OTHER_HOST:
        names = _names(certificate) if certificate else ""
        return Explanation(
            f"the broker's certificate is for {names or 'other hosts'}, not for {host}",
            f"name the brokers in bootstrap.servers (and in their advertised.listeners) as their certificates do, or "
            f"give them certificates for {host}; ssl.endpoint.identification.algorithm=none would trust any host",
        )
    if code in {_EXPIRED, _NOT_YET}:
        ended = code == _EXPIRED
        moment = certificate and (certificate.not_valid_after_utc if ended else certificate.not_valid_before_utc)
        when = f" since {moment:%Y-%m-%d %H:%M} UTC" if moment and ended else f" before {moment:%Y-%m-%d %H:%M} UTC"
        return Explanation(
            f"the broker's certificate {'has expired' if ended else 'is not valid'}{when if moment else ''}",
            "renew the certificate in the ssl.keystore.location of the broker (or an authority in ssl.ca.location, "
            "where that has expired), and check that this machine's clock is right",
        )
    issuer = f" ({certificate.issuer.rfc4514_string()})" if certificate and code in _UNKNOWN else ""
    return Explanation(
        f"the broker's certificate is signed by an authority{issuer} that this connection does not trust",
        "name a PEM file with this authority in ssl.ca.location (or a store with it in ssl.truststore.location)",
    )


def _of_ours(settings: ClientSettings, text: str) -> Explanation | None:
    """Returns what is wrong with our own certificate, where the broker refused it."""
    alert = _ALERT.search(text)
    certificate = _our_certificate(settings.admin())
    if certificate is not None and certificate.not_valid_after_utc < datetime.now(UTC):
        return Explanation(
            f"the client certificate has expired since {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC",
            "renew the certificate in ssl.certificate.location (or ssl.keystore.location)",
        )
    if alert is None:
        return None
    if certificate is None:
        return Explanation(
            f"the broker requires a client certificate ({alert[1]})",
            "add one to the connection: ssl.certificate.location and ssl.key.location, or ssl.keystore.location",
        )
    return Explanation(
        f"the broker refuses the client certificate ({alert[1]}), signed by {certificate.issuer.rfc4514_string()}",
        "give the connection a certificate whose authority the broker trusts, in ssl.certificate.location (or "
        "ssl.keystore.location)",
    )


def _context(options: Mapping[str, object]) -> ssl.SSLContext:
    location, text = options.get("ssl.ca.location"), options.get("ssl.ca.pem")
    if (location is None and text is None) or str(location) == "probe":
        context = ssl.create_default_context()
    else:
        is_folder = location is not None and Path(str(location)).is_dir()
        context = ssl.create_default_context(
            cafile=str(location) if location is not None and not is_folder else None,
            capath=str(location) if is_folder else None,
            cadata=str(text) if text is not None else None,
        )
    if str(options.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    return context


def _shake_hands(context: ssl.SSLContext, host: str, port: int) -> bytes:
    with (
        socket.create_connection((host, port), timeout=_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        return secured.getpeercert(binary_form=True) or b""


def _certificate_of(host: str, port: int) -> x509.Certificate | None:
    from cryptography import x509

    # Nothing is sent over this connection: the certificate that was refused is only read.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        return x509.load_der_x509_certificate(_shake_hands(context, host, port))
    except (OSError, ValueError):
        return None


def _names(certificate: x509.Certificate) -> str:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return certificate.subject.rfc4514_string()
    hosts = names.get_values_for_type(x509.DNSName)
    return ", ".join([*hosts, *map(str, names.get_values_for_type(x509.IPAddress))])


def _our_certificate(options: Mapping[str, object]) -> x509.Certificate | None:
    from cryptography import x509

    text = options.get("ssl.certificate.pem")
    location = options.get("ssl.certificate.location")
    try:
        content = str(text).encode() if text is not None else Path(str(location)).read_bytes() if location else b""
        return x509.load_pem_x509_certificate(content)
    except (OSError, ValueError):
        return None


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
class DetectedProtocol:
    """What a listener speaks.

    Attributes:
        tls: whether it does so over TLS.
        mechanisms: how users log in; empty where no one does, None where the listener did not say.
    """

    tls: bool
    mechanisms: tuple[str, ...] | None

    def differs_from(self, protocol: str) -> bool:
        """Returns whether a client of that `security.protocol` would not be understood."""
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
    """Returns the error of a bootstrap server that speaks another protocol than the connection; None without one."""
    ours = str(settings.options.get("security.protocol", "PLAINTEXT")).upper()
    for address in settings.bootstrap_servers.split(",")[:_BROKERS]:
        host, port = parts(address.strip().rpartition("://")[2])
        spoken = listener(host, port)
        if spoken is None:
            continue
        return _mismatch(f"{host}:{port}", ours, spoken, doing) if spoken.differs_from(ours) else None
    return None


def listener(host: str, port: int) -> DetectedProtocol | None:
    """Returns what is spoken at an address; None where no one answers as a broker of Kafka would."""
    plain = _asked(host, port, tls=False)
    return plain if plain is not None else _asked(host, port, tls=True)


def _mismatch(address: str, ours: str, spoken: DetectedProtocol, doing: str) -> KafkaConfigurationError:
    mechanisms = f", and sasl.mechanism to one of {', '.join(spoken.mechanisms)}" if spoken.mechanisms else ""
    return KafkaConfigurationError(
        f"{doing} failed: the broker at {address} uses {spoken.protocol}, and security.protocol of the connection is "
        f"{ours}",
        next_step=f"set security.protocol to {spoken.protocol}{mechanisms}, or name the port in bootstrap.servers on "
        f"which the brokers use {ours}",
        status=3,
    )


def _asked(host: str, port: int, *, tls: bool) -> DetectedProtocol | None:
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_SECONDS) as plain:
            plain.settimeout(_ANSWER_SECONDS)
            if not tls:
                mechanisms = _mechanisms(plain)
                return None if mechanisms is None else DetectedProtocol(False, mechanisms)
            with _unverified().wrap_socket(plain, server_hostname=host) as secured:
                # Who wants to see our certificate says no more.
                return DetectedProtocol(True, _mechanisms(secured))
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
    """How users log in, by an answer to the question; empty where no one does, None where it is none of Kafka's."""
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
        # A length below zero would lead back without end.
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


_FAILED: Final = re.compile(r"(ssl\.(?:ca|certificate|key)\.location) failed")
_KEY: Final = "ssl.key.location"
_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - the name of an option
_ENCRYPTED: Final = b"ENCRYPTED"


def explain_tls_files(options: Mapping[str, object], text: str) -> KafkaConfigurationError | None:
    """Returns the error for the file that the client could not use; None where its text names none."""
    found = _FAILED.search(text)
    if found is None or not options.get(found[1]):
        return None
    name, path = found[1], Path(str(options[found[1]]))
    reason, remedy = _unreadable(name, path) or _content(name, path, bool(options.get(_PASSWORD)))
    return KafkaConfigurationError(f"{name} of the Kafka connection cannot be used: {reason}", next_step=remedy)


def _unreadable(name: str, path: Path) -> Explanation | None:
    try:
        with path.open("rb"):
            return None
    except OSError as error:
        if path.is_dir() and name == "ssl.ca.location":
            return None
        return Explanation(
            f"{path}: {error.strerror}",
            "correct the path, or put the file there on every machine that runs tasks, readable by their user",
        )


def _content(name: str, path: Path, has_password: bool) -> Explanation:
    if name != _KEY:
        return Explanation(f"{path} holds no certificate in PEM", "name a PEM file: -----BEGIN CERTIFICATE-----")
    if _ENCRYPTED not in path.read_bytes():
        return Explanation(f"{path} holds no private key in PEM", "name a PEM file: -----BEGIN PRIVATE KEY-----")
    if has_password:
        return Explanation(f"{_PASSWORD} does not open the key in {path}", f"correct {_PASSWORD}")
    return Explanation(f"the key in {path} has a password", f"give it in {_PASSWORD}")
