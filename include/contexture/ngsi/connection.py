"""Where a context broker is and what it wants to see before it answers. The headers may be secrets."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

import httpx
import msgspec

from contexture.errors import ConfigurationError
from contexture.ngsi.authentication import TokenGrant

_NEXT_STEP = "correct the context broker's connection: host http(s)://name:port, and headers as a JSON object of texts"
_UNSENDABLE = re.compile(r"[\r\n\0]")


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    base_url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    timeout_seconds: float = 60.0
    verify: bool | str = True
    grant: TokenGrant | None = None
    certificate: str = ""
    certificate_key: str = ""
    certificate_password: str = ""


@dataclass(frozen=True, slots=True)
class BrokerConnection:
    """How to reach a context broker.

    Attributes:
        base_url: what stands before `/v2`; a user and password in it count as secret, like the headers.
        headers: sent with every request (tokens, API keys); never shown.
        timeout_seconds: how long one request may take in all before its page is asked for in smaller pieces.
        verify: False trusts any certificate, a text is the path of a bundle of authorities.
        grant: how access tokens are come by, where the broker wants ones that end.
        certificate, certificate_key: paths of our own certificate and its key (PEM), shown to a broker that asks for
            them (mTLS); the key may stand in the certificate's file.
        certificate_password: of the key.

    Raises:
        ConfigurationError: the address is no HTTP address, or a value can't be used.
    """

    base_url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = 60.0
    verify: bool | str = True
    grant: TokenGrant | None = None
    certificate: str = ""
    certificate_key: str = ""
    certificate_password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        url = _parsed(self.base_url)
        if url.scheme not in {"http", "https"} or not url.host:
            raise ConfigurationError("the context broker's address is no HTTP address", next_step=_NEXT_STEP)
        unsendable = [name for name, value in self.headers.items() if _UNSENDABLE.search(f"{name}{value}")]
        if unsendable:
            raise ConfigurationError(
                f"the context broker's header {unsendable[0]!r} holds a line break", next_step=_NEXT_STEP
            )
        if self.timeout_seconds <= 0:
            raise ConfigurationError("the context broker's timeout_seconds is not above 0", next_step=_NEXT_STEP)
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))
        object.__setattr__(self, "headers", dict(self.headers))

    @property
    def address(self) -> str:
        """The address without what may be secret in it; fit for messages and manifests."""
        url = _parsed(self.base_url)
        return str(url.copy_with(username=None, password=None, query=None, fragment=None)).rstrip("/")

    @property
    def is_loopback(self) -> bool:
        """Whether the broker is on this machine, which no proxy is to be asked for."""
        host = _parsed(self.base_url).host
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def trust(self) -> bool | ssl.SSLContext:
        """What `verify` and our own certificate mean to httpx.

        Raises:
            ConfigurationError: a file can't be read.
        """
        if not self.certificate:
            return self.verify if isinstance(self.verify, bool) else _bundle(self.verify)
        context = httpx.create_ssl_context(self.verify) if isinstance(self.verify, bool) else _bundle(self.verify)
        try:
            context.load_cert_chain(self.certificate, self.certificate_key or None, lambda: self.certificate_password)
        except (OSError, ssl.SSLError, ValueError) as error:
            # `from None`: nothing about the key is to be shown.
            raise ConfigurationError(
                f"our certificate {self.certificate!r} can not be used ({type(error).__name__})",
                next_step="put readable PEM files into the connection's certificate and certificate_key, and the key's "
                "password into certificate_password",
            ) from None
        return context

    def to_json(self) -> str:
        """Everything, secrets included: for the environment of a process of ours, nothing else."""
        document = _Document(**{name: getattr(self, name) for name in _Document.__struct_fields__})
        return msgspec.json.encode(document).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> BrokerConnection:
        """Reads what `to_json` wrote.

        Raises:
            ConfigurationError: it isn't that.
        """
        try:
            document = msgspec.json.decode(text, type=_Document)
        except (msgspec.DecodeError, UnicodeError) as error:
            # The decoder's words name members and types, never values.
            raise ConfigurationError(f"the broker connection can not be read: {error}", next_step=_NEXT_STEP) from None
        return cls(**{name: getattr(document, name) for name in _Document.__struct_fields__})


def _bundle(path: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the bundle of authorities {path!r} can not be read: {error}",
            next_step="put the path of a readable PEM file into the connection's verify",
        ) from error


def _parsed(text: str) -> httpx.URL:
    try:
        return httpx.URL(text)
    except (httpx.InvalidURL, TypeError) as error:
        # `from None`: the foreign error may quote a password in the address.
        raise ConfigurationError(
            f"the context broker's address is no address ({type(error).__name__})", next_step=_NEXT_STEP
        ) from None
