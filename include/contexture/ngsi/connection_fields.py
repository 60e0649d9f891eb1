"""From the fields of an Airflow connection to a source that speaks HTTP: the one place of these rules.

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

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import urlsplit

from contexture.errors import ConfigurationError
from contexture.ngsi.authentication import TokenGrant
from contexture.ngsi.connection import BrokerConnection
from contexture.ngsi.http_connection import HttpConnection

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
        """A text of the extra."""
        value = self.extra.get(name)
        return default if value is None else str(value)


def broker_connection(connection_id: str, fields: ConnectionFields) -> BrokerConnection:
    """The context broker behind a connection's fields.

    Raises:
        ConfigurationError: they lead to none; the message never shows a secret.
    """
    return http_connection(BrokerConnection, connection_id, fields)


def http_connection(reached: type[Reached], connection_id: str, fields: ConnectionFields) -> Reached:
    """A connection of one kind by the fields that all kinds have.

    Args:
        reached: the kind.
        connection_id: for messages.
        fields: of the Airflow connection.

    Raises:
        ConfigurationError: the fields lead to none; the message never shows a secret.
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
    """What of a connection must be masked in logs."""
    granted = connection.grant.secrets() if connection.grant else ()
    named = (*connection.headers.values(), connection.certificate_password, *granted)
    return tuple(value for value in named if value)


def _address(connection_id: str, fields: ConnectionFields, who: str) -> str:
    hint = f"give it the host (and port and schema) of {who}"
    try:
        given = urlsplit(fields.host if "://" in fields.host else f"//{fields.host}")
        port = f":{fields.port}" if fields.port and given.port is None else ""
    except ValueError:
        raise _mistake(connection_id, "has a host that is none, or another port than 0 to 65535", hint) from None
    if not given.netloc:
        raise _mistake(connection_id, "has no host", hint)
    scheme = given.scheme or fields.scheme or ("https" if fields.kind == "https" else "http")
    return f"{scheme}://{given.netloc}{port}{given.path.rstrip('/')}"


def _headers(connection_id: str, fields: ConnectionFields) -> dict[str, str]:
    given = fields.extra.get("headers") or {}
    if not isinstance(given, Mapping):
        hint = 'write them in the extra as {"headers": {"X-Auth-Token": "..."}}'
        raise _mistake(connection_id, "has headers that are not a mapping", hint)
    headers = {str(name): str(value) for name, value in given.items()}
    if fields.extra.get("token"):
        headers.setdefault("Authorization", f"Bearer {fields.extra['token']}")
    elif fields.login and fields.text("authentication", "basic") == "basic":
        pair = f"{fields.login}:{fields.password}".encode()
        headers.setdefault("Authorization", f"Basic {b64encode(pair).decode()}")
    return headers


def _grant(connection_id: str, fields: ConnectionFields) -> TokenGrant | None:
    kind = fields.text("authentication")
    if kind in {"", "basic"}:
        return None
    if kind == "keyrock":
        header, name, secret = fields.text("token_header", "X-Auth-Token"), fields.login, fields.password
        return TokenGrant("keyrock", fields.text("token_url"), username=name, password=secret, header=header)
    if kind != "oauth2":
        raise _mistake(connection_id, "asks for an unknown authentication", f"use one of {', '.join(_KINDS)}")
    return TokenGrant(
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
        raise _mistake(connection_id, "has a timeout_seconds that is no number", hint) from None


def _mistake(connection_id: str, message: str, next_step: str) -> ConfigurationError:
    return ConfigurationError(
        f"the Airflow connection {connection_id!r} {message}", next_step=next_step, connection=connection_id
    )
