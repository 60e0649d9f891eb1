"""The connection to an HTTP source: address, headers, TLS, credentials. Headers may be secrets.

Host, port and schema give the address. `login` and `password` give a Basic authorization, unless the extra says another
`authentication`. The extra's keys:

- `headers` (a mapping), `token` (a Bearer token that does not end), `timeout_seconds`, `verify` (false, or the path
  of a bundle of authorities);
- `certificate`, `certificate_key`, `certificate_password`: our own certificate (mTLS);
- `authentication`: `basic`, `oauth2` (client credentials, or the password grant where a `username` is given) or
  `keyrock`, the last two with `token_url`. `oauth2` takes `client_id` and `client_secret` (or login and password),
  `scope`, `username`, `user_password`; `keyrock` takes login and password and sends `X-Auth-Token`. `token_header`
  names another header for the token.
"""

from __future__ import annotations

import re
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import ClassVar, Self, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from contexture.errors import ConfigurationError
from contexture.sources.http.tokens import TokenRequest

_UNSENDABLE = re.compile(r"[\r\n\0]")


class ConnectionDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A connection as it travels to another process of ours."""

    base_url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    timeout_seconds: float = 60.0
    verify: bool | str = True
    grant: TokenRequest | None = None
    certificate: str = ""
    certificate_key: str = ""
    certificate_password: str = ""


@dataclass(frozen=True, slots=True)
class HttpConnection:
    """How to reach a source.

    Attributes:
        base_url: the address before the paths of its interface; a user and password in it are secret, like the headers.
        headers: sent with every request (tokens, API keys); never shown.
        timeout_seconds: how long one request may take.
        verify: False trusts any certificate, a text is the path of a bundle of authorities.
        grant: how access tokens are requested, where the source wants tokens that expire.
        certificate, certificate_key: paths of our own certificate and its key (PEM), shown to a source that asks for
            them (mTLS); the certificate's file may contain the key.

    Raises:
        ConfigurationError: the address is no HTTP address, or a value cannot be used.
    """

    WHO: ClassVar[str] = "the source"
    DOCUMENT: ClassVar[type[ConnectionDocument]] = ConnectionDocument

    base_url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = 60.0
    verify: bool | str = True
    grant: TokenRequest | None = None
    certificate: str = ""
    certificate_key: str = ""
    certificate_password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        url = self._url()
        if url.scheme not in {"http", "https"} or not url.host:
            raise self.validation_error(f"{self.WHO}'s address is not an HTTP address")
        unsendable = [name for name, value in self.headers.items() if _UNSENDABLE.search(f"{name}{value}")]
        if unsendable:
            raise self.validation_error(f"{self.WHO}'s header {unsendable[0]!r} holds a line break")
        if self.timeout_seconds <= 0:
            raise self.validation_error(f"{self.WHO}'s timeout_seconds is not above 0")
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))
        object.__setattr__(self, "headers", dict(self.headers))

    @classmethod
    def validation_error(cls, message: str) -> ConfigurationError:
        """Returns the error of a connection that cannot be used."""
        return ConfigurationError(
            message,
            next_step=f"correct {cls.WHO}'s connection: host http(s)://name:port, and headers as a JSON object of "
            "texts",
        )

    @property
    def address(self) -> str:
        """The address without what may be secret in it, for messages and manifests."""
        return str(self._url().copy_with(username=None, password=None, query=None, fragment=None)).rstrip("/")

    @property
    def is_loopback(self) -> bool:
        """Whether the source is on this machine, which is reached without a proxy."""
        host = self._url().host
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def ssl_context(self) -> bool | ssl.SSLContext:
        """Returns `verify` and our own certificate as httpx takes them.

        Raises:
            ConfigurationError: a file cannot be read.
        """
        if not self.certificate:
            return self.verify if isinstance(self.verify, bool) else _bundle(self.verify)
        context = httpx.create_ssl_context(self.verify) if isinstance(self.verify, bool) else _bundle(self.verify)
        try:
            context.load_cert_chain(self.certificate, self.certificate_key or None, lambda: self.certificate_password)
        except (OSError, ssl.SSLError, ValueError) as error:
            # `from None`: nothing about the key is to be shown.
            raise ConfigurationError(
                f"the client certificate {self.certificate!r} cannot be used ({type(error).__name__})",
                next_step="put readable PEM files into the connection's certificate and certificate_key, and the key's "
                "password into certificate_password",
            ) from None
        return context

    def to_json(self) -> str:
        """Returns everything, secrets included: only for the environment of a process of ours."""
        document = self.DOCUMENT(**{name: getattr(self, name) for name in self.DOCUMENT.__struct_fields__})
        return msgspec.json.encode(document).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Reads what `to_json` wrote.

        Raises:
            ConfigurationError: it is something else.
        """
        try:
            document = msgspec.json.decode(text, type=cls.DOCUMENT)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            # The decoder's message names members and types, never values.
            raise cls.validation_error(f"{cls.WHO}'s connection cannot be read: {error}") from None
        return cls(**{name: getattr(document, name) for name in cls.DOCUMENT.__struct_fields__})

    def _url(self) -> httpx.URL:
        try:
            return httpx.URL(self.base_url)
        except (httpx.InvalidURL, TypeError) as error:
            # `from None`: the foreign error may quote a password in the address.
            raise self.validation_error(f"{self.WHO}'s address is not an address ({type(error).__name__})") from None


