"""Where a source that speaks HTTP is, and what it wants to see before it answers. The headers may be secrets."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import ClassVar, Self

import httpx
import msgspec

from contexture.errors import ConfigurationError
from contexture.ngsi.authentication import TokenGrant

_UNSENDABLE = re.compile(r"[\r\n\0]")


class ConnectionDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A connection as it travels to another process of ours."""

    base_url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    timeout_seconds: float = 60.0
    verify: bool | str = True
    grant: TokenGrant | None = None
    certificate: str = ""
    certificate_key: str = ""
    certificate_password: str = ""


@dataclass(frozen=True, slots=True)
class HttpConnection:
    """How to reach a source.

    Attributes:
        base_url: what stands before the paths of its interface; a user and password in it count as secret, like the
            headers.
        headers: sent with every request (tokens, API keys); never shown.
        timeout_seconds: how long one request may take.
        verify: False trusts any certificate, a text is the path of a bundle of authorities.
        grant: how access tokens are come by, where the source wants ones that end.
        certificate, certificate_key: paths of our own certificate and its key (PEM), shown to a source that asks for
            them (mTLS); the key may stand in the certificate's file.
        certificate_password: of the key.

    Raises:
        ConfigurationError: the address is no HTTP address, or a value can't be used.
    """

    WHO: ClassVar[str] = "the source"
    DOCUMENT: ClassVar[type[ConnectionDocument]] = ConnectionDocument

    base_url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = 60.0
    verify: bool | str = True
    grant: TokenGrant | None = None
    certificate: str = ""
    certificate_key: str = ""
    certificate_password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        url = self._url()
        if url.scheme not in {"http", "https"} or not url.host:
            raise self.mistake(f"{self.WHO}'s address is no HTTP address")
        unsendable = [name for name, value in self.headers.items() if _UNSENDABLE.search(f"{name}{value}")]
        if unsendable:
            raise self.mistake(f"{self.WHO}'s header {unsendable[0]!r} holds a line break")
        if self.timeout_seconds <= 0:
            raise self.mistake(f"{self.WHO}'s timeout_seconds is not above 0")
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))
        object.__setattr__(self, "headers", dict(self.headers))

    @classmethod
    def mistake(cls, message: str) -> ConfigurationError:
        """The error of a connection that can't be used."""
        return ConfigurationError(
            message,
            next_step=f"correct {cls.WHO}'s connection: host http(s)://name:port, and headers as a JSON object of "
            "texts",
        )

    @property
    def address(self) -> str:
        """The address without what may be secret in it; fit for messages and manifests."""
        return str(self._url().copy_with(username=None, password=None, query=None, fragment=None)).rstrip("/")

    @property
    def is_loopback(self) -> bool:
        """Whether the source is on this machine, which no proxy is to be asked for."""
        host = self._url().host
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
        document = self.DOCUMENT(**{name: getattr(self, name) for name in self.DOCUMENT.__struct_fields__})
        return msgspec.json.encode(document).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Reads what `to_json` wrote.

        Raises:
            ConfigurationError: it isn't that.
        """
        try:
            document = msgspec.json.decode(text, type=cls.DOCUMENT)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            # The decoder's words name members and types, never values.
            raise cls.mistake(f"{cls.WHO}'s connection can not be read: {error}") from None
        return cls(**{name: getattr(document, name) for name in cls.DOCUMENT.__struct_fields__})

    def _url(self) -> httpx.URL:
        try:
            return httpx.URL(self.base_url)
        except (httpx.InvalidURL, TypeError) as error:
            # `from None`: the foreign error may quote a password in the address.
            raise self.mistake(f"{self.WHO}'s address is no address ({type(error).__name__})") from None


def _bundle(path: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the bundle of authorities {path!r} can not be read: {error}",
            next_step="put the path of a readable PEM file into the connection's verify",
        ) from error
