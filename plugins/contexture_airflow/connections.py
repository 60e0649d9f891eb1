"""From Airflow connections to the settings that `contexture` knows. Secrets pass through here and are kept nowhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from contexture.errors import ConfigurationError

if TYPE_CHECKING:
    from contexture.kafka import ClientSettings
    from contexture.ngsi import BrokerConnection

DEFAULT_TIMEOUT_SECONDS = 60.0


def connection(connection_id: str) -> Connection:
    """The Airflow connection of that id.

    Raises:
        ConfigurationError: there is none.
    """
    try:
        return BaseHook.get_connection(connection_id)
    except AirflowNotFoundException as error:
        raise ConfigurationError(
            f"there is no Airflow connection {connection_id!r}",
            next_step=f"add it under Admin, Connections, or set AIRFLOW_CONN_{connection_id.upper()}",
            connection=connection_id,
        ) from error


def source_connection(connection_id: str) -> BrokerConnection:
    """The context broker behind a connection of type `http`.

    Host, port and schema give the address; login and password a Basic, `token` in the extra a Bearer authorization;
    `headers` in the extra are sent as they are (`X-Auth-Token` for a PEP proxy). Further extras: `timeout_seconds`, and
    `verify`, false or the path of a certificate bundle.

    Raises:
        ConfigurationError: the connection is missing, or has no host.
    """
    from contexture.ngsi import BrokerConnection

    found = connection(connection_id)
    extra = found.extra_dejson
    headers = _headers(found, extra)
    for value in headers.values():
        mask_secret(value)
    return BrokerConnection(
        base_url=_address(found),
        headers=headers,
        timeout_seconds=float(extra.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS)),
        verify=extra.get("verify", True),
    )


def kafka_settings(connection_id: str) -> ClientSettings:
    """The Kafka cluster behind a connection of type `kafka`, completed by the Kafka provider's hook.

    Raises:
        ConfigurationError: the connection is missing, or holds something that can not be used.
    """
    from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook

    from contexture.kafka import ClientSettings

    connection(connection_id)
    try:
        extra = KafkaBaseHook(connection_id)._build_config()  # type: ignore[no-untyped-call]  # the hook offers clients, not settings
    except ValueError as error:
        raise ConfigurationError(
            f"the Kafka connection {connection_id!r} can not be used: {error}",
            next_step="correct its extra: names of librdkafka, such as bootstrap.servers",
            connection=connection_id,
        ) from error
    return ClientSettings.from_extra(extra)


def _address(found: Connection) -> str:
    if not found.host:
        raise ConfigurationError(
            f"the Airflow connection {found.conn_id!r} has no host",
            next_step="give it the host (and port and schema) of the context broker",
            connection=found.conn_id,
        )
    given = urlsplit(found.host if "://" in found.host else f"//{found.host}")
    scheme = given.scheme or found.schema or ("https" if found.conn_type == "https" else "http")
    port = f":{found.port}" if found.port and given.port is None else ""
    return f"{scheme}://{given.netloc}{port}{given.path.rstrip('/')}"


def _headers(found: Connection, extra: Mapping[str, object]) -> dict[str, str]:
    given = extra.get("headers", {})
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"headers in the extra of the Airflow connection {found.conn_id!r} are not a mapping",
            next_step='write them as {"headers": {"X-Auth-Token": "..."}}',
            connection=found.conn_id,
        )
    headers = {str(name): str(value) for name, value in given.items()}
    if extra.get("token"):
        headers.setdefault("Authorization", f"Bearer {extra['token']}")
    elif found.login:
        pair = f"{found.login}:{found.password or ''}".encode()
        headers.setdefault("Authorization", f"Basic {b64encode(pair).decode()}")
    return headers
