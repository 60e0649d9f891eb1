"""Why a TLS handshake with a broker fails.

The client says that the broker's certificate could not be verified, whatever is wrong with it. So the handshake is done
once more, by Python, which tells an unknown authority from an expired certificate and from another host's; and the
certificates are looked at.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.ports import KafkaErrorLike
from contexture.kafka.settings import ClientSettings

if TYPE_CHECKING:
    from cryptography import x509

# Somebody listens there, or the client had heard nothing; a busy broker takes its time for a handshake.
_SECONDS: Final = 10.0
_ADDRESS = re.compile(r"ssl://(.+?):(\d+)/", re.IGNORECASE)
_EXPIRED, _NOT_YET = 10, 9
_OTHER_HOST: Final = frozenset({62, 63, 64})
_UNKNOWN: Final = frozenset({2, 18, 19, 20, 21, 24})
_ALERT = re.compile(r"alert ([a-z ]+?)(?::|$)", re.IGNORECASE)


def explained(settings: ClientSettings, error: KafkaErrorLike, doing: str) -> KafkaConfigurationError | None:
    """The error that says what of TLS is wrong and which setting heals it; None when nothing is found out.

    Args:
        settings: the connection.
        error: what the client said of the handshake.
        doing: what was tried.
    """
    found = _ADDRESS.search(error.str())
    if found is None:
        return None
    host, port = found[1].strip("[]"), int(found[2])
    reason = _of_broker(settings, host, port) or _of_ours(settings, error.str())
    if reason is None:
        return None
    return KafkaConfigurationError(
        f"{doing} failed in the TLS handshake with {host}:{port}: {reason[0]}", next_step=reason[1], status=3
    )


def _of_broker(settings: ClientSettings, host: str, port: int) -> tuple[str, str] | None:
    """What is wrong with the broker's certificate, and what to do."""
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


def _sentence(code: int, host: str, certificate: x509.Certificate | None) -> tuple[str, str]:
    if code in _OTHER_HOST:
        names = _names(certificate) if certificate else ""
        return (
            f"the broker's certificate is for {names or 'other hosts'}, not for {host}",
            f"name the brokers in bootstrap.servers (and in their advertised.listeners) as their certificates do, or "
            f"give them certificates for {host}; ssl.endpoint.identification.algorithm=none would trust any host",
        )
    if code in {_EXPIRED, _NOT_YET}:
        ended = code == _EXPIRED
        moment = certificate and (certificate.not_valid_after_utc if ended else certificate.not_valid_before_utc)
        when = f" since {moment:%Y-%m-%d %H:%M} UTC" if moment and ended else f" before {moment:%Y-%m-%d %H:%M} UTC"
        return (
            f"the broker's certificate {'has expired' if ended else 'is not valid'}{when if moment else ''}",
            "renew the certificate in the ssl.keystore.location of the broker (or an authority in ssl.ca.location, "
            "where that has expired), and see that this machine's clock is right",
        )
    issuer = f" ({certificate.issuer.rfc4514_string()})" if certificate and code in _UNKNOWN else ""
    return (
        f"the broker's certificate is signed by an authority{issuer} that this connection does not trust",
        "name a PEM file with this authority in ssl.ca.location (or a store with it in ssl.truststore.location)",
    )


def _of_ours(settings: ClientSettings, text: str) -> tuple[str, str] | None:
    """What is wrong with our own certificate, where the broker refused it."""
    alert = _ALERT.search(text)
    certificate = _our_certificate(settings.admin())
    if certificate is not None and certificate.not_valid_after_utc < datetime.now(UTC):
        return (
            f"our own certificate has expired since {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC",
            "renew the certificate in ssl.certificate.location (or ssl.keystore.location)",
        )
    if alert is None:
        return None
    if certificate is None:
        return (
            f"the broker wants a certificate of ours ({alert[1]})",
            "give the connection one: ssl.certificate.location and ssl.key.location, or ssl.keystore.location",
        )
    return (
        f"the broker refuses our certificate ({alert[1]}), signed by {certificate.issuer.rfc4514_string()}",
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

    # Nothing is sent over this connection: the certificate that was refused is only looked at.
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