def _bundle(path: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the bundle of authorities {path!r} cannot be read: {error}",
            next_step="put the path of a readable PEM file into the connection's verify",
        ) from error


@dataclass(frozen=True, slots=True)
class BrokerConnection(HttpConnection):
    """How to reach a context broker: the address before `/v2`, or before `/ngsi-ld`.

    What takes longer than `timeout_seconds` in all is requested in smaller pieces.
    """

    WHO: ClassVar[str] = "the context broker"


_KINDS = ("basic", "oauth2", "keyrock")
Reached = TypeVar("Reached", bound=HttpConnection)


@dataclass(frozen=True, slots=True)
class ConnectionFields:
    """The fields of an Airflow connection; the login, password and extra are secrets."""

    host: str
    kind: str = ""
    scheme: str = ""
    port: int | None = None
    login: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    extra: Mapping[str, object] = field(default_factory=dict, repr=False)

    def text(self, name: str, default: str = "") -> str:
        value = self.extra.get(name)
        return default if value is None else str(value)


def broker_connection(connection_id: str, fields: ConnectionFields) -> BrokerConnection:
    """Returns the context broker of a connection's fields; errors as `http_connection`."""
    return http_connection(BrokerConnection, connection_id, fields)


def http_connection(reached: type[Reached], connection_id: str, fields: ConnectionFields) -> Reached:
    """Returns a connection of one kind by the fields that all kinds have.

    Raises:
        ConfigurationError: the fields describe none; the message never shows a secret.
    """
    verify = fields.extra.get("verify", True)
    found = reached(
        base_url=_address(connection_id, fields, reached.WHO),
        headers=_headers(connection_id, fields),
        verify=verify if isinstance(verify, bool | str) else True,
        grant=_grant(connection_id, fields),
        certificate=fields.text("certificate"),
        certificate_key=fields.text("certificate_key"),
        certificate_password=fields.text("certificate_password"),
    )
    if fields.extra.get("timeout_seconds") is None:
        return found
    return replace(found, timeout_seconds=_seconds(connection_id, fields))


def secrets(connection: HttpConnection) -> tuple[str, ...]:
    """Returns what of a connection must be masked in logs."""
    granted = connection.grant.secrets() if connection.grant else ()
    named = (*connection.headers.values(), connection.certificate_password, *granted)
    return tuple(value for value in named if value)


def _address(connection_id: str, fields: ConnectionFields, who: str) -> str:
    hint = f"give it the host (and port and schema) of {who}"
    try:
        given = urlsplit(fields.host if "://" in fields.host else f"//{fields.host}")
        port = f":{fields.port}" if fields.port and given.port is None else ""
    except ValueError:
        raise connection_error(
            connection_id, "has a host that is none, or another port than 0 to 65535", hint
        ) from None
    if not given.netloc:
        raise connection_error(connection_id, "has no host", hint)
    scheme = given.scheme or fields.scheme or ("https" if fields.kind == "https" else "http")
    return f"{scheme}://{given.netloc}{port}{given.path.rstrip('/')}"


def _headers(connection_id: str, fields: ConnectionFields) -> dict[str, str]:
    given = fields.extra.get("headers") or {}
    if not isinstance(given, Mapping):
        hint = 'write them in the extra as {"headers": {"X-Auth-Token": "..."}}'
        raise connection_error(connection_id, "has headers that are not a mapping", hint)
    headers = {str(name): str(value) for name, value in given.items()}
    if fields.extra.get("token"):
        headers.setdefault("Authorization", f"Bearer {fields.extra['token']}")
    elif fields.login and fields.text("authentication", "basic") == "basic":
        pair = f"{fields.login}:{fields.password}".encode()
        headers.setdefault("Authorization", f"Basic {b64encode(pair).decode()}")
    return headers


def _grant(connection_id: str, fields: ConnectionFields) -> TokenRequest | None:
    kind = fields.text("authentication")
    if kind in {"", "basic"}:
        return None
    if kind == "keyrock":
        header, name, secret = fields.text("token_header", "X-Auth-Token"), fields.login, fields.password
        return TokenRequest("keyrock", fields.text("token_url"), username=name, password=secret, header=header)
    if kind != "oauth2":
        raise connection_error(connection_id, "asks for an unknown authentication", f"use one of {', '.join(_KINDS)}")
    return TokenRequest(
        "password" if fields.text("username") else "client_credentials",
        fields.text("token_url"),
        client_id=fields.text("client_id", fields.login),
        client_secret=fields.text("client_secret", fields.password),
        username=fields.text("username"),
        password=fields.text("user_password"),
        scope=fields.text("scope"),
        header=fields.text("token_header", "Authorization"),
    )


def _seconds(connection_id: str, fields: ConnectionFields) -> float:
    try:
        return float(fields.text("timeout_seconds"))
    except ValueError:
        hint = "write it as a number of seconds"
        raise connection_error(connection_id, "has a timeout_seconds that is not a number", hint) from None


def connection_error(connection_id: str, message: str, next_step: str) -> ConfigurationError:
    """Returns the error of an Airflow connection whose fields cannot be used."""
    return ConfigurationError(
        f"the Airflow connection {connection_id!r} {message}", next_step=next_step, connection=connection_id
    )
