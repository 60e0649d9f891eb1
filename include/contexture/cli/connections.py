"""Connections, as Airflow would read them from the environment, without Airflow."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from contexture.errors import ConfigurationError
from contexture.sources.http.connection import ConnectionFields, broker_connection
from contexture.sources.ngsi import BrokerConnection

if TYPE_CHECKING:
    from contexture.sources.sdmx.registry import RegistryConnection

_TIMEOUT_SECONDS = 10.0


def variable_of(connection_id: str) -> str:
    """The environment variable that Airflow looks for a connection in."""
    return f"AIRFLOW_CONN_{connection_id.upper()}"


def from_environment(connection_id: str) -> BrokerConnection | None:
    """The connection to a context broker from its environment variable, in JSON or as a URI; None when it isn't set.

    Raises:
        ConfigurationError: the variable holds something else; the message never shows it.
    """
    fields = read(connection_id)
    return None if fields is None else context_broker(connection_id, fields)


def read(connection_id: str) -> ConnectionFields | None:
    """The fields of a connection from its environment variable, in JSON or as a URI; None when it isn't set.

    Raises:
        ConfigurationError: the variable holds something else; the message never shows it.
    """
    text = os.environ.get(variable_of(connection_id))
    if not text:
        return None
    try:
        return _from_json(text) if text.lstrip().startswith("{") else _from_uri(text)
    except (ValueError, TypeError, AttributeError):
        # `from None`: the foreign error may quote a part of the secret.
        raise _unreadable(connection_id) from None


def context_broker(connection_id: str, fields: ConnectionFields) -> BrokerConnection:
    """The context broker behind a connection's fields.

    Raises:
        ConfigurationError: they lead to none; the message never shows them.
    """
    if not fields.host:
        raise _unreadable(connection_id)
    try:
        found = broker_connection(connection_id, fields)
    except (ValueError, TypeError, AttributeError):
        raise _unreadable(connection_id) from None
    # Somebody is waiting at a command line.
    return found if "timeout_seconds" in fields.extra else replace(found, timeout_seconds=_TIMEOUT_SECONDS)


def registry(connection_id: str, address: str | None = None) -> RegistryConnection | None:
    """The structure registry at an address, or else behind a connection of the environment; None when there is none.

    Raises:
        ConfigurationError: the connection leads to none; the message never shows it.
    """
    fields = None if address is not None else read(connection_id)
    if address is None and fields is None:
        return None
    from contexture.sources.sdmx.registry import RegistryConnection, registry_connection

    if fields is None:
        return RegistryConnection(str(address), timeout_seconds=_TIMEOUT_SECONDS)
    try:
        found = registry_connection(connection_id, fields)
    except (ValueError, TypeError, AttributeError):
        raise _unreadable(connection_id) from None
    # Somebody is waiting at a command line.
    return found if "timeout_seconds" in fields.extra else replace(found, timeout_seconds=_TIMEOUT_SECONDS)


def _unreadable(connection_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"{variable_of(connection_id)} can't be read as an Airflow connection",
        next_step='write it as JSON, {"conn_type": "http", "host": "…", "port": 1026}, or as a URI, http://host:1026',
    )


def _from_json(text: str) -> ConnectionFields:
    data = json.loads(text)
    extra = data.get("extra") or {}
    return ConnectionFields(
        host=data.get("host") or "",
        kind=data.get("conn_type") or "",
        scheme=data.get("schema") or ("https" if data.get("conn_type") == "https" else ""),
        port=int(data["port"]) if data.get("port") else None,
        login=data.get("login") or "",
        password=data.get("password") or "",
        extra=json.loads(extra) if isinstance(extra, str) else extra,
    )


def _from_uri(text: str) -> ConnectionFields:
    kind, _, rest = text.partition("://")
    # Airflow allows the host to bring its own scheme: `http://https://host:443`.
    scheme, parts = ("", urlsplit(f"//{rest}")) if "://" not in rest else (urlsplit(rest).scheme, urlsplit(rest))
    query = dict(parse_qsl(parts.query))
    extra = json.loads(query["__extra__"]) if "__extra__" in query else query
    return ConnectionFields(
        host=unquote(parts.hostname or ""),
        kind=kind,
        scheme=scheme or unquote(parts.path.strip("/")) or ("https" if kind == "https" else ""),
        port=parts.port,
        login=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        extra=extra,
    )
